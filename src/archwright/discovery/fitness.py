"""What a formula is worth on some rows, and what it cost to know."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from archwright.discovery.folds import AIMS, FITNESS, FoldedRows
from archwright.discovery.offspring import same
from archwright.discovery.score_table import LEAST_SHARE, Mask, Scorer
from archwright.proxies.formulas.formula import Formula
from archwright.statistics.many_scores import BulkCorrelations

FIRST = 4
"""Architectures on which a formula must differ, and be finite, before it is scored on the others."""


@dataclass(frozen=True)
class Fitness:
    """Fitness, higher is better, and what it is made of; minus infinity for what is no proxy of these rows."""

    fitness: float
    aims: tuple[float, ...] = ()
    """Several to be traded off, higher is better; none for what is no proxy."""


NOTHING = Fitness(-np.inf)


@dataclass
class Counts:
    """What a search took."""

    scored: int = 0
    """Different formulas that were scored on the whole sample."""
    stopped: int = 0
    """Different formulas that were constant or not finite on the first four architectures."""
    invalid: int = 0
    """Of those scored: no number, constant, or missing on more than 5 % of the rows; and empty ones."""
    copies: int = 0
    """Formulas whose score was known."""
    looks: int = 0
    """Formula times architecture: scores that had to be taken."""


@dataclass
class FitnessFunction:
    """Fitness of formulas on some rows; equal formulas are scored once."""

    table: Scorer
    trial: FoldedRows
    rows: Mask
    pps: bool
    counts: Counts = field(default_factory=Counts)
    known: dict[Formula, Fitness] = field(default_factory=dict)
    """By canonical form."""

    @cached_property
    def inside(self) -> Any:
        """The networks that have these rows."""
        return np.unique(self.trial.networks[self.rows])

    @cached_property
    def weights(self) -> Any:
        """Rows of each of these networks."""
        return np.bincount(self.trial.networks[self.rows])[self.inside].astype(np.float64)

    @cached_property
    def rankings(self) -> BulkCorrelations:
        return self._rankings(np.ones(len(self.inside), dtype=bool))

    def _rankings(self, there: Mask) -> BulkCorrelations:
        networks = np.isin(np.arange(len(self.trial.names)), self.inside[there])
        return self.trial.rankings(networks, [self.rows])

    def __call__(self, formula: Formula) -> Fitness:
        one = same(formula)
        self.counts.copies += one in self.known
        if one not in self.known:
            self.known[one] = self._judged(one)
        return self.known[one]

    def _judged(self, formula: Formula) -> Fitness:
        if formula.empty:
            self.counts.invalid += 1
            return NOTHING
        if self.pps and self.hopeless(formula):
            self.counts.stopped += 1
            self.counts.looks += min(FIRST, len(self.inside))
            return NOTHING
        self.counts.scored += 1
        self.counts.looks += len(self.inside)
        worth = self._worth(formula)
        self.counts.invalid += not worth.aims
        return worth

    def hopeless(self, formula: Formula) -> bool:
        return early(self.table.scores(formula, self.inside[:FIRST]))

    def _worth(self, formula: Formula) -> Fitness:
        scores = self.table.scores(formula, self.inside)
        there = ~np.isnan(scores)
        if not np.isfinite(scores[there]).all() or self.weights[there].sum() < LEAST_SHARE * self.weights.sum():
            return NOTHING
        rankings = self.rankings if there.all() else self._rankings(there)
        fitness = float(FITNESS[self.trial.fitness](rankings, scores[there][None])[0, 0])
        if not np.isfinite(fitness):
            return NOTHING
        aims = [float(FITNESS[name](rankings, scores[there][None])[0, 0]) for name in AIMS.get(self.trial.fitness, ())]
        return Fitness(fitness, (*aims, -float(formula.size)) if aims else (fitness,))

    def prepare(self, formulas: Sequence[Formula]) -> None:
        """Has the statistics taken that these formulas need, all at once; in a table they lie ready."""
        wanted = [formula for formula in formulas if not formula.empty and same(formula) not in self.known]
        if self.pps:
            self.table.fetch(wanted, self.inside[:FIRST])
            wanted = [formula for formula in wanted if not self.hopeless(same(formula))]
        self.table.fetch(wanted, self.inside)


def early(scores: Any) -> bool:
    """Whether a formula says nothing of a few architectures."""
    known = scores[~np.isnan(scores)]
    return not np.isfinite(known).all() or (len(known) > 1 and bool(np.ptp(known) == 0))


def sampled(trial: FoldedRows, rows: Mask, count: int, rng: np.random.Generator) -> Mask:
    """So many of the networks that have these rows, with all of their rows there; 0 for all."""
    names = np.unique(trial.networks[rows])
    if count == 0 or count >= len(names):
        return rows
    return np.asarray(rows & np.isin(trial.networks, rng.choice(names, size=count, replace=False)))
