"""Small spaces with known objectives, and studies on real stores, for the tests of this folder."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from archwright.search import EPOCHS, SAMPLERS, Bits, Candidate, Choices, Config, Objective, largest, middle, smallest

SMALL: Choices = {"heads": range(1, 13), "units": range(0, 1537, 64), "layers": range(0, 7)}
MIXED: Choices = {"kind": ("a", "b", "c"), "width": (16, 32, 64), "layers": Bits(6), "rate": (0.1, 0.5)}
LARGE: Choices = {"mask": Bits(9288)}
RUNGS: Choices = {**MIXED, EPOCHS: (1, 3, 5)}
SPACES = {"small": SMALL, "mixed": MIXED, "large": LARGE, "rungs": RUNGS}


@dataclass(frozen=True)
class Designs:
    """A space whose designs are their configs."""

    choices: Choices

    def build(self, config: Config) -> Config:
        return config

    def canonical(self, config: Config) -> Config:
        return config


def size(candidate: Candidate) -> float:
    """Between 0 and 1: the mean position of the choices."""
    shares = []
    for name, choice in candidate.space.choices.items():
        value = candidate.config[name]
        if isinstance(choice, Bits):
            shares.append(float(choice.unpack(value).mean()))
        else:
            shares.append(choice.index(value) / max(1, len(choice) - 1))
    return sum(shares) / len(shares)


def error(candidate: Candidate) -> float:
    """Falls with size, but not alike for all designs of one size."""
    first = next(iter(candidate.space.choices))
    noise = sum(map(ord, str(candidate.config[first]))) % 17
    return (1 - size(candidate)) ** 2 + noise / 100


OBJECTIVES = (Objective("error", error), Objective("size", size))


def slow_objectives(seconds: float) -> tuple[Objective, ...]:
    def slow_error(candidate: Candidate) -> float:
        time.sleep(seconds)
        return error(candidate)

    return (Objective("error", slow_error), OBJECTIVES[1])


class ProcessLock(JournalFileOpenLock):
    """A lock that ends with its process; Optuna's own outlives a killed holder by half a minute."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = -1

    def acquire(self) -> bool:
        self._handle = os.open(self._path, os.O_CREAT | os.O_WRONLY)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        os.close(self._handle)


def open_storage(address: str) -> BaseStorage:
    """A database by its address, else a journal file."""
    if "://" in address:
        return RDBStorage(address, engine_kwargs={"pool_pre_ping": True})
    return JournalStorage(JournalFileBackend(address, lock_obj=ProcessLock(address + ".flock")))


def open_study(
    storage: BaseStorage | None,
    choices: Choices,
    *,
    sampler: str = "random",
    seed: int = 0,
    first: Sequence[Config] = (),
) -> optuna.Study:
    return optuna.create_study(
        storage=storage,
        study_name="search",
        load_if_exists=True,
        directions=["minimize", "minimize"],
        sampler=SAMPLERS[sampler](choices, seed=seed, first=first),
    )


def corners(choices: Choices) -> list[Config]:
    return [largest(choices), smallest(choices), middle(choices)]


def journal(folder: Path) -> str:
    return str(folder / "journal.log")
