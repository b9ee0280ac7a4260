"""How good a formula is on trained rows: rows with folds kept from each search, measures of fitness, and its price."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from archwright import random_streams
from archwright.discovery.score_table import LEAST_SHARE, FormulaScorer, settle
from archwright.proxies.formulas.formula import Formula
from archwright.proxies.formulas.reductions import Mask, Values
from archwright.statistics.bootstrap import codes
from archwright.statistics.many_scores import BulkCorrelations
from archwright.statistics.ranks import Codes, Counts, RankOrder, resampled_spearman
from archwright.statistics.resampling import FOLDS, folds
from archwright.statistics.strata import within_cells

FIRST = 4
"""Architectures on which a formula must differ, and be finite, before it is scored on the others."""


@dataclass(frozen=True)
class FitnessMeasure:
    """What the best formula is best at."""

    summary: str
    measure: Callable[[BulkCorrelations, Values], Values]
    """Vectors x sets of rows, of vectors x networks; a score turned round has its fitness turned round."""
    resampled: Callable[[Counts, Values, Values, Codes], Values]
    """(resamples x rows, scores, truth, cells) -> one value per resample, for standard errors."""
    objectives: tuple[str, ...] = ()
    """Measures that are traded off, together with size; `measure` then picks one formula of a size."""


def within_all_cells(correlations: BulkCorrelations, scores: Values) -> Values:
    """Mean Spearman inside cells weighted by their rows, vectors x sets. A cell in which a score is constant counts as
    zero: left out, a formula that differs in one small cell only would be judged by that cell."""
    inside = np.stack([sets.spearman(scores[:, networks]) for networks, sets in correlations.cells], axis=2)
    with np.errstate(all="ignore"):
        return np.asarray((np.nan_to_num(inside) * correlations.rows).sum(axis=2) / correlations.rows.sum(axis=1))


def mean_correlation(correlations: BulkCorrelations, scores: Values) -> Values:
    return (correlations.spearman(scores) + within_all_cells(correlations, scores)) / 2


def overall(counts: Counts, scores: Values, truth: Values, cells: Codes) -> Values:
    return resampled_spearman(counts, RankOrder.of(scores), RankOrder.of(truth))


def mean_resampled(counts: Counts, scores: Values, truth: Values, cells: Codes) -> Values:
    return (overall(counts, scores, truth, cells) + within_cells(counts, scores, truth, cells)) / 2


FITNESS: dict[str, FitnessMeasure] = {
    "spearman": FitnessMeasure("rank correlation over all rows (LPZero)", BulkCorrelations.spearman, overall),
    "within": FitnessMeasure(
        "mean rank correlation inside cells of equal depth and width", within_all_cells, within_cells
    ),
    "both": FitnessMeasure("the mean of the two", mean_correlation, mean_resampled),
    "pareto": FitnessMeasure(
        "the two and size traded off: evolution towards a front (NSGA-II), one formula per size",
        mean_correlation,
        mean_resampled,
        objectives=("spearman", "within"),
    ),
}


@dataclass(frozen=True)
class FoldedRows:
    """Rows with what training gave; rows of one network share their score."""

    truth: Values
    groups: tuple[str, ...]
    """Network of each row, by name."""
    cells: tuple[str, ...]
    folds: tuple[Codes, ...]
    """Of each row, for each fold seed: rows are split anew, and formulas chosen anew."""
    fitness: str = "spearman"
    """A name of FITNESS."""

    @classmethod
    def split(
        cls, truth: Values, groups: Sequence[str], cells: Sequence[str], *, seed: int, fitness: str, repeats: int = 1
    ) -> "FoldedRows":
        """Split `repeats` times: as with this seed, the next one, and so on."""
        streams = (np.random.default_rng((seed + number, random_streams.FOLDS)) for number in range(repeats))
        splits = (folds(cells, groups, rng=rng, count=FOLDS) for rng in streams)
        return cls(truth, tuple(groups), tuple(cells), tuple(splits), fitness)

    @property
    def measure(self) -> FitnessMeasure:
        return FITNESS[self.fitness]

    @cached_property
    def network_names(self) -> list[str]:
        """In the order of a table."""
        return sorted(set(self.groups))

    @cached_property
    def networks(self) -> Codes:
        """Network of each row, by index."""
        return codes(self.groups)

    @property
    def rows_per_network(self) -> Values:
        return np.bincount(self.networks, minlength=len(self.network_names)).astype(np.float64)

    @property
    def fold_count(self) -> int:
        """Of one split."""
        return int(self.folds[0].max()) + 1

    @property
    def set_count(self) -> int:
        return len(self.folds) * self.fold_count + 1

    @property
    def search_sets(self) -> list[Mask]:
        """Rows that each search may use: all but a fold, for every fold of every split, and at last all."""
        without = [split != fold for split in self.folds for fold in range(self.fold_count)]
        return [*without, np.ones(len(self.truth), dtype=bool)]

    def correlations(self, networks: Mask, sets: Sequence[Mask] | None = None) -> BulkCorrelations:
        """Of score vectors of these networks, in the order of the table, with the truth of each set of rows."""
        rows = networks[self.networks]
        inside = [mask[rows] for mask in (self.search_sets if sets is None else sets)]
        groups, cells = (np.array(names)[rows].tolist() for names in (self.groups, self.cells))
        return BulkCorrelations.of(self.truth[rows], groups=groups, cells=cells, sets=inside)


@lru_cache(maxsize=1 << 16)
def canonical_formula(formula: Formula) -> Formula:
    """The formula that stands for all with the same score."""
    return formula.canonical()


@dataclass(frozen=True)
class Fitness:
    """Higher is better; minus infinity for what is no proxy of these rows."""

    value: float
    objectives: tuple[float, ...] = ()
    """Several to be traded off, higher is better; none for what is no proxy."""


NO_FITNESS = Fitness(-np.inf)


@dataclass
class SearchCounts:
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

    table: FormulaScorer
    folded: FoldedRows
    rows: Mask
    pps: bool
    counts: SearchCounts = field(default_factory=SearchCounts)
    known: dict[Formula, Fitness] = field(default_factory=dict)
    """By canonical form."""

    @cached_property
    def inside(self) -> Any:
        """The networks that have these rows."""
        return np.unique(self.folded.networks[self.rows])

    @cached_property
    def _weights(self) -> Any:
        """Rows of each of these networks."""
        return np.bincount(self.folded.networks[self.rows])[self.inside].astype(np.float64)

    @cached_property
    def _all_correlations(self) -> BulkCorrelations:
        return self._correlations(np.ones(len(self.inside), dtype=bool))

    def _correlations(self, present: Mask) -> BulkCorrelations:
        networks = np.isin(np.arange(len(self.folded.network_names)), self.inside[present])
        return self.folded.correlations(networks, [self.rows])

    def __call__(self, formula: Formula) -> Fitness:
        canonical = canonical_formula(formula)
        self.counts.copies += canonical in self.known
        if canonical not in self.known:
            self.known[canonical] = self._evaluate(canonical)
        return self.known[canonical]

    def _evaluate(self, formula: Formula) -> Fitness:
        if formula.empty:
            self.counts.invalid += 1
            return NO_FITNESS
        if self.pps and self._is_hopeless(formula):
            self.counts.stopped += 1
            self.counts.looks += min(FIRST, len(self.inside))
            return NO_FITNESS
        self.counts.scored += 1
        self.counts.looks += len(self.inside)
        fitness = self._measure(formula)
        self.counts.invalid += not fitness.objectives
        return fitness

    def _is_hopeless(self, formula: Formula) -> bool:
        return tells_nothing(self.table.scores(formula, self.inside[:FIRST]))

    def _measure(self, formula: Formula) -> Fitness:
        scores = self.table.scores(formula, self.inside)
        present = ~np.isnan(scores)
        enough = self._weights[present].sum() >= LEAST_SHARE * self._weights.sum()
        if not np.isfinite(scores[present]).all() or not enough:
            return NO_FITNESS
        correlations = self._all_correlations if present.all() else self._correlations(present)
        vector = settle(scores[present][None])
        value = float(self.folded.measure.measure(correlations, vector)[0, 0])
        if not np.isfinite(value):
            return NO_FITNESS
        names = self.folded.measure.objectives
        objectives = [float(FITNESS[name].measure(correlations, vector)[0, 0]) for name in names]
        return Fitness(value, (*objectives, -float(formula.size)) if objectives else (value,))

    def prefetch(self, formulas: Sequence[Formula]) -> None:
        """Has the statistics taken that these formulas need, all at once; in a table they lie ready."""
        unknown = [
            formula for formula in formulas if not formula.empty and canonical_formula(formula) not in self.known
        ]
        if self.pps:
            self.table.prefetch(unknown, self.inside[:FIRST])
            unknown = [formula for formula in unknown if not self._is_hopeless(canonical_formula(formula))]
        self.table.prefetch(unknown, self.inside)


def tells_nothing(scores: Values) -> bool:
    """Whether a formula is constant or not finite on a few architectures."""
    known = scores[~np.isnan(scores)]
    return not np.isfinite(known).all() or (len(known) > 1 and bool(np.ptp(known) == 0))


def sample_networks(folded: FoldedRows, rows: Mask, count: int, rng: np.random.Generator) -> Mask:
    """So many of the networks that have these rows, with all of their rows there; 0 for all."""
    networks = np.unique(folded.networks[rows])
    if count == 0 or count >= len(networks):
        return rows
    return np.asarray(rows & np.isin(folded.networks, rng.choice(networks, size=count, replace=False)))
