"""`compress --task embeddings`: the original's vectors are learnt, judged by scores or neighbours, and exported."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from transformers import AutoModel, AutoTokenizer

import archwright as aw
from archwright.compression.context import load_context
from archwright.compression.methods import load_evaluator
from archwright.compression.vectors import FILE, draw_targets, keep_rows, with_targets
from archwright.data.batching import Batch, evaluation_batches
from archwright.networks.load import load_saved_network
from archwright.networks.sentence_encoder import write_sentence_encoder
from archwright.objectives.error import measure_rows
from archwright.subnet.importance import mask_scores
from archwright.training.losses import task_loss, vector_distance
from tests.compression.runs import PLAIN, compressed, refusal, saved_model, words_of
from tests.tiny import pair_batch, tiny

MORE = "river mountain winter letter school train garden market window silver tall empty warm quiet"
WORDS = (*PLAIN, *MORE.split())

DRAWS = 400


def sentences(number: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(3, 12))) for _ in range(number)]


@pytest.fixture(scope="module")
def encoder(place: Path, minilm: Path) -> Path:
    """A random sentence encoder that normalises the mean of its tokens."""
    folder = saved_model(place / "sentence-encoder", minilm)
    write_sentence_encoder(folder, pooling="mean", width=48, sentence={"normalize": True, "max_seq_length": 40})
    return folder


@pytest.fixture(scope="module")
def pairs(place: Path) -> Path:
    """Scored pairs: how many words of the first text the second one has."""
    rng, rows = np.random.default_rng(0), []
    for text in sentences(240):
        words = text.split()
        changed = rng.random(len(words)) < rng.random()
        other = [str(rng.choice(WORDS)) if new else word for word, new in zip(words, changed, strict=True)]
        rows.append({"sentence1": text, "sentence2": " ".join(other), "score": round(5 * (1 - changed.mean()), 2)})
    path = place / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def texts(place: Path) -> Path:
    path = place / "plain.txt"
    path.write_text("\n".join(sentences(300, seed=1)) + "\n")
    return path


@pytest.fixture(scope="module")
def scored(place: Path, encoder: Path, pairs: Path) -> Any:
    return compressed(place / "scored", model=str(encoder), task="embeddings", train=pairs, epochs=2.0)


@pytest.fixture(scope="module")
def unscored(place: Path, encoder: Path, texts: Path) -> Any:
    return compressed(place / "unscored", model=str(encoder), task="embeddings", train=texts)


def vectors_by_hand(folder: Path, some: list[str]) -> np.ndarray:
    """Vectors of the network in a folder, from nothing but transformers and the files that say how to pool."""
    modules = [module["type"].rpartition(".")[2] for module in json.loads((folder / "modules.json").read_text())]
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert modules == ["Transformer", "Pooling", "Normalize"]
    assert [name for name, value in pooling.items() if value is True] == ["pooling_mode_mean_tokens"]
    assert json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"] == 40
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    model = AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
    vectors = []
    for text in some:
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        assert states.shape[1] == pooling["word_embedding_dimension"]
        vectors.append(states.mean(0) / states.mean(0).norm())
    return torch.stack(vectors).numpy()


def test_the_original_stays_as_it_is_and_is_judged_by_the_scores(scored: Any, encoder: Path) -> None:
    ours, theirs = load_saved_network(scored.folder.original), AutoModel.from_pretrained(encoder)
    for name, tensor in ours.backbone.state_dict().items():
        assert torch.equal(tensor, theirs.state_dict()[name])
    rows = load_context(scored.folder).task_data.task.splits["test"]
    left, right = (vectors_by_hand(encoder, some) for some in (rows.texts, rows.pairs))
    rho = stats.spearmanr((left * right).sum(1).round(6), rows.targets).statistic
    assert scored.result["metric"] == "cosine_spearman"
    assert scored.result["original"]["test_error"] == pytest.approx(1 - rho, abs=2e-4)
    assert all(
        entry["test_loss"]["low"] <= entry["test_loss"]["value"] <= entry["test_loss"]["high"] for entry in scored.front
    )


def test_sub_networks_learn_the_vectors(scored: Any) -> None:
    context = load_context(scored.folder)
    network = load_evaluator(scored.folder).network
    rows = evaluation_batches(context.task_data.encoded["train"], tokens=2000)
    with torch.no_grad():
        far = np.mean([float(vector_distance(network(**b.inputs).logits, b.targets)) for b in rows])
    assert far < 0.2  # of 2 for vectors that have nothing in common
    assert {"vectors", "order", "supernet", "candidates", "search"} <= set(scored.result["seconds_by_phase"])


def test_the_chosen_one_learns_further(scored: Any) -> None:
    asked = {"params": "60%", "recover_epochs": 0.5, "threads": 1}
    record = aw.select(scored.folder.path, **asked).as_json()["recovery"]
    assert all(0 <= record[when]["test_error"] < 1 for when in ("before", "after"))


def test_without_scores_it_is_judged_by_the_original_s_neighbours(unscored: Any) -> None:
    result = unscored.result
    assert result["metric"] == "neighbour_recall"
    assert result["original"]["test_error"] == 0
    assert all(0 <= entry["test_error"] < 1 for entry in unscored.front)
    assert "neighbour_recall" in (unscored.folder.path / "report.html").read_text()


def test_a_run_that_is_opened_again_has_the_same_targets(unscored: Any) -> None:
    evaluator = load_evaluator(unscored.folder)
    for entry in unscored.front:
        assert evaluator.error(entry["config"], evaluator.context.holdout_rows) == entry["validation_error"]
    (unscored.folder.path / FILE).unlink()
    again = load_context(unscored.folder)  # computed anew where the file is lost
    np.testing.assert_array_equal(
        again.task_data.encoded["train"].targets, evaluator.context.task_data.encoded["train"].targets
    )


@pytest.mark.parametrize("to", ["compact", "hf-padded", pytest.param("onnx", marks=pytest.mark.slow)])
def test_exports_give_the_same_vectors_and_say_how(to: str, scored: Any, tmp_path: Path) -> None:
    member = scored.member(scored.front[0]["trial"])
    report = member.save_pretrained(tmp_path / "out", to=to)
    assert report["difference_share"] <= report["limit"]
    assert "1_Pooling/config.json" in report["files"]
    card = (tmp_path / "out" / "README.md").read_text()
    assert "pipeline_tag: sentence-similarity" in card
    assert "cosine_spearman" in card
    assert "computes the mean" not in card  # no layer of it does
    if to == "onnx":
        return
    some = sentences(5, seed=3)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out", trust_remote_code=True)
    with torch.no_grad():
        ours = member.network(**tokenizer(some, padding=True, return_tensors="pt")).logits[:, 0]
    np.testing.assert_allclose(vectors_by_hand(tmp_path / "out", some), ours.numpy(), atol=1e-5)


def test_a_run_is_exported_though_vectors_lie_in_its_folder(scored: Any, tmp_path: Path) -> None:
    assert (scored.folder.path / FILE).is_file()
    trial = scored.front[0]["trial"]
    folder = aw.export(run=scored.folder.path, trial=trial, to="compact", out=tmp_path / "out").folder
    assert (folder / "modules.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("to", ["compact", "hf-padded", "hf"])
def test_sentence_transformers_reads_an_export(to: str, scored: Any, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    trial = -1 if to == "hf" else scored.front[0]["trial"]  # the original: only the whole network fits into `hf`
    network = load_saved_network(scored.folder.original) if to == "hf" else scored.member(trial).network
    folder = aw.export(run=scored.folder.path, trial=trial, to=to, out=tmp_path / "out").folder
    encoder = library.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    some = sentences(9, seed=4)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    with torch.no_grad():
        ours = network(**tokenizer(some, padding=True, return_tensors="pt")).logits[:, 0]
    assert encoder.max_seq_length == 40
    np.testing.assert_allclose(encoder.encode(some), ours.numpy(), atol=1e-5)


@pytest.mark.slow
def test_int8_files_are_judged_by_vectors_of_their_states(scored: Any, tmp_path: Path) -> None:
    asked = {"trial": scored.front[0]["trial"], "to": "onnx", "int8": True, "out": tmp_path / "out"}
    report = aw.export(run=scored.folder.path, **asked).as_json()
    assert report["test_error"] == pytest.approx(scored.front[0]["test_error"], abs=1e-3)
    assert abs(report["int8"]["test_error"] - report["test_error"]) < 0.2


@pytest.mark.parametrize(
    "options",
    [
        {"method": "layer-dropping", "epochs": 0.5},
        {"method": "retraining-free", "epochs": 2.0},
        {"vocabulary": "task", "embedding_rank": 16},
        {"strategy": "full", "teacher": "in-place", "metric": "neighbour_recall"},
    ],
    ids=lambda options: next(iter(options.values())),
)
def test_other_methods_and_smaller_embeddings(
    options: dict[str, Any], encoder: Path, pairs: Path, tmp_path: Path
) -> None:
    rows = {"train_rows": 64, "validation_rows": 30, "test_rows": 30}
    run = compressed(tmp_path / "run", model=str(encoder), task="embeddings", train=pairs, **rows, **options)
    assert run.front
    assert all(0 <= entry["test_error"] < 2 for entry in run.front)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"width": "50%"}, "--width makes the vectors themselves smaller, got --task embeddings"),
        ({"cut": "before", "vocabulary": "task"}, "--cut before needs fine-tuning"),
        ({"metric": "score.py:score"}, "a function can judge tasks with one answer per row"),
        ({"validation_rows": 9}, "validation rows need more than 10 texts to have 10 neighbours, got 9"),
    ],
)
def test_what_is_refused(
    options: dict[str, Any], rule: str, encoder: Path, texts: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = {"model": encoder, "task": "embeddings", "train": texts, "out": tmp_path / "run", **options}
    code, line = refusal(capfd, words_of("compress", **asked))
    assert code == 2
    assert rule in line
    assert not (tmp_path / "run").exists()


def test_the_distance_of_vectors_of_length_1_is_twice_the_cosine_distance() -> None:
    rng = torch.Generator().manual_seed(0)
    one, other = (torch.nn.functional.normalize(torch.randn(4, 2, 6, generator=rng), dim=-1) for _ in range(2))
    cosines = torch.nn.functional.cosine_similarity(one, other, dim=-1)
    assert float(task_loss(one, other)) == pytest.approx(float(2 * (1 - cosines).mean()), rel=1e-5)
    assert float(task_loss(3 * one, 3 * one)) == 0
    assert float(task_loss(2 * one, one)) == pytest.approx(1)  # lengths count as well


def test_importance_is_the_squared_change_of_the_vectors() -> None:
    """At the original its own vectors have no gradient; targets around them give the Jacobian's squares on average."""
    model, batch = tiny("bert", kind="embeddings", pooling="mean"), pair_batch("bert", texts=1)
    with torch.no_grad():
        vectors = model(**batch.inputs).logits
    exact = Batch(batch.inputs, vectors, np.arange(1))
    nothing, _ = mask_scores(model, [exact], task_loss, torch.square)
    assert max(float(row.max()) for row in nothing) < 1e-20
    repeated = {name: tensor.expand(DRAWS, -1, -1) for name, tensor in batch.inputs.items()}
    drawn = draw_targets(Batch(repeated, vectors.expand(DRAWS, -1, -1), np.arange(DRAWS)), seed=0)
    heads, units = mask_scores(model, [drawn], task_loss, torch.square)
    found, expected = torch.cat([*heads, *units]), jacobian_squares(model, batch, vectors)
    assert float(np.corrcoef(found.log(), expected.log())[0, 1]) > 0.98
    ratios = (found / expected).log()
    assert float(ratios.std()) < 0.2  # a common factor, up to the noise of the draws


