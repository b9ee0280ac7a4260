"""An interrupted training goes on as if nothing had happened."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from archwright.errors import Failed
from archwright.store.logs import TrainingLog, read_log
from archwright.training.loop import StepRecord, TrainingStep
from tests.training.pipeline.runs import QUICK, trained


def interrupted(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """The next training stops before this step, as by Ctrl-C."""
    gradients = TrainingStep.gradients

    def cut(self: Any, step: int, own: Any) -> Any:
        if step == at:
            raise KeyboardInterrupt
        return gradients(self, step, own)

    monkeypatch.setattr(TrainingStep, "gradients", cut)


@pytest.mark.parametrize(("lesson", "space"), [("mlm", "flexibert"), ("electra", "flexibert"), ("lm", "rnn")])
def test_resumed_equals_undisturbed(
    lesson: str, space: str, text: Path, designs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {**QUICK, "steps": 6, "batch_size": 4, "lesson": lesson, "corpus": text, "tokenizer": "words"}
    words |= {"space": space, "config": designs[space], "checkpoint_seconds": 0.0}
    trained(tmp_path / "whole", **words)
    with monkeypatch.context() as patch:
        interrupted(patch, at=4)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "cut", **words)
    assert (tmp_path / "cut" / "checkpoint-training.safetensors").exists()
    trained(tmp_path / "cut", **words)
    one, other = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "cut"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)
    steps = [line.split(",")[:2] for line in (tmp_path / "cut" / "log.csv").read_text().splitlines()]
    assert steps == [line.split(",")[:2] for line in (tmp_path / "whole" / "log.csv").read_text().splitlines()]


def test_a_loss_that_is_no_number_keeps_the_last_good_state(
    text: Path, encoder: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradients = TrainingStep.gradients

    def broken(self: Any, step: int, own: Any) -> Any:
        loss = gradients(self, step, own)
        return loss * float("nan") if step == 3 else loss

    words = {**QUICK, "steps": 5, "lesson": "mlm", "corpus": text, "checkpoint_seconds": 0.0}
    with monkeypatch.context() as patch:
        patch.setattr(TrainingStep, "gradients", broken)
        with pytest.raises(Failed, match=r"nan .*at step 3; the last good checkpoint is kept"):
            trained(tmp_path / "run", **encoder, **words)
    assert trained(tmp_path / "run", **encoder, **words).as_json()["steps"] == 5


def test_the_log_is_never_behind_a_checkpoint(tmp_path: Path) -> None:
    with TrainingLog(tmp_path / "log.csv") as log:
        for step in range(3):
            log(StepRecord(step, 1.0, 1e-3, 10, 0.1))
            assert [row["step"] for row in read_log(tmp_path / "log.csv")] == list(range(step + 1))  # not closed yet


def test_a_full_disk_is_one_line(
    text: Path, encoder: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    words = {**QUICK, "steps": 3, "lesson": "mlm", "corpus": text}
    with monkeypatch.context() as patch:
        patch.setattr("archwright.networks.flexibert.network.FlexiBertNetwork.save_pretrained", full)
        with pytest.raises(OSError, match="No space left"):
            trained(tmp_path / "run", **encoder, **words)
    assert not (tmp_path / "run" / "model").exists()
    assert not (tmp_path / "run" / "result.json").exists()
    assert trained(tmp_path / "run", **encoder, **words).as_json()["steps"] == 3
