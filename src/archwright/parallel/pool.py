"""Who does the work: this process, several processes with one thread each, or the nodes of a Ray cluster."""

import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, redirect_stdout
from multiprocessing.connection import Connection
from types import ModuleType, TracebackType
from typing import Any, Protocol, Self, TypeVar

from archwright.errors import BadInput, Failed
from archwright.parallel.ray_cluster import RETRIES, connect

AHEAD = 4
"""Tasks per processor that a cluster is given at once: of a million every look at which are done would take long."""
WORTH_A_PROCESS = 8
"""Tasks below which starting a process would take longer than doing them here."""
Result = TypeVar("Result")
Task = Callable[[], Result]
"""Work for one thread; pickled with all that another process needs to do it."""


class WorkerPool(Protocol):
    """Does tasks in parallel; workers stay for the next call, until the `with` block of the pool ends."""

    def map_unordered(
        self, tasks: Sequence[Task[Result]], *, keys: Sequence[Any] | None = None
    ) -> Iterator[tuple[int, Result]]:
        """Index of each task and its result, in the order in which they are done; a task's exception is raised here.

        With `keys`, tasks whose keys are close to each other in sorted order go to the same worker, one after another,
        in this call and in later ones: workers may remember parts of results that such tasks share.
        """
        ...


@contextmanager
def worker_pool(workers: int, ray: str | None) -> Iterator[WorkerPool]:
    """So many processes of this machine (0: one per core), or the Ray cluster at this address."""
    count = workers or os.cpu_count() or 1
    if ray:
        with connect(ray) as module:
            yield RayPool(module)
    elif count == 1:
        yield LocalPool()
    else:
        with ProcessPool(count) as pool:
            yield pool


class LocalPool:
    """One task after another in this process, on one thread."""

    def map_unordered(
        self, tasks: Sequence[Task[Result]], *, keys: Sequence[Any] | None = None
    ) -> Iterator[tuple[int, Result]]:
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            for index in sorted(range(len(tasks)), key=keys.__getitem__) if keys else range(len(tasks)):
                with redirect_stdout(sys.stderr):  # a user's proxy may print, and stdout may be where our JSON goes
                    result = tasks[index]()
                yield index, result
        finally:
            torch.set_num_threads(threads)


