"""What a search takes: seconds by phase, and memory."""

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

KILO = 1024
PER_MB = KILO if sys.platform.startswith("linux") else KILO**2
"""Linux counts memory in kilobytes, macOS in bytes."""


class Phases:
    """Seconds of every phase of a command; one that comes again goes on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._start = time.monotonic()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start

    def summary(self) -> dict[str, float]:
        whole = time.monotonic() - self._start
        return {name: round(value, 2) for name, value in {**self.seconds, "total": whole}.items()}


def peak_mb(workers: int) -> float:
    """Most memory of this process, and of so many others like the largest of those it has started and ended."""
    own, theirs = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round((own + workers * theirs) / PER_MB, 1)
