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

from archwright.discovery.score_table import score_formula
from archwright.discovery.statistics import FOLDER, ChainNumbers, LazyStatistics, network_key
from archwright.errors import Failed
from archwright.parallel.pool import WorkerPool
from archwright.proxies.formulas.formula import Branch, Formula
from archwright.proxies.formulas.operations import Chain
from archwright.proxies.formulas.reductions import Values
from archwright.scoring.request import ScoreRequest

FILE = "chains.sqlite"
TENSORS = "tensors"
CREATE = (
    "CREATE TABLE IF NOT EXISTS numbers (network TEXT, input TEXT, chain TEXT, layers BLOB, "
    "PRIMARY KEY (network, input, chain)) WITHOUT ROWID"
)
INSERT = "INSERT OR IGNORE INTO numbers VALUES (?, ?, ?, ?)"
SELECT = "SELECT input, chain, layers FROM numbers WHERE network = ?"
Column = tuple[str, Chain]
"""Input, and a chain without a minus sign at its end."""


@dataclass
class StatisticsFile:
    """Numbers of chains on disk, by network: what is there is not taken again, also by another command."""

    folder: Path

    def read(self, network: str) -> dict[Column, list[float]]:
        with self._open() as base:
            rows = base.execute(SELECT, (network,)).fetchall()
        return {(name, tuple(filter(None, chain.split()))): np.frombuffer(raw).tolist() for name, chain, raw in rows}

    def add(self, network: str, numbers: ChainNumbers) -> None:
        rows = [
            (network, name, " ".join(chain), np.array(layers, dtype=np.float64).tobytes())
            for name, chains in numbers.items()
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
    """Scores of any formula; chains are taken through the networks when a formula first needs them."""

    requests: Sequence[ScoreRequest]
    """One per network."""
    inputs: tuple[str, ...]
    folder: Path
    pool: WorkerPool
    computed: int = 0
    """Numbers of an input, chain and network that were not known before."""
    known: dict[int, dict[Column, list[float]]] = field(default_factory=dict)
    lazy: ClassVar[bool] = True

    @cached_property
    def keys(self) -> list[str]:
        return [network_key(request) for request in self.requests]

    @cached_property
    def file(self) -> StatisticsFile:
        return StatisticsFile(self.folder / FOLDER)

    @property
    def content(self) -> bytes:
        return "".join(self.keys).encode()

    def scores(self, formula: Formula, networks: Any = slice(None)) -> Values:
        """One per network, as a `StatisticsTable` has them."""
        self.prefetch([formula], networks)
        indices = np.arange(len(self.requests))[networks]
        factor = self._column(formula.factor, indices) if formula.factor else None
        return score_formula(formula, [self._column(branch, indices) for branch in formula.active], factor)

    def _column(self, branch: Branch, indices: Iterable[int]) -> Values:
        """Networks x layers."""
        column, sign = split_sign(branch)
        rows = [self._numbers(int(index))[column] for index in indices]
        values = np.full((len(rows), max(map(len, rows))), np.nan)
        for row, layers in zip(values, rows, strict=True):
            row[: len(layers)] = layers
        return sign * values

    def prefetch(self, formulas: Sequence[Formula], networks: Any) -> None:
        """Takes what these formulas need of these networks, and writes it down network by network."""
        columns = dict.fromkeys(split_sign(branch)[0] for formula in formulas for branch in formula.active_and_factor)
        tensors = self.folder / TENSORS
        missing: dict[int, list[Column]] = {}
        tasks = []
        for index in map(int, np.arange(len(self.requests))[networks]):
            if unknown := [column for column in columns if column not in self._numbers(index)]:
                missing[index] = unknown
                chains = {name: tuple(chain for of, chain in unknown if of == name) for name, _ in unknown}
                file = tensors.resolve() / f"{self.keys[index]}.safetensors"
                tasks.append(LazyStatistics(self.requests[index], chains, self.inputs, file))
        if tasks:
            tensors.mkdir(parents=True, exist_ok=True)
        order = list(missing)
        for done, numbers in self.pool.map_unordered(tasks):
            index = order[done]
            self.file.add(self.keys[index], numbers)
            self._numbers(index).update({(name, c): n for name, chains in numbers.items() for c, n in chains.items()})
            self.computed += len(missing[index])

    def _numbers(self, index: int) -> dict[Column, list[float]]:
        if index not in self.known:
            self.known[index] = self.file.read(self.keys[index])
        return self.known[index]

    def release(self) -> None:
        """Deletes the tensors on disk."""
        rmtree(self.folder / TENSORS, ignore_errors=True)


def split_sign(branch: Branch) -> tuple[Column, float]:
    """Input and chain without a minus sign at its end, and that sign."""
    canonical = branch.canonical()
    plain = canonical.without_sign()
    return (plain.input, plain.chain), -1.0 if canonical.is_negated else 1.0
