"""A table of statistics that fills while it is used."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import Any, ClassVar

import numpy as np

from archwright.discovery.score_table import Values, scored
from archwright.discovery.stored_tensors import Numbers, Taking
from archwright.errors import Failed
from archwright.parallel.pool import WorkerPool
from archwright.proxies.formulas.formula import Branch, Formula
from archwright.proxies.formulas.operations import Chain
from archwright.scoring.request import ScoreRequest
from archwright.scoring.scorer import key_of

FILE = "chains.sqlite"
TENSORS = "tensors"
CREATE = (
    "CREATE TABLE IF NOT EXISTS numbers (network TEXT, input TEXT, chain TEXT, layers BLOB, "
    "PRIMARY KEY (network, input, chain)) WITHOUT ROWID"
)
INSERT = "INSERT OR IGNORE INTO numbers VALUES (?, ?, ?, ?)"
SELECT = "SELECT input, chain, layers FROM numbers WHERE network = ?"
Column = tuple[str, Chain]


@dataclass
class StatisticsFile:
    """Numbers of chains on disk, by network: what is there is not taken again, also by another command."""

    folder: Path

    def of(self, network: str) -> dict[Column, list[float]]:
        with self._open() as base:
            rows = base.execute(SELECT, (network,)).fetchall()
        return {(name, tuple(filter(None, chain.split()))): np.frombuffer(raw).tolist() for name, chain, raw in rows}

    def add(self, network: str, found: Numbers) -> None:
        rows = [
            (network, name, " ".join(chain), np.array(layers, dtype=np.float64).tobytes())
            for name, chains in found.items()
            for chain, layers in chains.items()
        ]
        with self._open() as base:
            base.executemany(INSERT, rows)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / FILE
        try:
            with closing(sqlite3.connect(file, timeout=60)) as base, base:
                base.execute(CREATE)
                yield base
        except sqlite3.DatabaseError as error:
            raise Failed(f"{file} cannot be used ({error}); delete it and run the same command again.") from error


@dataclass
class LazyTable:
    """Scores of any formula; chains are taken through the networks when they are first asked for."""

    looks: Sequence[ScoreRequest]
    """One per network."""
    inputs: tuple[str, ...]
    folder: Path
    eyes: WorkerPool
    taken: int = 0
    """Numbers of an input, chain and network that were not known before."""
    known: dict[int, dict[Column, list[float]]] = field(default_factory=dict)
    lazy: ClassVar[bool] = True

    @cached_property
    def keys(self) -> list[str]:
        return [key_of(look) for look in self.looks]

    @cached_property
    def drawer(self) -> StatisticsFile:
        return StatisticsFile(self.folder / "statistics")

    @property
    def content(self) -> bytes:
        return "".join(self.keys).encode()

    def scores(self, formula: Formula, networks: Any = slice(None)) -> Values:
        """One per network, as a table that lies ready has them."""
        self.fetch([formula], networks)
        places = np.arange(len(self.looks))[networks]
        factor = self.column(formula.factor, places) if formula.factor else None
        return scored(formula, [self.column(branch, places) for branch in formula.active], factor)

    def column(self, branch: Branch, places: Iterable[int]) -> Values:
        """Networks x layers."""
        wanted, sign = stem(branch)
        rows = [self._of(int(place))[wanted] for place in places]
        found = np.full((len(rows), max(map(len, rows))), np.nan)
        for row, layers in zip(found, rows, strict=True):
            row[: len(layers)] = layers
        return sign * found

    def fetch(self, formulas: Sequence[Formula], networks: Any) -> None:
        """Takes what these formulas need of these networks, and writes it down network by network."""
        columns = dict.fromkeys(stem(branch)[0] for formula in formulas for branch in branches(formula))
        places = [int(place) for place in np.arange(len(self.looks))[networks]]
        undone = {place: [one for one in columns if one not in self._of(place)] for place in places}
        tasks = {place: self._task(place, wanted) for place, wanted in undone.items() if wanted}
        order = list(tasks)
        for done, found in self.eyes.map_unordered(list(tasks.values())):
            place = order[done]
            self.drawer.add(self.keys[place], found)
            self._of(place).update({(name, c): n for name, chains in found.items() for c, n in chains.items()})
            self.taken += len(undone[place])

    def _of(self, place: int) -> dict[Column, list[float]]:
        if place not in self.known:
            self.known[place] = self.drawer.of(self.keys[place])
        return self.known[place]

    def _task(self, place: int, wanted: Sequence[Column]) -> Taking:
        chains = {name: tuple(c for of, c in wanted if of == name) for name, _ in wanted}
        tensors = self.folder / TENSORS
        tensors.mkdir(parents=True, exist_ok=True)
        return Taking(self.looks[place], chains, self.inputs, tensors.resolve() / f"{self.keys[place]}.safetensors")

    def rest(self) -> None:
        """Gives back the room that tensors take on disk."""
        rmtree(self.folder / TENSORS, ignore_errors=True)


def stem(branch: Branch) -> tuple[Column, float]:
    """Input and chain without a minus sign at its end, and that sign."""
    same = branch.canonical()
    kept = same.without_sign() if same.is_negated else same
    return (kept.input, kept.chain), -1.0 if same.is_negated else 1.0


def branches(formula: Formula) -> tuple[Branch, ...]:
    return (*formula.active, *([formula.factor] if formula.factor else []))
