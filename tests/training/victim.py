"""Trainings of every lesson that are killed: each in a process of its own, split off from one that has loaded all.

python -m tests.training.victim FOLDER
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import torch

from archwright.store import files
from archwright.store.checkpoints import FileCheckpoints
from archwright.training.distributed import SINGLE_PROCESS
from archwright.training.loop import StepRecord, train_network
from archwright.training.schedule import Schedule
from tests.training.cases import CASES

SCHEDULE = Schedule(steps=7, learning_rate=1e-2, warmup=0.3, layer_decay=0.9)
DIES_AT = 4
ALWAYS = -1.0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying(update: Callable[..., Any], at: int) -> Callable[..., Any]:
    """The update, at whose call of this number the process is killed, the gradients just made."""
    calls = count()

    def once(*arguments: Any) -> Any:
        value = update(*arguments)
        if next(calls) == at:
            die()
        return value

    return once


def slowly(update: Callable[..., Any]) -> Callable[..., Any]:
    """The update with pauses, the last of which outlasts whoever waits for the end."""
    calls = count(1)

    def slow(*arguments: Any) -> Any:
        time.sleep(0.2 if next(calls) < SCHEDULE.steps else 3600)
        return update(*arguments)

    return slow


def trained(name: str, folder: Path, *, change: Callable[..., Any] = lambda update: update, keep: bool = True) -> None:
    """A training to its end, into final.pt; every step is written down, and saved if wanted."""
    case = CASES[name](SINGLE_PROCESS)
    with open(folder / "log.csv", "a", buffering=1) as lines:

        def log(record: StepRecord) -> None:
            lines.write(f"{record.step},{record.loss!r},{record.learning_rate!r},{record.tokens}\n")

        train_network(
            case.model,
            lambda _: case.batches,
            change(case.update),
            SCHEDULE,
            seed=3,
            checkpoints=FileCheckpoints(folder / "check.safetensors") if keep else None,
            every_seconds=ALWAYS,
            carry=case.carry,
            log=log,
        )
    torch.save(case.model.state_dict(), folder / "final.pt")


def split(work: Callable[[], None]) -> int:
    """A process that does this; its number."""
    if child := os.fork():
        return child
    work()
    os._exit(0)


def end_of(child: int) -> int:
    """The signal that ended it, 0 when none did."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_in_update(name: str, folder: Path) -> int:
    return end_of(split(lambda: trained(name, folder, change=lambda update: dying(update, DIES_AT))))


def killed_while_saving(name: str, folder: Path) -> int:
    """In the middle of writing the third checkpoint."""
    saves = count(1)

    def work() -> None:
        whole = os.fsync
        files.os.fsync = lambda handle: die() if next(saves) == 3 else whole(handle)
        trained(name, folder)

    return end_of(split(work))


def killed_from_outside(name: str, folder: Path) -> int:
    """At any moment after the first checkpoint."""
    child = split(lambda: trained(name, folder, change=slowly))
    while not (folder / "check.safetensors").exists():
        time.sleep(0.01)
    time.sleep(0.3)
    os.kill(child, signal.SIGKILL)
    return end_of(child)


KILLS = {
    **{f"{name} update": (name, killed_in_update) for name in CASES},
    "masked saving": ("masked", killed_while_saving),
    "layerwise outside": ("layerwise", killed_from_outside),
}
"""What is trained, and how it is killed."""


def main(folder: Path) -> None:
    for title, (name, kill) in KILLS.items():
        undisturbed, disturbed = folder / name, folder / title
        if not undisturbed.exists():
            undisturbed.mkdir()
            assert end_of(split(lambda name=name, at=undisturbed: trained(name, at, keep=False))) == 0
        disturbed.mkdir()
        (disturbed / "signal").write_text(str(kill(name, disturbed)))
        assert not (disturbed / "final.pt").exists()
        assert end_of(split(lambda name=name, at=disturbed: trained(name, at))) == 0


if __name__ == "__main__":
    main(Path(sys.argv[1]))
