"""Plain lines, the bar on a terminal, silence, and nothing at all for what is quickly done."""

import json
import os
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from archwright import progress as module
from archwright.progress import duration, format_numbers, progress, quiet, record_progress, remaining_time


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_quick_work_shows_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("search", 10, "trials") as bar:
        for _ in range(10):
            clock.now += 0.19
            bar.advance()
    assert lines(capsys) == []


def test_lines_come_at_most_every_five_seconds_with_share_and_time_left(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("search", 20, "trials") as bar:
        for step in range(20):
            clock.now += 1
            bar.advance(error=step / 100)
    assert lines(capsys) == [
        "search: 2/20 trials (10%), about 18 s left, error 0.01",
        "search: 7/20 trials (35%), about 13 s left, error 0.06",
        "search: 12/20 trials (60%), about 8 s left, error 0.11",
        "search: 17/20 trials (85%), about 3 s left, error 0.16",
        "search: 20/20 trials (100%), after 20 s, error 0.19",
    ]


def test_unknown_total_counts(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("read", None, "rows") as bar:
        clock.now += 3
        bar.advance(1234567)
    assert lines(capsys) == ["read: 1234567 rows", "read: 1234567 rows, after 3 s"]


def test_nothing_to_do_is_no_division_by_zero(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("search", 0, "trials"):
        clock.now += 3
    assert lines(capsys) == ["search: 0/0 trials, after 3 s"]


def test_an_error_inside_passes_and_says_how_far_it_came(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), progress("search", 4, "trials") as bar:
        clock.now += 1
        bar.advance()
        clock.now += 9
        raise KeyError
    assert lines(capsys) == ["search: 1/4 trials (25%), after 10 s"]


def test_quiet_is_silent_also_nested_and_in_threads_and_ends(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        with progress("search", 1) as bar:
            clock.now += 3
            bar.advance()

    with quiet():
        with pytest.raises(ValueError), quiet():
            raise ValueError
        work()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert lines(capsys) == []
    work()
    assert len(lines(capsys)) == 2


def on_terminal(code: str) -> str:
    """What a Python process writes to a terminal on its stderr."""
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen([sys.executable, "-c", code], stderr=slave, env=environment)
    os.close(slave)
    written = b""
    while chunk := _read(master):
        written += chunk
    os.close(master)
    assert process.wait() == 0
    return written.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux reports the other end's closing this way
        return b""


TERMINAL = """
import time
from pathlib import Path
from archwright import progress as module
module.DELAY = {delay}

def visible(bar):
    with bar.lock:
        return bar.rich.live.is_started

with module.progress("search [x]", 3, "trials") as outer:
    while {shown} and not visible(outer):  # two timers would end in any order
        time.sleep(0.01)
    with module.progress("measure", 2, "models") as inner:
        while {shown} and not (visible(outer) and visible(inner)):
            time.sleep(0.01)
        inner.advance(2, error=0.25)
    outer.advance(3)
"""


def test_terminal_shows_bars_inside_bars() -> None:
    written = on_terminal(TERMINAL.format(delay=0.1, shown=True))
    assert "search [x]" in written and "0/3 trials" in written and "3/3 trials" in written
    assert "2/2 models" in written and "error 0.25" in written


def test_terminal_shows_nothing_of_quick_work() -> None:
    assert on_terminal(TERMINAL.format(delay=300, shown=False)) == ""


def test_a_short_block_is_not_held_up_by_its_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_Lines", module._Terminal)  # stderr of a test is no terminal
    monkeypatch.setattr(module, "DELAY", 3600)
    begun, threads = time.monotonic(), set(threading.enumerate())
    for _ in range(20):
        with progress("search", 1) as bar:
            bar.advance()
    for timer in set(threading.enumerate()) - threads:
        timer.join(100)
        assert not timer.is_alive()
    assert time.monotonic() - begun < 200


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59.6, "1 min 00 s"), (200, "3 min 20 s"), (3599.9, "1 h 00 min"), (7505, "2 h 05 min")],
)
def test_duration(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_time_left_and_numbers() -> None:
    assert remaining_time(1, 4, 10) == "about 30 s left"
    assert remaining_time(0, 4, 10) == remaining_time(3, None, 10) == ""
    assert remaining_time(5, 4, 10) == "about 0 s left"
    assert format_numbers({"loss": 0.31234, "parameters": 1e7}) == "loss 0.312, parameters 1e+07"


def test_a_long_first_unit_is_announced_by_a_timer(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("test rows", 3, "networks") as bar:
        assert isinstance(bar, module._Lines) and bar.timer.interval == module.DELAY and bar.timer.daemon
        bar.timer.function()
        clock.now += 4
        bar.advance()
        bar.timer.function()  # too late: a unit is done, and its line was written
    bar.timer.function()
    assert lines(capsys) == [
        "test rows: 0/3 networks (0%)",
        "test rows: 1/3 networks (33%), about 8 s left",
        "test rows: 1/3 networks (33%), after 4 s",
    ]


def test_progress_is_recorded_for_other_processes(tmp_path: Path) -> None:
    """The file is whole whenever it is there, and gone at the end, also after an error."""
    file = tmp_path / "progress.json"
    with pytest.raises(KeyError), quiet(), record_progress(file), progress("search", 4, "trials") as bar:
        assert json.loads(file.read_text())["done"] == 0
        bar.advance(3)
        record = json.loads(file.read_text())
        assert record["description"] == "search" and record["total"] == 4 and record["unit"] == "trials"
        assert record["done"] in (0, 3)  # at most two records a second
        raise KeyError
    assert list(tmp_path.iterdir()) == []
