"""Students on a task with a teacher whose answers are kept, with further rows, and with a training that collapses."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from archwright.errors import BadInput
from archwright.reports.train import train_lines
from archwright.training import collapse
from archwright.training.teaching.cache import AnswerCache
from tests.training.pipeline.runs import QUICK, trained
from tests.training.pipeline.test_resume import interrupted

STUDY: dict[str, Any] = {
    "epochs": 3.0, "batch_size": 16, "max_length": 24, "threads": 1, "learning_rate": 1e-3, "teacher_epochs": 0.1
}  # fmt: skip


@pytest.fixture
def student(bert: Path, rows: Path, designs: dict[str, Path]) -> dict[str, Any]:
    return {**STUDY, "space": "flexibert", "config": designs["flexibert"], "teacher": str(bert), "train": rows}


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def same(one: Path, other: Path) -> bool:
    mine, theirs = weights_of(one), weights_of(other)
    return mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_kept_answers_survive_an_interruption_and_are_gone_afterwards(
    student: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {**student, "checkpoint_seconds": 0.0}
    whole = trained(tmp_path / "whole", **words).as_json()
    assert whole["teacher_cache"]["share"] == 1.0 and whole["teacher_cache"]["rows"] == whole["rows"]
    assert not (tmp_path / "whole" / "teacher-answers").exists()
    with monkeypatch.context() as patch:
        interrupted(patch, at=whole["steps"] // 2)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "cut", **words)
    assert list((tmp_path / "cut" / "teacher-answers").glob("*/states.bin"))
    resumed = trained(tmp_path / "cut", **words).as_json()
    assert same(tmp_path / "whole", tmp_path / "cut") and not (tmp_path / "cut" / "teacher-answers").exists()
    assert any("teacher's answers to" in line for line in train_lines(resumed, None))
    first = json.loads((tmp_path / "cut" / "schedule.json").read_text())["prepared"]  # with the teacher's fine-tuning
    assert resumed["seconds"]["prepared"] >= first > 0


@pytest.mark.slow
def test_a_shared_folder_a_limit_and_none_at_all_teach_alike(
    student: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = {**student, "teacher_cache": tmp_path / "answers"}
    first = trained(tmp_path / "first", **shared).as_json()
    with monkeypatch.context() as patch:
        patch.setattr(AnswerCache, "write", None)  # all rows are there already
        second = trained(tmp_path / "second", **shared).as_json()
    assert len(list((tmp_path / "answers").iterdir())) == 1
    limit = first["teacher_cache"]["bytes"] / 2e9
    part = trained(tmp_path / "part", **{**student, "teacher_cache_gb": limit}).as_json()
    none = trained(tmp_path / "none", **{**student, "teacher_cache_gb": 0.0}).as_json()
    assert 0.3 < part["teacher_cache"]["share"] < 0.7 and "teacher_cache" not in none
    last = [found["losses"]["last"] for found in (first, second, part, none)]
    assert last == pytest.approx([last[0]] * 4, rel=2e-3)


def test_labels_hidden_tokens_and_no_layers(
    student: dict[str, Any], text: Path, bert: Path, designs: dict[str, Path], tmp_path: Path
) -> None:
    short = {**student, "epochs": 1.0}
    losses = {
        name: trained(tmp_path / name, **short, **weights).as_json()["losses"]["first"]
        for name, weights in {
            "all": {"label_weight": 1.0},
            "layers": {"logit_weight": 0.0},
            "answers": {"layer_weight": 0.0},
        }.items()
    }
    assert losses["answers"] < 1.0 < losses["layers"] < losses["all"]
    words = {**QUICK, "steps": 4, "batch_size": 4, "validation_rows": 8, "learning_rate": 1e-3}
    words |= {"space": "flexibert", "config": designs["flexibert"], "corpus": text, "lesson": "distil"}
    found = trained(tmp_path / "mlm", teacher=str(bert), mlm_weight=1.0, **words).as_json()
    before, after = (found["validation"][when] for when in ("before", "after"))
    assert after["mlm_loss"] < before["mlm_loss"] and after["loss"] < before["loss"]


def test_further_rows_are_answered_by_the_teacher(
    student: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    more = tmp_path / "more.txt"
    more.write_text("a good film\n\na bad film\n" * 5)
    words = {**student, "epochs": 1.0, "unlabelled": more, "augment": 2, "label_weight": 1.0}
    plain = trained(tmp_path / "plain", **{**student, "epochs": 1.0}).as_json()
    found = trained(tmp_path / "more", **words).as_json()
    assert found["rows"] == 3 * (plain["rows"] + 10)
    assert found["steps"] > 2.5 * plain["steps"]
    assert not (tmp_path / "more" / "augmented.npz").exists()
    assert sum("has no head that fills in masked words: words are exchanged" in line for line in caplog.messages) == 1


def test_a_collapsed_training_begins_again_once(
    rows: Path, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(collapse, "FEWEST_STEPS", 4)
    monkeypatch.setattr(collapse, "FEWEST_ROWS", 10)
    words = {"model": str(bert), "train": rows, "max_length": 24, "threads": 1, "batch_size": 8, "steps": 8}
    words |= {"learning_rate": 0.5, "checkpoint_seconds": 0.0}  # far too high
    found = trained(tmp_path / "run", **words).as_json()
    assert found["collapse"]["step"] == 2 and found["schedule"]["learning_rate"] == pytest.approx(0.15)
    assert sum("has collapsed at step 2" in line for line in caplog.messages) == 1
    assert any(line.startswith("collapsed at step 2 (") for line in train_lines(found, None))
    assert len((tmp_path / "run" / "log.csv").read_text().splitlines()) == 1 + 8
    with monkeypatch.context() as patch:
        interrupted(patch, at=5)  # the second training: the first ends before
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "cut", **words)
    assert json.loads((tmp_path / "cut" / "collapse.json").read_text())["step"] == 2
    trained(tmp_path / "cut", **words)
    assert same(tmp_path / "run", tmp_path / "cut") and not list((tmp_path / "cut").glob("checkpoint*"))
    alone = trained(tmp_path / "alone", **words, restart_collapsed=False).as_json()
    assert alone["collapse"] is None and alone["schedule"]["learning_rate"] == 0.5


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "cache without a teacher": ({"teacher": None, "teacher_cache_gb": 1.0}, "--teacher-cache-gb has no effect without"),
    "folder of no cache": ({"teacher_cache": Path("x"), "teacher_cache_gb": 0.0}, "--teacher-cache has no effect with"),
    "no weights": ({"layer_weight": 0.0, "logit_weight": 0.0}, "must not both be 0"),
    "tokens of a task": ({"mlm_weight": 1.0}, "--mlm-weight has no effect without --lesson distil"),
    "words of no copies": ({"augment_with": "neighbours"}, "--augment-with has no effect without --augment"),
    "no such rows": ({"unlabelled": Path("nothing.txt")}, "--unlabelled must be a file with texts, there is no 'noth"),
    "negative copies": ({"augment": -1}, "--augment must not be negative, got -1"),
    "teacher without epochs": ({"teacher_epochs": 0.0}, "--teacher-epochs must be above 0, got 0.0"),
    "rate of a teacher": (
        {"teacher_learning_rate": 2.0},
        "--teacher-learning-rate must be above 0 and below 1, got 2.0",
    ),
    "negative cache": ({"teacher_cache_gb": -1.0}, "--teacher-cache-gb must not be negative, got -1.0"),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG)
def test_one_line(changes: dict[str, Any], message: str, student: dict[str, Any], tmp_path: Path) -> None:
    options = {name: value for name, value in {**student, **changes}.items() if value is not None}
    options = {k: v for k, v in options.items() if changes.get("teacher", k) or k != "teacher_epochs"}
    with pytest.raises(BadInput) as caught:
        trained(tmp_path / "run", **options)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
