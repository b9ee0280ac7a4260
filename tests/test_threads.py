"""The number of threads: as the user, the environment or the caller says, else whatever is faster."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from archwright import threads
from archwright.commands import run_command
from archwright.threads import choose_threads, fastest_threads, restore_threads


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Eight cores, nothing said about threads."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "available_cores", lambda: 8)
    monkeypatch.setattr(threads, "default_threads", lambda: {torch.get_num_threads()})
    fastest_threads.cache_clear()
    with restore_threads():
        yield
    fastest_threads.cache_clear()


def seconds(monkeypatch: pytest.MonkeyPatch, one: float, many: float) -> None:
    monkeypatch.setattr(threads, "measure_seconds", lambda *_: [one, many])


def test_the_option_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert choose_threads(3, note=tmp_path / "threads.json") == 3 == torch.get_num_threads()


def test_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2,1")
    assert choose_threads(0, processes=4) == 2


def test_then_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "default_threads", lambda: {8})
    torch.set_num_threads(3)
    assert choose_threads(0) == 3


def test_then_what_the_run_began_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seconds(monkeypatch, one=2.0, many=1.0)
    (tmp_path / "threads.json").write_text(json.dumps({"threads": 5}))
    assert choose_threads(0, note=tmp_path / "threads.json") == 5
    assert choose_threads(0, note=tmp_path / "none.json") == 8


def test_else_the_cores_are_shared_unless_one_thread_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds(monkeypatch, one=2.0, many=1.0)
    assert choose_threads(0, processes=2) == 4 and choose_threads(0, processes=20) == 1
    fastest_threads.cache_clear()
    seconds(monkeypatch, one=1.0, many=10.0)
    assert choose_threads(0, processes=2) == 1


def test_the_measurement_is_short_and_leaves_nothing() -> None:
    before = torch.get_num_threads()
    assert all(0 < taken < 1 for taken in threads.measure_seconds(1, 2)) and torch.get_num_threads() == before


def test_a_command_leaves_the_callers_threads_alone() -> None:
    before = torch.get_num_threads()
    assert run_command(lambda config: choose_threads(config), before + 1) == before + 1
    assert torch.get_num_threads() == before


def test_a_measured_choice_is_told_without_asking(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("archwright.threads.default_threads", lambda: {torch.get_num_threads()})
    monkeypatch.setattr("archwright.threads.fastest_threads", lambda most: (1, "measured"))
    with threads.restore_threads():
        threads.choose_threads(0)
        assert [record.levelname for record in caplog.records if "measured" in record.message] == ["WARNING"]
