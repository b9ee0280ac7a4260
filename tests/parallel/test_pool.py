"""Every pool gives every result once; processes die, are replaced, and never outlive the one that started them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from archwright.errors import BadInput, Failed
from archwright.parallel.pool import LocalPool, ProcessPool, TaskQueue, WorkerPool, worker_pool


@dataclass(frozen=True)
class Square:
    number: int

    def __call__(self) -> tuple[int, int]:
        return self.number**2, os.getpid()


@dataclass(frozen=True)
class DieOnce:
    """Kills its process unless somebody did before."""

    marker: Path

    def __call__(self) -> str:
        if not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "done"


@dataclass(frozen=True)
class Die:
    config: str = "the architecture"

    def __call__(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Refuse:
    def __call__(self) -> None:
        raise BadInput("one line.")


@dataclass(frozen=True)
class Sleep:
    seconds: float

    def __call__(self) -> None:
        time.sleep(self.seconds)


@dataclass(frozen=True)
class Print:
    def __call__(self) -> int:
        import torch

        print("a word of a task", flush=True)
        return torch.get_num_threads()


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPool]:
    with ProcessPool(2) as started:
        yield started


def results(pool: WorkerPool, tasks: list[Any], **options: Any) -> list[Any]:
    by_index = dict(pool.map_unordered(tasks, **options))
    return [by_index[index] for index in range(len(tasks))]


def test_processes_give_what_this_process_gives_and_stay(pool: ProcessPool) -> None:
    tasks = [Square(number) for number in range(12)]
    first, second = results(pool, tasks), results(pool, tasks)
    assert [square for square, _ in first] == [square for square, _ in results(LocalPool(), tasks)]
    assert {pid for _, pid in first} == {pid for _, pid in second}
    assert len({pid for _, pid in first}) == 2 and os.getpid() not in {pid for _, pid in first}


def test_few_tasks_are_done_here(pool: ProcessPool) -> None:
    assert results(pool, [Square(3)]) == [(9, os.getpid())]


def test_close_keys_go_to_the_same_worker() -> None:
    keys = ["a1", "b1", "a2", "b2", "b3"]
    queue = TaskQueue(len(keys), 2, keys)
    assert [queue.next_index(worker) for worker in (0, 1, 0, 1)] == [0, 1, 2, 3]
    assert [queue.next_index(worker) for worker in (0, 1)] == [4, None]  # who has nothing left helps the other
    assert [index for index, _ in LocalPool().map_unordered([Square(1)] * 5, keys=keys)] == [0, 2, 1, 3, 4]


def test_a_killed_process_is_replaced(pool: ProcessPool, tmp_path: Path) -> None:
    tasks = [Square(1), DieOnce(tmp_path / "marker"), *(Square(number) for number in range(2, 9))]
    found = results(pool, tasks)
    assert found[1] == "done" and [found[0][0], found[8][0]] == [1, 64]


def test_a_process_killed_while_idle_is_replaced(pool: ProcessPool) -> None:
    tasks = [Square(number) for number in range(9)]
    for pid in {pid for _, pid in results(pool, tasks)}:
        os.kill(pid, signal.SIGKILL)
    assert [square for square, _ in results(pool, tasks)] == [number**2 for number in range(9)]


def test_processes_that_always_die_end_the_work(pool: ProcessPool) -> None:
    with pytest.raises(Failed, match="processes died one after another over the architecture; is memory short"):
        list(pool.map_unordered([Die()], keys=[0]))


def test_an_error_is_raised_here_and_nobody_waits_for_the_others(pool: ProcessPool) -> None:
    begun = time.monotonic()
    with pytest.raises(BadInput, match=r"one line\."):
        list(pool.map_unordered([Refuse(), Sleep(600)], keys=[0, 1]))
    assert time.monotonic() - begun < 60
    assert results(pool, [Square(number) for number in range(8)])[7][0] == 49


def test_tasks_have_one_thread_and_print_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with worker_pool(2, None) as fresh:
        assert set(results(fresh, [Print() for _ in range(8)])) == {1}
    told = capfd.readouterr()
    assert told.out == "" and told.err.count("a word of a task") == 8


SCRIPT = """
import os, signal, sys, time
from archwright.parallel.pool import ProcessPool
from tests.parallel.test_pool import Sleep, Square

signal.signal(signal.SIGINT, signal.default_int_handler)  # a test process of xdist ignores it, and so would this one
with ProcessPool(2) as pool:  # no `if __name__ == "__main__"`: the processes must not run this script
    pids = {pid for _, (_, pid) in pool.map_unordered([Square(number) for number in range(20)])}
    print(*pids, flush=True)
    for _ in pool.map_unordered([Sleep(0.1), Sleep(600)], keys=[0, 1]):
        os.kill(os.getpid(), int(sys.argv[1]))
"""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
def test_no_process_outlives_a_script_without_a_main_guard(number: int, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script), str(number)], env=os.environ | {"PYTHONPATH": paths}, capture_output=True,
        text=True, timeout=120,
    )  # fmt: skip
    pids = [int(pid) for pid in done.stdout.split()]
    assert pids and done.returncode
    until = time.monotonic() + 20
    while any(map(is_running, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_running, pids))
