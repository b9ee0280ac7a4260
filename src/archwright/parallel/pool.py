"""Who looks: this process, several processes with one thread each, or the nodes of a Ray cluster."""

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

import torch

from archwright.errors import BadInput, Failed
from archwright.parallel.ray_cluster import RETRIES, connected

SERVE = "from archwright.scoring.request import serve; serve()"
"""Not `-m`: what is pickled must have the same module name in both processes."""
WORTH_A_PROCESS = 8
"""Looks below which starting a process would take longer than doing them here."""
Task = Callable[[], Any]
"""A look, or other work on one thread, with all that a process elsewhere needs to do it."""
WorkerPool = Callable[[Sequence[Task]], Iterator[tuple[int, Any]]]
"""Looks at all of them; gives the place of each and what was seen, in the order in which they are done."""


@contextmanager
def worker_pool(workers: int, ray: str | None) -> Iterator[WorkerPool]:
    """So many processes of this machine (0: one per core), or the cluster."""
    with on_ray(ray) if ray else in_processes(workers or os.cpu_count() or 1) as far:
        alone = ray is None and workers == 1
        yield lambda looks: here(looks) if alone or (not ray and len(looks) < WORTH_A_PROCESS) else far(looks)


def here(looks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
    """One after another in this process."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for place, at in enumerate(looks):
            with redirect_stdout(sys.stderr):  # a user's proxy may print, and stdout may be where our JSON goes
                seen = at()
            yield place, seen
    finally:
        torch.set_num_threads(threads)


@contextmanager
def in_processes(workers: int) -> Iterator[WorkerPool]:
    """Processes are started when there is something to look at, and stay for the next round."""
    resting: queue.SimpleQueue[Process] = queue.SimpleQueue()
    stop = threading.Event()

    def work(waiting: "queue.SimpleQueue[tuple[int, Task]]", done: "queue.SimpleQueue[Any]") -> None:
        process = resting.get() if not resting.empty() else Process()
        with suppress(queue.Empty):
            while not stop.is_set():
                place, at = waiting.get_nowait()
                try:
                    done.put((place, process.look(at)))
                except Exception as error:  # handed to the asking thread, which raises it
                    done.put(error)
                    break
        resting.put(process)

    def seek(looks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        waiting: queue.SimpleQueue[tuple[int, Task]] = queue.SimpleQueue()
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for entry in enumerate(looks):
            waiting.put(entry)
        with ThreadPoolExecutor(workers) as pool:
            try:
                for _ in range(min(workers, len(looks))):
                    pool.submit(work, waiting, done)
                for _ in looks:
                    yield raised(done.get())
            except BaseException:
                stop.set()
                raise

    try:
        yield seek
    finally:
        while not resting.empty():
            resting.get().end()


def raised(answer: Any) -> tuple[int, Any]:
    """The answer, unless it is an error."""
    if isinstance(answer, Exception):
        raise answer
    place, seen = answer
    return place, seen


class Process:
    """A process that looks at one network after another, on one thread."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        command, settings = [sys.executable, "-c", SERVE], os.environ | {"OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=settings, start_new_session=True)

    def look(self, at: Task) -> Any:
        """What it saw; a process that dies under a look is replaced, a few times."""
        for _ in range(RETRIES):
            try:
                return checked(self._ask(at))
            except (EOFError, BrokenPipeError, pickle.UnpicklingError):
                self.end()
                self._begin()
        raise Failed(f"{RETRIES} processes died one after another over {name_of(at)}; is memory short?")

    def _ask(self, at: Task) -> Any:
        assert self._process.stdin and self._process.stdout
        pickle.dump(at, self._process.stdin)
        self._process.stdin.flush()
        return pickle.load(self._process.stdout)

    def end(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        self._process.wait()


def checked(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def name_of(task: Task) -> str:
    """What a user knows it by: its architecture, where it has one."""
    return str(getattr(getattr(task, "at", task), "config", None) or type(task).__name__.lower())


@contextmanager
def on_ray(address: str) -> Iterator[WorkerPool]:
    """A task per look; a look whose node dies is done again by another one."""
    with connected(address) as ray:
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(done)

        def seek(looks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
            places = {remote.remote(at): place for place, at in enumerate(looks)}
            while places:
                (ready,), _ = ray.wait(list(places), num_returns=1)
                yield places.pop(ready), result(ray, ready)

        yield seek


def done(task: Task) -> Any:
    return task()


def result(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, (BadInput, Failed)):
            raise error.cause from error
        raise Failed(f"a node of the Ray cluster could not look: {error.cause}") from error
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[0]
        raise Failed(f"the Ray cluster lost a look {RETRIES + 1} times ({reason}); run the command again.") from error
