"""Processes that walk: each keeps what it has seen, so designs that begin alike should go to the same one."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from archwright.designing.prefix_cache import PrefixScoring
from archwright.parallel.pool import Process, WorkerPool, here, raised
from archwright.scoring.request import ScoreRequest

Line = deque[tuple[int, ScoreRequest]]
"""Looks in the order of their designs, each with its place."""


@contextmanager
def prefix_pool(workers: int) -> Iterator[WorkerPool]:
    """So many processes with one thread each (0: one per core); one alone is this process."""
    count = workers or os.cpu_count() or 1
    if count > 1:
        with apart(count) as seek:
            yield seek
    else:
        yield lambda looks: in_order(here, looks)


def in_order(seek: WorkerPool, looks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Designs that begin alike one after another."""
    order = sorted(range(len(looks)), key=lambda place: words_of(looks[place]))
    for place, seen in seek([PrefixScoring(looks[place]) for place in order]):
        yield order[place], seen


def words_of(at: ScoreRequest) -> tuple[str, ...]:
    return tuple(map(str, at.config.values()))


@contextmanager
def apart(count: int) -> Iterator[WorkerPool]:
    """Each process has its own part of the order, the same in every round as far as the designs are alike."""
    processes: dict[int, Process] = {}

    def seek(looks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        order = sorted(enumerate(looks), key=lambda entry: words_of(entry[1]))
        lines, done = Lines(order, count), SimpleQueue[Any]()
        with ThreadPoolExecutor(count) as pool:
            for number in range(min(count, len(looks))):
                pool.submit(work, processes, number, lines.next_of, done)
            try:
                for _ in looks:
                    yield raised(done.get())
            except BaseException:
                lines.clear()
                raise

    try:
        yield seek
    finally:
        for process in processes.values():
            process.end()


def work(
    processes: dict[int, Process], number: int, following: Callable[[int], tuple[int, ScoreRequest] | None], done: Any
) -> None:
    """One process, begun when first needed, until there is nothing left."""
    try:
        if number not in processes:
            processes[number] = Process()
        while (entry := following(number)) is not None:
            place, at = entry
            done.put((place, processes[number].look(PrefixScoring(at))))
    except Exception as error:  # handed to the asking thread, which raises it
        done.put(error)


class Lines:
    """A line of looks for each process; who has finished takes the last one of the longest other line."""

    def __init__(self, order: Sequence[tuple[int, ScoreRequest]], count: int) -> None:
        ends = [len(order) * number // count for number in range(count + 1)]
        self._lines: list[Line] = [deque(order[ends[n] : ends[n + 1]]) for n in range(count)]
        self._lock = threading.Lock()

    def next_of(self, number: int) -> tuple[int, ScoreRequest] | None:
        with self._lock:
            if self._lines[number]:
                return self._lines[number].popleft()
            longest = max(self._lines, key=len)
            return longest.pop() if longest else None

    def clear(self) -> None:
        with self._lock:
            for line in self._lines:
                line.clear()
