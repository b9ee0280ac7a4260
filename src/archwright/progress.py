"""How far a long piece of work has come: a bar with the time left on a terminal, plain lines elsewhere."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console

DELAY = 2.0
"""Seconds of work before anything is shown."""
PAUSE = 5.0
"""Seconds between two plain lines."""
RECORD_PAUSE = 0.5
"""Seconds between two records."""

_quiet_blocks = 0  # of the whole process, like the stderr it is about: threads started inside are silent too
_record_file: Path | None = None  # of the whole process too: one command works in one run folder


class Bar(Protocol):
    """What a `progress` block hands out."""

    def advance(self, n: float = 1, **numbers: float) -> None:
        """`n` more units are done; `numbers` are shown beside, e.g. loss=0.3."""


@contextmanager
def quiet() -> Iterator[None]:
    """No `progress` block that begins inside shows anything."""
    global _quiet_blocks
    _quiet_blocks += 1
    try:
        yield
    finally:
        _quiet_blocks -= 1


@contextmanager
def record_progress(path: Path) -> Iterator[None]:
    """Progress blocks inside also write how far they are into this file, for other processes that watch.

    The file is gone when the block ends well or badly; a killed process leaves it.
    """
    global _record_file
    before, _record_file = _record_file, path
    try:
        yield
    finally:
        _record_file = before
        path.unlink(missing_ok=True)


@contextmanager
def progress(description: str, total: float | None, unit: str = "steps") -> Iterator[Bar]:
    """A bar of `total` units (None: unknown), shown on stderr once the work takes longer than two seconds.

    >>> with progress("search", trials, "trials") as bar:
    ...     for _ in range(trials):
    ...         bar.advance(error=0.1)
    """
    bar: _Shown
    if _quiet_blocks:
        bar = _Silent()
    elif not sys.stderr.isatty() or _console().is_dumb_terminal:
        bar = _Lines(description, total, unit)
    else:
        bar = _Terminal(description, total, unit)
    if _record_file is not None:
        bar = _Recorded(bar, _record_file, description, total, unit)
    bar.start()
    try:
        yield bar
    finally:
        bar.stop()


class _Shown(Bar, Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


class _Silent:
    def start(self) -> None:
        pass

    def advance(self, n: float = 1, **numbers: float) -> None:
        pass

    def stop(self) -> None:
        pass


class _Recorded:
    """A bar that also writes a small JSON file, whole or not at all; a file that cannot be written is no reason to end.

    `begun` and `at` are seconds since 1970, so that another process can tell the time left and how old the record is.
    """

    def __init__(self, bar: _Shown, path: Path, description: str, total: float | None, unit: str) -> None:
        self.bar, self.path, self.next, self.done = bar, path, 0.0, 0.0
        self.facts = {"description": description, "total": total, "unit": unit, "begun": time.time()}

    def start(self) -> None:
        self.bar.start()
        self.write()

    def advance(self, n: float = 1, **numbers: float) -> None:
        self.bar.advance(n, **numbers)
        self.done += n
        if time.monotonic() >= self.next:
            self.write()

    def stop(self) -> None:
        self.bar.stop()

    def write(self) -> None:
        self.next = time.monotonic() + RECORD_PAUSE
        beside = self.path.with_name(f".{self.path.name}.{os.getpid():08d}")
        try:
            beside.write_text(json.dumps({**self.facts, "done": self.done, "at": time.time()}))
            os.replace(beside, self.path)
        except OSError:
            beside.unlink(missing_ok=True)


class _Lines:
    """Plain lines for log files: percentage, time left and numbers, at most one per `PAUSE` seconds.

    A timer writes the first one when the first unit takes longer than `DELAY` seconds.
    """

    def __init__(self, description: str, total: float | None, unit: str) -> None:
        self.description, self.total, self.unit = description, total, unit
        self.done = 0.0
        self.numbers: dict[str, float] = {}
        self.timer = threading.Timer(DELAY, self.begin)
        self.timer.daemon = True
        self.lock = threading.Lock()  # between the timer and the work
        self.ended = False

    def start(self) -> None:
        self.begun = time.monotonic()
        self.next = self.begun + DELAY
        self.timer.start()

    def begin(self) -> None:
        with self.lock:
            if not self.ended and not self.done:
                self.write("")

    def advance(self, n: float = 1, **numbers: float) -> None:
        with self.lock:
            self.done += n
            self.numbers = numbers or self.numbers
            if time.monotonic() >= self.next:
                self.next = time.monotonic() + PAUSE
                self.write(remaining_time(self.done, self.total, time.monotonic() - self.begun))

    def stop(self) -> None:
        self.timer.cancel()
        with self.lock:
            self.ended = True
            seconds = time.monotonic() - self.begun
            if seconds >= DELAY:
                self.write(f"after {duration(seconds)}")

    def write(self, when: str) -> None:
        share = f" ({self.done / self.total:.0%})" if self.total else ""
        parts = (f"{_amount(self.done, self.total)} {self.unit}{share}", when, format_numbers(self.numbers))
        print(f"{self.description}: " + ", ".join(part for part in parts if part), file=sys.stderr, flush=True)


class _Terminal:
    """A rich bar; a timer shows it after `DELAY` seconds, also when the first unit takes longer than that."""

    def __init__(self, description: str, total: float | None, unit: str) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        fields = ("description", "fields[amount]", "fields[numbers]")
        name, amount, numbers = (TextColumn(f"{{task.{field}}}", markup=False) for field in fields)
        times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        self.rich = Progress(name, BarColumn(), amount, *times, numbers, console=_console())
        self.total, self.unit, self.done = total, unit, 0.0
        self.numbers: dict[str, float] = {}
        self.task = self.rich.add_task(description, total=total, amount=self.amount(), numbers="")
        self.timer = threading.Timer(DELAY, self.show)
        self.timer.daemon = True
        self.lock = threading.Lock()  # between the timer and the end of the block
        self.ended = False

    def amount(self) -> str:
        return f"{_amount(self.done, self.total)} {self.unit}"

    def show(self) -> None:
        with self.lock:
            if not self.ended:
                self.rich.start()

    def start(self) -> None:
        self.timer.start()

    def advance(self, n: float = 1, **numbers: float) -> None:
        self.done += n
        self.numbers = numbers or self.numbers
        self.rich.update(self.task, completed=self.done, amount=self.amount(), numbers=format_numbers(self.numbers))

    def stop(self) -> None:
        self.timer.cancel()
        with self.lock:
            self.ended = True
            if self.rich.live.is_started:
                self.rich.stop()


@cache
def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True)  # one for all bars, so that a bar inside a bar is drawn below it


def _amount(done: float, total: float | None) -> str:
    return f"{done:.10g}" if total is None else f"{done:.10g}/{total:.10g}"


def format_numbers(numbers: dict[str, float]) -> str:
    """`{"loss": 0.31234}` as `loss 0.312`."""
    return ", ".join(f"{name} {value:.3g}" for name, value in numbers.items())


def duration(seconds: float) -> str:
    """`12 s`, `3 min 20 s` or `2 h 05 min`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def remaining_time(done: float, total: float | None, seconds: float) -> str:
    """What remains at the speed so far, `about 40 s left`; nothing when that cannot be said."""
    if not total or done <= 0:
        return ""
    return f"about {duration(max(0.0, seconds * (total - done) / done))} left"
