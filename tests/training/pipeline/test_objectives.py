"""Every lesson teaches: the loss on rows that are not learnt falls; what is kept is an ordinary checkpoint."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from archwright.data.text.tokenizer import read_tokenizer
from archwright.errors import BadInput
from archwright.networks.load import load_saved_network
from archwright.reports.train import train_lines
from archwright.spaces import ARCHITECTURES
from archwright.spaces.flexibert import LAYER
from archwright.store.files import read_json
from archwright.training.objectives.layers import record_layers, run_network
from archwright.training.students import load_student, load_teacher
from tests.training.pipeline.runs import DESIGNS, QUICK, trained

BEFORE_AFTER = ("before", "after")


def fell(document: dict[str, Any], least: float) -> None:
    before, after = (document["validation"][when]["loss"] for when in BEFORE_AFTER)
    assert after < before - least, (before, after)


def test_masked_words_are_learnt_and_kept(pretrained: Any, text: Path) -> None:
    document, folder = pretrained.as_json(), pretrained.folder
    fell(document, 0.5)
    assert document["schema"] == "archwright/train/1"
    assert document["steps"] == 60
    assert document["losses"]["last"] < document["losses"]["first"]
    assert document["validation"]["after"]["perplexity"] == pytest.approx(
        torch.tensor(document["validation"]["after"]["loss"]).exp().item(), rel=1e-5
    )
    assert read_json(folder / "result.json") == document
    with open(folder / "log.csv", newline="") as file:
        log = list(csv.DictReader(file))
    assert [int(row["step"]) for row in log] == list(range(60))
    assert sum(int(row["tokens"]) for row in log) == document["tokens"]
    assert {int(row["tokens"]) % 16 for row in log} == {0}  # packed: no padding
    assert not list(folder.glob("checkpoint*"))
    assert "Loss over the steps" in (folder / "report.html").read_text()


def test_the_kept_network_is_the_one_that_was_judged(pretrained: Any) -> None:
    source = str(pretrained.folder / "model")
    network, tokenizer = load_student(source, "mlm", seed=0).eval(), read_tokenizer(source)
    ids = tokenizer("the old film is [MASK] the and the", return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        place = int((ids["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0])
        guess = network(**ids).logits[0, place].argmax()
    assert tokenizer.decode([int(guess)]) == "the"


def test_the_same_command_again_does_nothing(pretrained: Any, text: Path, encoder: dict[str, Any]) -> None:
    stamp = (pretrained.folder / "result.json").stat().st_mtime_ns
    again = trained(pretrained.folder, **encoder, corpus=text, lesson="mlm", **{**QUICK, "steps": 60})
    assert again.as_json() == pretrained.as_json()
    assert (pretrained.folder / "result.json").stat().st_mtime_ns == stamp


def test_seeds(text: Path, encoder: dict[str, Any], tmp_path: Path) -> None:
    words = {**encoder, "corpus": text, "lesson": "mlm", **QUICK, "steps": 3}
    losses = [
        trained(tmp_path / name, **words, seed=seed).as_json()["losses"]["curve"]
        for name, seed in {"a": 0, "b": 0, "c": 1}.items()
    ]
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


def test_electra(text: Path, encoder: dict[str, Any], tmp_path: Path) -> None:
    found = trained(tmp_path / "run", **encoder, corpus=text, lesson="electra", **QUICK).as_json()
    fell(found, 5.0)
    after = found["validation"]["after"]
    assert after["loss"] == pytest.approx(after["generator_loss"] + 50 * after["discriminator_loss"], rel=0.2)
    assert found["generator_parameters"] < 0.5 * found["parameters"]
    assert (tmp_path / "run" / "generator" / "config.json").exists()
    sizes = json.loads((tmp_path / "run" / "generator" / "config.json").read_text())
    assert (sizes["hidden_size"], sizes["embedding_size"], sizes["loss"]) == (32, 128, "mlm")


@pytest.mark.parametrize("operation", LAYER["operation"])
def test_electra_with_every_operator(operation: str, text: Path, encoder: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(DESIGNS["flexibert"] | {"operation.0": operation, "heads.0": 2}))
    words = {**encoder, "config": file, "corpus": text, "lesson": "electra", **QUICK, "steps": 2}
    assert trained(tmp_path / "run", **words).as_json()["generator_parameters"] > 0


@pytest.mark.parametrize(("space", "rate"), [("gpt2", 5e-3), ("rnn", 5e-4)])
def test_next_words(space: str, rate: float, text: Path, designs: dict[str, Path], tmp_path: Path) -> None:
    words = {**QUICK, "steps": 12, "learning_rate": rate, "batch_size": 4}
    found = trained(
        tmp_path / "run", space=space, config=designs[space], tokenizer="words", corpus=text, lesson="lm", **words
    )
    fell(found.as_json(), 0.3)
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()
    on = trained(tmp_path / "on", model=str(tmp_path / "run"), corpus=text, lesson="lm", **{**words, "steps": 1})
    start = on.as_json()["validation"]["before"]["loss"]
    assert start == pytest.approx(found.as_json()["validation"]["after"]["loss"], abs=1e-4)
    again = trained(tmp_path / "again", model=str(tmp_path / "on"), corpus=text, lesson="lm", **{**words, "steps": 1})
    assert again.as_json()["parameters"] == found.as_json()["parameters"]


@pytest.mark.parametrize("space", ["flexibert", "nlu-tiny"])
def test_layers_of_a_teacher(space: str, text: Path, designs: dict[str, Path], bert: Path, tmp_path: Path) -> None:
    words = {**QUICK, "steps": 6, "batch_size": 4, "validation_rows": 8}
    found = trained(
        tmp_path / "run", space=space, config=designs[space], corpus=text, lesson="distil", teacher=str(bert), **words
    ).as_json()
    fell(found, 0.0)
    pairs = {"flexibert": [[1, 2], [2, 3]], "nlu-tiny": [[2, 1], [4, 2], [6, 3]]}  # three layers teach
    assert found["layers"] == pairs[space]


def test_a_network_that_was_fine_tuned_here_teaches_its_states(
    text: Path, rows: Path, designs: dict[str, Path], bert: Path, tmp_path: Path
) -> None:
    words = {**QUICK, "steps": 2}
    tuned = trained(tmp_path / "tuned", model=str(bert), train=rows, **words).folder / "model"
    teacher, whole = load_teacher(str(tuned)), load_saved_network(tuned)
    inputs = {"input_ids": torch.arange(5, 13)[None], "attention_mask": torch.ones(1, 8, dtype=torch.long)}
    with record_layers(teacher) as states:
        run_network(teacher, inputs, logits=False)
    with record_layers(whole) as expected:
        run_network(whole, inputs, logits=True)
    assert len(states.hidden) == 3 and all(state.equal(expected.hidden[at]) for at, state in states.hidden.items())
    words |= {"space": "nlu-tiny", "config": designs["nlu-tiny"], "corpus": text, "lesson": "distil"}
    found = trained(tmp_path / "run", teacher=str(tuned), start="teacher", **words).as_json()
    assert found["layers"] == [[2, 1], [4, 2], [6, 3]]


def test_a_student_that_starts_from_its_teacher(
    text: Path, designs: dict[str, Path], bert: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = {**QUICK, "steps": 4, "batch_size": 4, "validation_rows": 8, "learning_rate": 1e-4}
    words |= {"space": "nlu-tiny", "config": designs["nlu-tiny"], "corpus": text, "lesson": "distil"}
    runs = {
        start: trained(tmp_path / start, teacher=str(bert), start=start, **words) for start in ("random", "teacher")
    }
    before = {start: run.as_json()["validation"]["before"]["loss"] for start, run in runs.items()}
    assert before["teacher"] < 0.5 * before["random"]
    assert "have no counterpart in the teacher's 48: they start at zero" in caplog.text
    parts = runs["teacher"].as_json()["start"]["parts"]
    assert [part["part"] for part in parts][:2] == ["embeddings", "layer 1 (mobile-132)"]
    assert [part["explained"] is None for part in parts] == [False, True, False, True, False, True, False]
    lines = list(train_lines(runs["teacher"].as_json(), None))
    assert any("layer 2 (mobile-132), layer 1 of the teacher: " in line for line in lines)
    again = trained(tmp_path / "again", teacher=str(bert), start="teacher", **words).as_json()
    assert again["losses"] == runs["teacher"].as_json()["losses"]


def test_lines_as_rows(text: Path, encoder: dict[str, Any], tmp_path: Path) -> None:
    found = trained(tmp_path / "run", **encoder, corpus=text, lesson="mlm", layout="lines", **QUICK).as_json()
    assert found["rows"] == 285
    assert found["tokens"] < 25 * 8 * 16
    fell(found, 0.2)


def test_minutes_plan_fewer_steps(text: Path, encoder: dict[str, Any], tmp_path: Path) -> None:
    words = {**QUICK, "steps": 10**6, "minutes": 0.004}
    found = trained(tmp_path / "run", **encoder, corpus=text, lesson="mlm", **words).as_json()
    assert 1 <= found["steps"] < 10_000


def test_a_design_file(pretrained: Any, text: Path, designs: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "design.json"
    config = json.loads(designs["flexibert"].read_text())
    file.write_text(json.dumps({"space": "flexibert", "variant": "trained", "config": config, "score": 1.0}))
    words = {**QUICK, "steps": 2, "tokenizer": "words"}
    found = trained(tmp_path / "run", design=file, corpus=text, lesson="mlm", **words).as_json()
    assert found["parameters"] == pretrained.as_json()["parameters"]


@pytest.mark.parametrize(("space", "lesson"), [("flexibert", "mlm"), ("nlu-tiny", "electra"), ("gpt2", "lm")])
def test_a_larger_design(space: str, lesson: str, text: Path, designs: dict[str, Path], tmp_path: Path) -> None:
    file, config = tmp_path / "design.json", json.loads(designs[space].read_text())
    larger = ARCHITECTURES[space].scale_up(ARCHITECTURES[space].plan(config), 2)
    found = {"space": space, "config": config, "scaled_up": {"factor": 2, "config": larger.to_diff_dict()}}
    file.write_text(json.dumps(found))
    words = {**QUICK, "steps": 1, "batch_size": 2, "validation_rows": 2, "tokenizer": "words", "corpus": text}
    trained(tmp_path / "run", design=file, scaled_up=True, lesson=lesson, **words)
    made = load_student(str(tmp_path / "run" / "model"), lesson, seed=0).config
    assert made.vocab_size < 300
    assert made.hidden_size == larger.hidden_size
    assert json.loads(json.dumps(layers_in(made))) == json.loads(json.dumps(layers_in(larger)))


def layers_in(config: Any) -> Any:
    return getattr(config, "layers", None) or config.d_inner


def test_a_design_that_was_not_made_larger(designs: dict[str, Path], text: Path, tmp_path: Path) -> None:
    file = tmp_path / "design.json"
    file.write_text(json.dumps({"space": "flexibert", "config": json.loads(designs["flexibert"].read_text())}))
    with pytest.raises(BadInput, match="has no larger architecture"):
        trained(tmp_path / "run", design=file, scaled_up=True, lesson="mlm", corpus=text, **QUICK)
    assert not (tmp_path / "run").exists()


def test_electra_goes_on_with_its_generator(text: Path, encoder: dict[str, Any], tmp_path: Path) -> None:
    words = {**QUICK, "corpus": text, "lesson": "electra", "steps": 6}
    first = trained(tmp_path / "one", **encoder, **words).as_json()["validation"]["after"]
    on = trained(tmp_path / "two", model=str(tmp_path / "one"), **{**words, "steps": 1}).as_json()
    assert on["validation"]["before"]["generator_loss"] == pytest.approx(first["generator_loss"], abs=1e-4)
    assert on["validation"]["before"]["discriminator_loss"] == pytest.approx(first["discriminator_loss"], abs=1e-4)


@pytest.mark.parametrize(("lesson", "teacher"), [("mlm", False), ("distil", True)])
def test_stock_checkpoints_go_on(lesson: str, teacher: bool, text: Path, bert: Path, tmp_path: Path) -> None:
    words = {**QUICK, "corpus": text, "lesson": lesson, "model": str(bert), "steps": 3, "batch_size": 4}
    found = trained(tmp_path / "run", **words, **({"teacher": str(bert)} if teacher else {})).as_json()
    assert found["steps"] == 3
    config = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert config["model_type"] == "bert"
    assert "auto_map" not in config