def jacobian_squares(model: Any, batch: Any, vectors: torch.Tensor) -> torch.Tensor:
    """Per head and unit the squared gradient of a mask over it, added up over all channels of both vectors."""
    total, scale = 0, vectors.square().sum(-1, keepdim=True).sqrt()
    for text in range(vectors.shape[1]):
        for channel in range(vectors.shape[2]):

            def read(logits: torch.Tensor, _: torch.Tensor, text: int = text, channel: int = channel) -> torch.Tensor:
                return (logits / scale)[:, text, channel].sum()

            heads, units = mask_scores(model, [batch], read, torch.square)
            total = total + torch.cat([*heads, *units])
    return total


def test_fewer_training_rows_keep_their_vectors(unscored: Any) -> None:
    data = load_context(unscored.folder).task_data
    few = keep_rows(data, 50)
    assert len(few.encoded["train"]) == 50
    assert few.encoded["test"] is data.encoded["test"]
    again = with_targets(few, {"train": few.encoded["train"].targets})
    network = load_saved_network(unscored.folder.original)
    for batch in evaluation_batches(again.encoded["train"], tokens=2000):
        with torch.no_grad():
            torch.testing.assert_close(network(**batch.inputs).logits, batch.targets, rtol=0, atol=1e-5)


def test_recall_counts_every_text_of_a_row() -> None:
    rng = np.random.default_rng(0)
    vectors, original = (torch.from_numpy(rng.normal(size=(8, 2, 4)).astype(np.float32)) for _ in range(2))
    batches = [
        Batch({"rows": torch.tensor(rows)}, original[rows], np.array(rows)) for rows in ([5, 1, 7, 0], [2, 3, 4, 6])
    ]

    class Fixed(torch.nn.Module):
        device = torch.device("cpu")

        def forward(self, rows: torch.Tensor) -> SimpleNamespace:
            return SimpleNamespace(logits=vectors[rows])

    found: Any = measure_rows(Fixed(), batches, metric="neighbour_recall")  # type: ignore[arg-type]
    flat, wanted = (side.reshape(16, 4).numpy() for side in (vectors, original))
    units = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (flat, wanted)]
    shares = []
    for text in range(16):
        ours, theirs = (set(np.argsort(-(side @ side[text]))[1:11]) for side in units)
        shares.append(len(ours & theirs) / 10)
    assert found.answers.tolist() == pytest.approx(np.reshape(shares, (8, 2)).mean(1).tolist())
