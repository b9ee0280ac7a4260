"""Fewer tokens, narrow tables and budgets of all parameters, as a user asks for them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import archwright as aw
from archwright.cli.main import main
from archwright.cli.parser import load_config, parse
from archwright.commands import COMMANDS
from archwright.compression.budgets import total_size
from archwright.compression.finetuning import TeacherAnswers
from archwright.compression.methods import load_evaluator
from archwright.data.batching import batch_of
from archwright.data.text.tokenizer import train_bpe
from archwright.errors import BadInput
from archwright.networks.load import load_saved_network
from tests.compression.runs import compressed

WIDTH, TOKENS = 48, 30522


@pytest.fixture(scope="module")
def small(place: Path, given: dict[str, Any]) -> Any:
    """A run with the tokens of its task and a narrow table."""
    return compressed(place / "small-vocabulary", **given, vocabulary="task", embedding_rank=12)


def test_the_whole_run_has_the_small_vocabulary(small: Any, minilm: Path) -> None:
    result = small.result
    tokens = result["vocabulary"]["tokens"]
    assert result["vocabulary"]["of"] == TOKENS and 1900 < tokens < 2200  # mostly single characters
    assert result["vocabulary"]["texts_touched"]["test"] == 0.0  # twenty-two words in all
    removed = TOKENS * WIDTH - tokens * 12 - 13 * WIDTH
    assert result["checkpoint"]["parameters"] - result["cut"]["parameters"] == removed
    cut = load_saved_network(small.folder.path / "cut")
    assert sum(p.numel() for p in cut.parameters()) == result["cut"]["parameters"]
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    saved = PreTrainedTokenizerFast(tokenizer_file=str(small.folder.path / "cut" / "tokenizer.json"))
    assert len(saved) == tokens and saved.tokenize("the lovely film") == tokenizer.tokenize("the lovely film")


def test_the_untouched_checkpoint_is_original_and_teacher(small: Any, tmp_path: Path, given: dict[str, Any]) -> None:
    """It is fine-tuned with all tokens, as in a run that cuts nothing, and what the others lose is against it."""
    run = compressed(tmp_path / "run", **given, trials=2)
    original, same = (load_saved_network(each.folder.original) for each in (small, run))
    assert small.result["original"]["parameters"] == small.result["checkpoint"]["parameters"]
    assert small.result["original"]["test_error"] == run.result["original"]["test_error"]
    for name, tensor in same.state_dict().items():
        torch.testing.assert_close(original.state_dict()[name], tensor, rtol=0, atol=0)
    context = load_evaluator(small.folder).context
    assert context.original_data.task.vocabulary == TOKENS
    answers = np.load(small.folder.path / "teacher.npz")["logits"]
    (batch,) = [batch_of(context.original_data.encoded["train"], np.arange(len(answers)))]
    with torch.no_grad():
        torch.testing.assert_close(original.eval()(**batch.inputs).logits.numpy(), answers, rtol=0, atol=1e-5)
    few = replace(context, config=replace(context.config, supernet=replace(context.config.supernet, epochs=0.5)))
    rows = next(iter(context.task_data.training(4, stream=1)(0)))  # in the small vocabulary
    np.testing.assert_allclose(TeacherAnswers(few)(rows).numpy(), answers[rows.rows], rtol=0, atol=1e-5)


def test_cut_before_is_what_earlier_versions_did(small: Any, tmp_path: Path, given: dict[str, Any]) -> None:
    """Their runs go on: the original has the small vocabulary, and is compared with in it."""
    run = compressed(tmp_path / "run", **given, vocabulary="task", embedding_rank=12, trials=4, cut="before")
    assert run.result["cut"] is None and not (run.folder.path / "cut").exists()
    assert run.result["original"]["parameters"] == small.result["cut"]["parameters"]
    settings = json.loads((run.folder.path / "run.json").read_text())
    del settings["options"]["cut"], settings["checksum"]  # neither did they have
    (run.folder.path / "run.json").write_text(json.dumps(settings))
    again = compressed(run.folder.path, **given, vocabulary="task", embedding_rank=12, trials=4)
    assert again.result == run.result


def test_the_original_of_a_cut_run_can_be_exported(small: Any, tmp_path: Path) -> None:
    answer = aw.export(run=small.folder.path, trial=-1, to="hf", out=tmp_path / "hf")
    assert answer.parity.parameters == small.result["checkpoint"]["parameters"] and not answer.parity.notes
    assert len(AutoTokenizer.from_pretrained(tmp_path / "hf")) == TOKENS


def test_eight_bits_cover_the_embeddings(small: Any, tmp_path: Path) -> None:
    """About one byte per parameter, the table of word vectors too; the test error of both is reported."""
    trial = small.front[-1]["trial"]
    parity = aw.export(run=small.folder.path, trial=trial, to="onnx", int8=True, out=tmp_path / "onnx").parity
    assert parity.int8 is not None and parity.int8.test_error is not None
    assert parity.test_error == pytest.approx(small.front[-1]["test_error"])
    tables = [t for t in onnx.load(tmp_path / "onnx" / "model_int8.onnx").graph.initializer if len(t.dims) == 2]
    large = [t for t in tables if np.prod(t.dims) >= 2**10 and t.dims[1] > 1]  # scales are floats, one per row
    assert large and all(t.data_type == onnx.TensorProto.INT8 for t in large)
    assert any(list(t.dims) == [small.result["vocabulary"]["tokens"], 12] for t in large)
    card = (tmp_path / "onnx" / "README.md").read_text()
    assert "embedding rank 12" in card and "test texts contain removed tokens" in card and "8-bit weights" in card


def test_the_page_tells_it(small: Any) -> None:
    page = small.folder.report.read_text()
    assert "embedding rank 12" in page and "test texts contain removed tokens" in page


def test_exports_carry_it(small: Any, tmp_path: Path) -> None:
    trial = small.front[-1]["trial"]
    for to in ("compact", "hf-padded", "onnx"):
        answer = aw.export(run=small.folder.path, trial=trial, to=to, out=tmp_path / to)
        assert answer.parity.difference.share < 1e-4
        config = json.loads((tmp_path / to / "tokenizer_config.json").read_text())
        assert config["tokenizer_class"] == "BertTokenizer"
        assert len(AutoTokenizer.from_pretrained(tmp_path / to)) == small.result["vocabulary"]["tokens"]
    with pytest.raises(BadInput, match="hf needs one table of word vectors"):
        aw.export(run=small.folder.path, trial=trial, to="hf", out=tmp_path / "hf")


def test_the_same_logits_on_texts_without_removed_words(place: Path, given: dict[str, Any]) -> None:
    """Untrained, so that only the vocabulary differs: equal to 1e-6 on every text of the run."""
    runs = {}
    for name, options in {"whole": {}, "task": {"vocabulary": "task"}}.items():
        run = compressed(place / f"untrained-{name}", **given, original_epochs=0.0, trials=2, **options)
        runs[name] = load_evaluator(run.folder).context
    with torch.no_grad():
        for whole, task in zip(runs["whole"].task_data.test, runs["task"].task_data.test, strict=True):
            before, after = (
                load_saved_network(runs[name].start)(**batch.inputs).logits
                for name, batch in (("whole", whole), ("task", task))
            )
            torch.testing.assert_close(after, before, rtol=0, atol=1e-6)


def test_a_smaller_width(place: Path, given: dict[str, Any], tmp_path: Path) -> None:
    """Everything follows: layers, norms, embeddings and head; percentages are of the untouched checkpoint."""
    run = compressed(place / "narrow", **given, width="75%", embedding_rank=12, trials=4)
    result = run.result
    assert result["width"] == 36 and result["checkpoint"]["width"] == WIDTH
    cut = load_saved_network(run.folder.path / "cut")
    assert sum(p.numel() for p in cut.parameters()) == result["cut"]["parameters"]
    share = result["cut"]["nonembedding_parameters"] / result["checkpoint"]["nonembedding_parameters"]
    assert result["cut"]["nonembedding_share"] == pytest.approx(share) and 0.6 < share < 0.8
    assert max(entry["nonembedding_share"] for entry in result["front"]) <= share + 1e-9
    assert result["original"]["latency_ms"] and result["supernet"]["latency_ms"] is None  # nothing so narrow was timed
    trial = run.front[-1]["trial"]
    for to in ("compact", "onnx"):
        parity = aw.export(run=run.folder.path, trial=trial, to=to, out=tmp_path / to).parity
        assert parity.difference.share < (1e-5 if to == "compact" else 1e-4)
        assert parity.parameters == run.front[-1]["parameters"]
        assert f"hidden width: 36 of {WIDTH} channels" in (tmp_path / to / "README.md").read_text()
    for to in ("hf", "hf-padded"):
        with pytest.raises(BadInput, match="got a hidden width of 36; export to compact"):
            aw.export(run=run.folder.path, trial=trial, to=to, out=tmp_path / to)
    assert f"idden width: 36 of {WIDTH} channels" in run.folder.report.read_text()


def test_it_is_told(small: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    small.show(Console(width=120))
    told = capsys.readouterr().out
    assert "% of 14 test texts contain removed tokens" in told and f"of {TOKENS:,} tokens (task)" in told
    assert "embedding rank 12" in told and "parameters of the checkpoint ->" in told


def test_a_language_model(tmp_path: Path) -> None:
    """Outputs go with the inputs they are tied to; bits per byte can be compared with another vocabulary's."""
    lines = ["the old film is lovely and the music is new\n", "a new actor sings in the lovely old film\n"] * 60
    (tmp_path / "text.txt").write_text("".join(lines))
    inner = train_bpe([*lines, "zebras gallop across extraordinary landscapes\n" * 9], 400)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="[SEP]", pad_token="[PAD]")
    tokenizer.save_pretrained(tmp_path / "gpt2")
    end = tokenizer.eos_token_id
    config = GPT2Config(
        vocab_size=len(tokenizer), n_embd=32, n_head=4, n_layer=2, n_positions=32, eos_token_id=end, bos_token_id=end
    )
    GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt2")
    options = {"model": str(tmp_path / "gpt2"), "task": "lm", "train": tmp_path / "text.txt", "max_length": 16}
    run = compressed(tmp_path / "run", **options, vocabulary="task", trials=3)
    result = run.result
    tokens = result["vocabulary"]["tokens"]
    assert tokens < len(tokenizer)
    assert result["checkpoint"]["parameters"] - result["original"]["parameters"] == 32 * (len(tokenizer) - tokens)
    assert 0 < result["original"]["test_bits_per_byte"] < 8
    network = load_saved_network(run.folder.original)
    saved = AutoTokenizer.from_pretrained(run.folder.original, config=GPT2Config())
    assert network.config.eos_token_id == saved.eos_token_id == network.generation_config.eos_token_id
    with pytest.raises(BadInput, match="--embedding-rank is for networks without output embeddings"):
        compressed(tmp_path / "rank", **options, embedding_rank=4)
    with pytest.raises(BadInput, match=r"--width is for the encoders BERT, .*, DistilBERT and ELECTRA, got gpt2"):
        compressed(tmp_path / "rank", **options, width="50%")
    assert not (tmp_path / "rank").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    {
        "fewer than the least": ({"vocabulary": "100"}, ("--vocabulary must be", "got 100")),
        "more than there are": ({"vocabulary": "1M"}, ("--vocabulary must be", "got 1,000,000")),
        "no file": ({"vocabulary": "nowhere.txt"}, ("task, a number of tokens or a file", "nowhere.txt")),
        "an unknown token": ({"vocabulary": "[PAD]\nnotoken"}, ("--vocabulary must list tokens", "notoken")),
        "no special tokens": ({"vocabulary": "film\nlovely"}, ("must keep all special tokens", "[PAD]")),
        "a wide table": ({"embedding_rank": WIDTH}, ("--embedding-rank must be below 48", "got 48")),
        "a wide stream": ({"width": WIDTH}, ("--width must be 1 to 47", "got 48")),
        "no width": ({"width": "half"}, ("--width must be a share such as 60% or a number", "'half'")),
        "width of pre-trained weights": (
            {"width": "50%", "start": "pretrained"},
            ("--width cuts the fine-tuned original, got --start pretrained",),
        ),
        "width of networks trained alone": (
            {"width": "50%", "method": "standard"},
            ("--width cuts the fine-tuned original, got --method standard",),
        ),
        "an impossible size": ({"total_params": "2K"}, ("--total-params must be at least", "got 2K")),
        "no amount": ({"total_params": "6MB"}, ("--total-params must be a share such as 60%", "'6MB'")),
        "a wide table that was asked for": (
            {"total_params": "500K", "vocabulary": "20000", "embedding_rank": 40},
            ("--total-params must be at least", "take a smaller --vocabulary or --embedding-rank"),
        ),
    }.values(),
)
def test_bad_input(
    options: dict[str, Any],
    words: tuple[str, ...],
    tmp_path: Path,
    given: dict[str, Any],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One line, exit code 2, nothing written."""
    if "\n" in str(options.get("vocabulary")):
        (tmp_path / "tokens.txt").write_text(options["vocabulary"])
        options = {**options, "vocabulary": tmp_path / "tokens.txt"}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in {**given, **options}.items()]
    assert main(["compress", *flags, "--out", str(tmp_path / "run"), "--threads", "1"]) == 2
    line = capfd.readouterr().err.strip().splitlines()[-1]
    assert all(word in line for word in words), line
    assert not (tmp_path / "run").exists()


def test_a_total_budget_chooses_the_embeddings(tmp_path: Path, given: dict[str, Any]) -> None:
    run = compressed(tmp_path / "run", **given, total_params="10%", trials=8)
    result, whole = run.result, run.result["checkpoint"]["parameters"]
    assert run.folder.settings["vocabulary"] == result["vocabulary"]["rule"]
    assert run.folder.settings["embedding_rank"] == result["embedding_rank"] < WIDTH
    assert all(entry["parameters"] <= 0.1 * whole for entry in result["front"])
    assert compressed(tmp_path / "run", **given, total_params="10%", trials=8).result == result  # resumes


def test_a_run_keeps_the_plan_it_began_with(
    tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version may plan otherwise."""
    run = compressed(tmp_path / "run", **given, total_params="10%", trials=3)
    monkeypatch.setattr(total_size, "PLANS", total_size.PLANS[-2:])
    assert compressed(tmp_path / "run", **given, total_params="10%", trials=3).result == run.result


def test_select_by_all_parameters(run: Any, small: Any) -> None:
    sizes = sorted(entry["parameters"] for entry in run.front)
    assert run.select(total_params=sizes[1]).entry["parameters"] <= sizes[1]
    share = f"{100 * sizes[0] / run.result['checkpoint']['parameters'] + 0.001:.4f}%"
    assert run.select(total_params=share).entry["parameters"] == sizes[0]
    with pytest.raises(BadInput, match="no sub-network on the front is within the budget"):
        run.select(total_params="1%")
    # percentages are of the untouched checkpoint: ten percent of it is more than all that is left
    assert small.select(total_params="20%").entry in small.front
    assert small.select(params="20%", total_params=True).entry == small.select(total_params="20%").entry


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["runs/x", "--params", "50%", "--total-params"], True),
        (["--params", "50%", "--total-params", "runs/x"], True),
        (["runs/x", "--total-params", "25%"], "25%"),
        (["--total-params", "6M", "runs/x"], "6M"),
        (["--total-params=0.25", "runs/x"], "0.25"),
        (["runs/x", "--params", "50%", "--no-total-params"], False),
        (["runs/x", "--params", "50%"], False),
    ],
)
def test_the_flag_with_and_without_an_amount(words: list[str], value: str | bool) -> None:
    config = load_config("select", COMMANDS["select"], parse("select", COMMANDS["select"], words))
    assert config.budget.total_params == value and str(config.run.run) == "runs/x"
