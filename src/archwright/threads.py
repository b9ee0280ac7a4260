"""How many threads torch computes with: as the user or the caller says, else whatever is fastest right now."""

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from archwright.logs import logger

ROUNDS = 20
SECONDS = 0.3
"""The measurement stops after so many rounds, or after the first one that ends later than this."""
ROWS, WIDTH = 256, 384
"""Of the matrices that are multiplied: a small batch in a layer of MiniLM."""


def choose_threads(requested: int, processes: int = 1, *, note: Path | None = None) -> int:
    """Sets and returns the threads of this process.

    `requested` (0: not said) wins, then OMP_NUM_THREADS, then what a Python caller set with torch.set_num_threads.
    Else the cores are shared between the processes, unless one thread is faster: on a busy machine several that wait
    for each other can be ten times slower. Sums depend on the number of threads, so a run notes it in its folder, and
    a resumed run takes it from that file, `note`.
    """
    import torch

    level = logging.INFO
    environment, current = os.environ.get("OMP_NUM_THREADS", "").split(",")[0], torch.get_num_threads()
    if requested:
        threads, why = requested, "--threads says so"
    elif environment.isdigit() and int(environment):
        threads, why = int(environment), "OMP_NUM_THREADS says so"
    elif current not in default_threads():
        threads, why = current, "torch.set_num_threads was called before"
    elif noted := noted_threads(note):
        threads, why = noted, "the run began with so many"
    else:
        threads, why = fastest_threads(max(1, available_cores() // processes))
        level = logging.WARNING  # shown without -v: nobody chose it, and it decides how long the command takes
    logger.log(level, "%d thread%s: %s", threads, "" if threads == 1 else "s", why)
    torch.set_num_threads(threads)
    return threads


def noted_threads(note: Path | None) -> int | None:
    """What a run noted; None of a damaged note, which whoever works in the folder complains about."""
    try:
        return None if note is None else int(json.loads(note.read_text())["threads"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


@contextmanager
def restore_threads() -> Iterator[None]:
    """The number of torch's threads is afterwards as it was before; without torch there is nothing to restore."""
    if "torch" not in sys.modules:
        yield
        return
    import torch

    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_threads() -> set[int]:
    """Numbers that torch may have by itself: one per core that it sees, with or without hyper-threads."""
    import psutil  # type: ignore[import-untyped]

    return {available_cores(), os.cpu_count() or 1, psutil.cpu_count(logical=False) or 1}


@cache
def fastest_threads(most: int) -> tuple[int, str]:
    """One thread or `most`, whichever multiplies matrices faster at this moment, and a sentence about it."""
    if most == 1:
        return 1, "there is one core for this process"
    one, many = measure_seconds(1, most)
    threads = most if many <= one else 1
    return threads, f"a step takes {1e3 * many:.2f} ms with {most} threads and {1e3 * one:.2f} ms with one"


def measure_seconds(*counts: int) -> list[float]:
    """Median seconds of a small step with each number of threads, measured in turn; the first round does not count."""
    import torch

    rows, weights = torch.ones(ROWS, WIDTH), torch.ones(WIDTH, 4 * WIDTH)
    seconds: dict[int, list[float]] = {count: [] for count in counts}
    end = time.perf_counter() + SECONDS
    with restore_threads():
        for _ in range(ROUNDS):
            for count in counts:
                torch.set_num_threads(count)
                begun = time.perf_counter()
                torch.nn.functional.gelu(torch.mm(rows, weights)).sum()
                seconds[count].append(time.perf_counter() - begun)
            if time.perf_counter() > end:
                break
    counted = [times[1:] or times for times in seconds.values()]
    return [sorted(times)[len(times) // 2] for times in counted]
