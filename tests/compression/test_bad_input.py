"""Bad input: one line that names the rule, exit code 2, and nothing written."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2Model, T5Config, T5EncoderModel

import archwright as aw
from archwright.errors import BadInput
from tests.compression.runs import POSITIONS, QUICK, ended, refusal, saved_model, table_file, words_of


@pytest.fixture
def t5(tmp_path: Path) -> Path:
    folder = tmp_path / "t5"
    size = {"d_model": 8, "d_kv": 4, "num_heads": 2, "d_ff": 8, "num_layers": 1}
    T5EncoderModel(T5Config(vocab_size=50, **size)).save_pretrained(folder)
    return folder


@pytest.fixture
def gpt2(tmp_path: Path) -> Path:
    """A decoder without a tokenizer."""
    folder = tmp_path / "gpt2"
    GPT2Model(GPT2Config(vocab_size=50, n_positions=16, n_embd=8, n_layer=1, n_head=2)).save_pretrained(folder)
    return folder


def refused(capfd: Any, tmp_path: Path, *, code: int = 2, **options: Any) -> str:
    """The one line; the run folder and the answer file do not exist."""
    out, answer = tmp_path / "run", tmp_path / "out.json"
    found, line = refusal(capfd, words_of("compress", **{**QUICK, "out": out, "json": answer, **options}))
    assert found == code, line
    assert not out.exists()
    assert not answer.exists()
    return line


WRONG: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "unknown task": ({"task": "glue/SST2"}, ("unknown task", "glue/SST-2")),
    "task without data": ({"task": "glue/SST-2"}, ("--data",)),
    "task and files": ({"task": "movie-reviews", "train": "x.csv"}, ("--task", "--train")),
    "no such file": ({"train": "nowhere.csv"}, ("nowhere.csv",)),
    "no such folder": ({"task": "glue/RTE", "data": "nowhere"}, ("nowhere",)),
    "no such model": ({"model": "no/such-model"}, ("no/such-model",)),
    "no such model folder": ({"model": "./nowhere"}, ("nowhere",)),
}


@pytest.mark.parametrize(("options", "words"), WRONG.values(), ids=WRONG)
def test_wrong_names(
    options: dict[str, Any], words: tuple[str, ...], capfd: Any, tmp_path: Path, given: dict[str, Any]
) -> None:
    kept = {} if {"task", "train"} & set(options) else {"train": given["train"]}
    line = refused(capfd, tmp_path, **{"model": given["model"], **kept, **options})
    assert all(word in line for word in words), line


NUMBERS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a column that is not there": ({"text_column": "txt"}, ("txt", "text", "other", "score")),
    "a budget below the smallest": ({"params": "1%"}, ("--params", "smallest", "9.8%")),
    "a budget below the embeddings": (
        {"params": "50K", "total_params": True},
        ("--params", "1,473,", "--vocabulary task"),
    ),
    "a budget that is no number": ({"params": "much"}, ("--params", "much")),
    "a negative budget": ({"params": "-5"}, ("--params",)),
    "a latency nobody has": ({"latency_ms": 0.0001}, ("--latency-ms", "at least 0.")),
    "no latency": ({"latency_ms": 0}, ("--latency-ms",)),
    "no cost": ({"objectives": "validation_error"}, ("--objectives", "nonembedding_parameters")),
    "a cost twice": ({"objectives": "flops,flops"}, ("--objectives", "each once")),
    "a cost of writers": ({"objectives": "validation_error,generation_ms"}, ("generation_ms", "--task lm")),
    "a cost nobody knows": ({"objectives": "validation_error,flop"}, ("--objectives", "flops?")),
    "a baseline in a space it cannot serve": (
        {"method": "head-pruning", "space": "medium"},
        ("--space", "large", "head-pruning", "weight-sharing"),
    ),
    "mo-asha with weight sharing": ({"sampler": "mo-asha"}, ("MO-ASHA", "--method standard")),
    "an option of another method": (
        {"method": "standard", "strategy": "kd"},
        ("--strategy", "standard", "kd"),
    ),
    "an unknown method": ({"method": "standrd"}, ("--method", "standard?")),
    "an unknown method to compare": ({"compare": "standard,standrd"}, ("--compare", "standard?")),
    "honesty about nothing": ({"honesty": 2}, ("--honesty", "2")),
    "honesty of one by one": ({"method": "standard", "honesty": 5}, ("--honesty", "weight-sharing")),
    "ehvi in large": ({"sampler": "ehvi", "space": "large"}, ("sampler", "204")),
    "an unknown space": ({"space": "tiny"}, ("--space", "small, stock, layer, medium, large")),
    "an unknown preset": ({"preset": "papre"}, ("--preset", "paper?")),
    "a length the tokenizer cannot": ({"max_length": 5000}, ("--max-length", "512")),
    "a length without text": ({"max_length": 2}, ("--max-length",)),
    "costs of a length the model cannot": ({"length": 100}, ("--length", str(POSITIONS), "100")),
    "no trials": ({"trials": 0}, ("--trials",)),
    "no workers": ({"workers": 0}, ("--workers",)),
    "no minutes": ({"minutes": 0}, ("--minutes",)),
    "negative epochs": ({"epochs": -1}, ("--epochs", "-1")),
    "a huge rate": ({"learning_rate": 2}, ("--learning-rate",)),
    "negative threads": ({"threads": -1}, ("--threads", "-1")),
    "a negative seed": ({"seed": -1}, ("--seed",)),
    "no batch": ({"batch_size": -1}, ("--batch-size",)),
    "few rounds": ({"rounds": 1}, ("--rounds",)),
    "negative rows": ({"train_rows": -1}, ("--train-rows",)),
    "a store of another kind": ({"store": "mysql://here"}, ("--store", "sqlite:///", "postgresql://")),
    "a store that does not answer": ({"store": "sqlite:////nowhere/at/all.db"}, ("--store",)),
}


@pytest.mark.parametrize(("options", "words"), NUMBERS.values(), ids=NUMBERS)
def test_wrong_values(
    options: dict[str, Any], words: tuple[str, ...], capfd: Any, tmp_path: Path, given: dict[str, Any]
) -> None:
    line = refused(capfd, tmp_path, **{**given, **options})
    assert all(word in line for word in words), line


def test_a_device_for_latency_that_is_not_there(rows: Path, bert: Path, tmp_path: Path, capfd: Any) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    line = refused(capfd, tmp_path, model=str(bert), train=rows, latency_device="cuda")
    assert "--latency-device cuda needs a CUDA device" in line


def test_texts_longer_than_the_model(capfd: Any, tmp_path: Path, bert: Path) -> None:
    file = tmp_path / "long.csv"
    file.write_text("text,label\n" + "".join(f"{'very ' * 100}{i},{i % 2}\n" for i in range(40)))
    line = refused(capfd, tmp_path, model=str(bert), train=file, max_length=100)
    assert "--max-length" in line and str(POSITIONS) in line


def test_another_family(capfd: Any, tmp_path: Path, t5: Path, rows: Path) -> None:
    line = refused(capfd, tmp_path, model=str(t5), train=rows)
    assert "t5" in line and "encoder and a decoder" in line
    assert all(word in line for word in ("albert", "bert", "distilbert", "gpt2", "llama", "mistral", "qwen2", "qwen3"))


def test_a_model_without_tokenizer(capfd: Any, tmp_path: Path, gpt2: Path, rows: Path) -> None:
    assert "tokenizer" in refused(capfd, tmp_path, model=str(gpt2), train=rows)


def broken_copy(bert: Path, folder: Path, name: str, content: bytes) -> Path:
    shutil.copytree(bert, folder)
    (folder / name).write_bytes(content)
    return folder


DAMAGE = {
    "truncated weights": ("model.safetensors", lambda old: old[: len(old) // 2]),
    "no weights": ("model.safetensors", lambda old: b""),
    "weights that are noise": ("model.safetensors", lambda old: bytes(range(256)) * 40),
    "truncated config": ("config.json", lambda old: old[:50]),
    "a config that is a list": ("config.json", lambda old: b"[]"),
    "truncated tokenizer": ("tokenizer.json", lambda old: old[:500]),
}


@pytest.mark.parametrize(("name", "damage"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_checkpoint(name: str, damage: Any, capfd: Any, tmp_path: Path, bert: Path, rows: Path) -> None:
    model = broken_copy(bert, tmp_path / "model", name, damage((bert / name).read_bytes()))
    refused(capfd, tmp_path, model=str(model), train=rows)


def test_weights_of_another_network(capfd: Any, tmp_path: Path, bert: Path, rows: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(bert, model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 5}))
    assert "lack" in refused(capfd, tmp_path, model=str(model), train=rows)


FILES = {
    "empty": ("", "empty"),
    "only a header": ("text,label\n", "rows"),
    "few rows": ("text,label\na,0\nb,1\n", "at least 10"),
    "one class": ("text,label\n" + "a,0\n" * 20, "only the class"),
}


@pytest.mark.parametrize(("content", "word"), FILES.values(), ids=FILES)
def test_files_that_teach_nothing(content: str, word: str, capfd: Any, tmp_path: Path, bert: Path) -> None:
    (tmp_path / "rows.csv").write_text(content)
    assert word in refused(capfd, tmp_path, model=str(bert), train=tmp_path / "rows.csv")


def test_labels_unseen_in_training(capfd: Any, tmp_path: Path, given: dict[str, Any]) -> None:
    other = table_file(tmp_path / "other.csv", 20, labels=("bad", "superb"))
    assert "superb" in refused(capfd, tmp_path, **given, validation=other)


def test_a_pooling_that_the_head_does_not_have(capfd: Any, tmp_path: Path, minilm: Path, rows: Path) -> None:
    model = saved_model(tmp_path / "fitted", minilm, head={0: "good", 1: "bad"})
    assert "pooling" in refused(capfd, tmp_path, model=str(model), train=rows, pooling="mean")


def test_folders_that_cannot_be_written(capfd: Any, tmp_path: Path, given: dict[str, Any]) -> None:
    file, foreign, before = tmp_path / "file", tmp_path / "foreign", "not ours"
    file.write_text(before)
    foreign.mkdir()
    (foreign / "notes.txt").write_text(before)
    for out in (file, file / "below", file / "far" / "below", foreign, Path("/proc/nothing/run")):
        code, line = refusal(capfd, words_of("compress", **{**QUICK, **given, "out": out}))
        assert code == 2 and "--out" in line and str(out) in line
    assert file.read_text() == (foreign / "notes.txt").read_text() == before
    assert sorted(path.name for path in foreign.iterdir()) == ["notes.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(capfd: Any, tmp_path: Path, given: dict[str, Any]) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o555)
    code, line = refusal(capfd, words_of("compress", **{**QUICK, **given, "out": shut / "run"}))
    assert code == 2 and "--out" in line


def test_an_answer_file_that_cannot_be_written(capfd: Any, tmp_path: Path, given: dict[str, Any]) -> None:
    words = words_of("compress", **{**QUICK, **given, "out": tmp_path / "run", "json": tmp_path / "no" / "out.json"})
    code, line = refusal(capfd, words)
    assert code == 2 and "--json" in line
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_no_number(capfd: Any, tmp_path: Path, given: dict[str, Any]) -> None:
    """Not bad input but a failure: exit code 1, and the folder can be resumed with nothing half-done in it."""
    words = words_of("compress", **{**QUICK, **given, "out": tmp_path / "run", "learning_rate": 0.99, "epochs": 30})
    with pytest.MonkeyPatch.context() as patch:
        nothing = torch.tensor(float("nan"))
        patch.setattr("torch.nn.functional.cross_entropy", lambda *_, **__: nothing + GRADIENT)
        code, line = refusal(capfd, [*words, "--quiet"])
    assert code == 1 and "nan" in line and "learning rate" in line
    assert {path.name for path in (tmp_path / "run").iterdir()} <= WRITTEN


WRITTEN = {".lock", "config.yaml", "digests.json", "kept", "plan.json", "run.json", "seconds.json", "threads.json"}
GRADIENT = torch.zeros((), requires_grad=True)


def test_the_same_in_python(tmp_path: Path, given: dict[str, Any]) -> None:
    for wrong in ({"space": "huge"}, {"sampler": "best"}, {"corners": ("left",)}, {"trials": 0}, {"params": 0.001}):
        with pytest.raises(BadInput):
            aw.compress(**{**QUICK, **given, "out": tmp_path / "run", **wrong})
    assert not (tmp_path / "run").exists()


def test_a_real_process_says_one_line(tmp_path: Path, given: dict[str, Any]) -> None:
    words = words_of("compress", **{**QUICK, **given, "out": tmp_path / "run", "params": "1%"})
    code, out, err = ended(words)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("archwright: --params must be at least ")
    assert not (tmp_path / "run").exists()