class ProcessPool:
    """Processes with one thread each, started when there is work; few tasks are done in this process instead.

    Every process has an executor of its own, so that the death of one (memory may be short) costs only its own task,
    which is done again, and so that tasks with close keys can be sent to the same one.
    """

    def __init__(self, count: int) -> None:
        self._workers = [_Worker() for _ in range(count)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the processes at once, also in the middle of a task; the next call starts new ones."""
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.close()

    def map_unordered(
        self, tasks: Sequence[Task[Result]], *, keys: Sequence[Any] | None = None
    ) -> Iterator[tuple[int, Result]]:
        if keys is None and len(tasks) < WORTH_A_PROCESS:
            yield from LocalPool().map_unordered(tasks)
            return
        queue = TaskQueue(len(tasks), len(self._workers), keys)
        deaths = [0] * len(tasks)
        running: dict[Future[Result], tuple[_Worker, int, int]] = {}

        def start(worker: _Worker, slot: int, index: int | None) -> None:
            if index is not None:
                running[worker.submit(tasks[index])] = worker, slot, index

        try:
            for slot, worker in enumerate(self._workers):
                start(worker, slot, queue.next_index(slot))
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                results = []
                for future in done:
                    worker, slot, index = running.pop(future)
                    try:
                        results.append((index, future.result()))
                        start(worker, slot, queue.next_index(slot))
                    except BrokenProcessPool:
                        deaths[index] += 1
                        if deaths[index] == RETRIES:
                            died = f"{RETRIES} processes died one after another over {_describe(tasks[index])}"
                            raise Failed(f"{died}; is memory short?") from None
                        worker.close()
                        start(worker, slot, index)
                yield from results  # only now, because the caller may take its time
        finally:
            if running:  # an error, Ctrl-C, or a caller that wants no more: nobody waits for what still runs
                self.close()


class TaskQueue:
    """Indices of tasks in the order in which workers take them.

    Without keys there is one queue for all. With keys each worker has its own part of the sorted order, the same in
    every call as far as the keys are alike; who has finished takes the last task of the longest other part.
    """

    def __init__(self, tasks: int, workers: int, keys: Sequence[Any] | None) -> None:
        order = sorted(range(tasks), key=keys.__getitem__) if keys else list(range(tasks))
        ends = [tasks * number // workers for number in range(workers + 1)]
        self._parts = [deque(order[ends[n] : ends[n + 1]]) for n in range(workers)] if keys else [deque(order)]

    def next_index(self, slot: int) -> int | None:
        own = self._parts[slot % len(self._parts)]
        if own:
            return own.popleft()
        longest = max(self._parts, key=len)
        return longest.pop() if longest else None


class _Worker:
    """An executor with one process, started with its first task.

    The process ends when the writing end of a pipe is closed: by `close`, or by the system when this process has ended,
    however it did. (An executor's processes would outlive a killed parent, and finish their task when shut down.)
    """

    def __init__(self) -> None:
        self._executor: ProcessPoolExecutor | None = None
        self._alive: Connection | None = None

    def submit(self, task: Task[Result]) -> "Future[Result]":
        if self._executor is not None:
            try:
                return self._executor.submit(task)
            except BrokenProcessPool:  # killed while it had nothing to do
                self.close()
        context = multiprocessing.get_context("spawn")
        watched, self._alive = context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(1, context, initializer=_start_worker, initargs=(watched,))
        with _without_main_module():
            future = self._executor.submit(task)
        watched.close()
        return future

    def stop(self) -> None:
        """Ends the process without waiting for it."""
        if self._alive is not None:
            self._alive.close()
            self._alive = None

    def close(self) -> None:
        self.stop()
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None


def _start_worker(alive: Connection) -> None:
    """In a new process, before anything has loaded numpy or torch: one thread, stdout on stderr, own session."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.dup2(2, 1)
    os.setsid()  # a terminal's Ctrl-C is for the process that started us

    def exit_with_parent() -> None:
        alive.poll(None)  # nothing is ever sent: it returns when the other end is closed
        os._exit(1)

    threading.Thread(target=exit_with_parent, daemon=True).start()
    import torch

    torch.set_num_threads(1)


@contextmanager
def _without_main_module() -> Iterator[None]:
    """New processes do not run the user's script: it needs no `if __name__ == "__main__"` around what calls us."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _describe(task: Task[Any]) -> str:
    """What a user knows it by: its architecture, where it has one."""
    return str(getattr(getattr(task, "at", task), "config", None) or type(task).__name__.lower())


class RayPool:
    """A Ray task each; one whose node dies is done again by another node."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._run = ray.remote(num_cpus=1, max_retries=RETRIES)(_run_task)

    def map_unordered(
        self, tasks: Sequence[Task[Result]], *, keys: Sequence[Any] | None = None
    ) -> Iterator[tuple[int, Result]]:
        most = AHEAD * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        waiting, running = deque(enumerate(tasks)), dict[Any, int]()
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    index, task = waiting.popleft()
                    running[self._run.remote(task)] = index
                (reference,), _ = self._ray.wait(list(running), num_returns=1)
                yield running.pop(reference), self._result(reference)
        finally:  # an error, or a caller that wants no more: nobody waits for what still runs
            for reference in running:
                self._ray.cancel(reference, force=True)

    def _result(self, reference: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            if isinstance(error.cause, (BadInput, Failed)):
                raise error.cause from error
            raise Failed(f"a node of the Ray cluster could not look: {error.cause}") from error
        except errors.RayError as error:
            reason = str(error).strip().splitlines()[0]
            raise Failed(
                f"the Ray cluster lost a look {RETRIES + 1} times ({reason}); run the command again."
            ) from error


def _run_task(task: Task[Result]) -> Result:
    return task()
