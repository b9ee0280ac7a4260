"""One `archwright` command in this process, its memory and time by phase.

    python experiments/large_decoders/measured.py OUT.json compress --model ...

A thread reads resident memory ten times a second: all of it, and the part that belongs to no file (weights that are
mapped from a checkpoint and not changed belong to one, and the system may drop them). OUT.json has phase -> peaks and
seconds; `elsewhere` is what is outside of a run's phases: loading, tokenizing, writing reports.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from archwright.cli.main import main
from archwright.store.files import write_atomic
from archwright.store.run import RunFolder

ELSEWHERE = "elsewhere"
EVERY = 0.1
FIELDS = {"VmRSS": "peak_bytes", "RssAnon": "peak_anonymous_bytes"}


class Meter:
    """Peaks and seconds of the phase that is going on."""

    def __init__(self) -> None:
        self.phases: dict[str, dict[str, float]] = {}
        self.phase, self.ended = ELSEWHERE, threading.Event()
        self.marks = time.monotonic(), time.process_time()

    def numbers(self) -> dict[str, float]:
        usual = {"peak_bytes": 0.0, "peak_anonymous_bytes": 0.0, "seconds": 0.0, "cpu_seconds": 0.0}
        return self.phases.setdefault(self.phase, usual)

    def sample(self) -> None:
        numbers = self.numbers()
        for line in Path("/proc/self/status").read_text().splitlines():
            name = FIELDS.get(line.partition(":")[0])
            if name:
                numbers[name] = max(numbers[name], 1024.0 * int(line.split()[1]))

    def change(self, phase: str) -> None:
        """Ends a phase and begins another one."""
        self.sample()
        before, now, numbers = self.marks, (time.monotonic(), time.process_time()), self.numbers()
        numbers["seconds"] += now[0] - before[0]
        numbers["cpu_seconds"] += now[1] - before[1]
        self.marks, self.phase = now, phase

    def watch(self) -> None:
        while not self.ended.wait(EVERY):
            self.sample()


def measure(out: Path, words: list[str]) -> int:
    """Runs the command; returns its exit code."""
    meter, phase = Meter(), RunFolder.phase

    @contextmanager
    def metered(folder: RunFolder, name: str, *rest: Any, **options: Any) -> Iterator[Any]:
        outer = meter.phase
        meter.change(name)
        try:
            with phase(folder, name, *rest, **options) as value:
                yield value
        finally:
            meter.change(outer)

    RunFolder.phase = metered  # type: ignore[method-assign, assignment]
    threading.Thread(target=meter.watch, daemon=True).start()
    code = main(words)
    meter.change(ELSEWHERE)
    meter.ended.set()
    write_atomic(out, json.dumps(meter.phases, indent=1))
    return code


if __name__ == "__main__":
    sys.exit(measure(Path(sys.argv[1]), sys.argv[2:]))
