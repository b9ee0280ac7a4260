"""A full disk, and what a step tells: one clear line, the last good checkpoint, the log, the progress."""

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from archwright import progress as shown
from archwright.errors import Failed
from archwright.store.checkpoints import FileCheckpoints
from archwright.training.distributed import SINGLE_PROCESS
from archwright.training.loop import StepRecord, train_network
from archwright.training.schedule import Schedule
from tests.training.cases import CASES

ALWAYS = -1.0
SCHEDULE = Schedule(steps=5, learning_rate=1e-2, warmup=0.2)


@contextmanager
def no_room(size: int) -> Iterator[None]:
    """No file may grow beyond this, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def attempt(path: Path, **options: Any) -> Any:
    case = CASES["masked"](SINGLE_PROCESS)
    checkpoints = FileCheckpoints(path)
    train_network(
        case.model,
        lambda _: case.batches,
        case.update,
        SCHEDULE,
        seed=2,
        checkpoints=checkpoints,
        every_seconds=ALWAYS,
        **options,
    )
    return case.model.state_dict()


def only_line(failure: pytest.ExceptionInfo[Failed], path: Path) -> str:
    line = str(failure.value)
    assert "\n" not in line and str(path) in line and "make room" in line
    return line


def test_a_disk_without_room_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    path, other = tmp_path / "check.safetensors", tmp_path / "other.safetensors"
    attempt(path, stop=2)
    before = path.read_bytes()
    with no_room(len(before) // 2), pytest.raises(Failed) as failure:
        attempt(path)
    only_line(failure, path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    again, whole = attempt(path), attempt(other)  # room was made
    assert all(torch.equal(value, again[name]) for name, value in whole.items())


def test_an_error_of_the_system_is_one_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, calls = tmp_path / "check.safetensors", count(1)

    def full(_: int) -> None:
        if next(calls) == 5:  # the third file: each is synced, and then its folder
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("archwright.store.files.os.fsync", full)
    with pytest.raises(Failed) as failure:
        attempt(path)
    assert "No space left" in only_line(failure, path)
    state = FileCheckpoints(path).load()
    assert state is not None and state["step"] == 2


def test_every_step_is_told(tmp_path: Path) -> None:
    records: list[StepRecord] = []
    attempt(tmp_path / "check.safetensors", log=records.append)
    case = CASES["masked"](SINGLE_PROCESS)
    tokens = [int(batch.inputs["attention_mask"].sum()) for batch in (*case.batches, case.batches[0])]
    assert [record.step for record in records] == list(range(5))
    assert [record.tokens for record in records] == tokens
    assert [record.learning_rate for record in records] == pytest.approx([0.01, 0.01, 0.0075, 0.005, 0.0025])
    assert all(record.seconds > 0 and record.loss > 0 for record in records)
    again: list[StepRecord] = []
    attempt(tmp_path / "check.safetensors", log=again.append)
    assert again == []


def test_progress_shows_loss_speed_and_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shown, "DELAY", 0.0)
    monkeypatch.setattr(shown, "PAUSE", 0.0)
    attempt(tmp_path / "check.safetensors", title="reading")
    lines = capfd.readouterr().err.splitlines()
    assert lines and all(line.startswith("reading: ") for line in lines)
    told = lines[-2]
    assert "loss" in told and "k tokens/s" in told and "left" in told
