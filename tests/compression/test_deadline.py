"""The deadline of a run travels as seconds that remain: clocks of machines differ, and may jump."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archwright.compression import context
from archwright.compression.context import SharedDeadline, read_deadline, share_deadline, write_deadline
from archwright.store import RunFolder


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The clocks of the process that looks at them."""
    clock = SimpleNamespace(now=1000.0, wall=5.0)
    clock.monotonic, clock.time = lambda: clock.now, lambda: clock.wall
    monkeypatch.setattr(context, "time", clock)
    return clock


def move_to_another_machine(clock: Any) -> None:
    """Booted at another time, and an hour ahead."""
    clock.now, clock.wall = 70.0, clock.wall + 3600


def test_a_worker_an_hour_ahead_has_all_the_time_that_is_left(tmp_path: Path, here: Any) -> None:
    run = RunFolder(tmp_path)
    write_deadline(run, here.now + 300)
    move_to_another_machine(here)
    assert read_deadline(run) == pytest.approx(here.now + 300)
    write_deadline(run, None)
    assert read_deadline(run) is None


def test_runs_of_earlier_versions_have_a_time_of_day(tmp_path: Path) -> None:
    RunFolder(tmp_path).note("deadline", {"at": 1e9})
    assert read_deadline(RunFolder(tmp_path)) is None


def test_a_worker_follows_what_is_noted(tmp_path: Path, here: Any) -> None:
    run, deadline = RunFolder(tmp_path), SharedDeadline(RunFolder(tmp_path))
    assert deadline() is None
    write_deadline(run, here.now + 300)
    assert deadline() == pytest.approx(here.now + 300)
    latest, here.now = deadline(), here.now + 200
    assert deadline() == latest  # the same note is not read as if it were new
    write_deadline(run, here.now + 50)  # there was less time than thought
    assert deadline() == pytest.approx(here.now + 50)
    latest = deadline()
    write_deadline(run, None)
    assert deadline() == latest  # the search is over


def test_it_is_noted_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "NOTED_EVERY", 0.01)
    run = RunFolder(tmp_path)
    with share_deadline(run, context.time.monotonic() + 300):
        first = run.note("deadline")
        while run.note("deadline") == first:
            context.time.sleep(0.01)
        assert run.note("deadline")["remaining"] < first["remaining"] < 300
