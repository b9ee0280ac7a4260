"""What formulas are tried on: trained rows, the folds that are kept from each search, and the fitness."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archwright.discovery.score_table import Mask, Values
from archwright.statistics.bootstrap import codes
from archwright.statistics.many_scores import BulkCorrelations
from archwright.statistics.ranks import Codes
from archwright.statistics.resampling import FOLDS, folds

FITNESS: dict[str, Callable[[BulkCorrelations, Values], Values]] = {
    "spearman": lambda rankings, scores: rankings.spearman(scores),
    "within": lambda rankings, scores: rankings.within(scores),
    "both": lambda rankings, scores: (rankings.spearman(scores) + rankings.within(scores)) / 2,
    "pareto": lambda rankings, scores: (rankings.spearman(scores) + rankings.within(scores)) / 2,
}
"""Vectors x sets of vectors x networks; a score turned round has its fitness turned round."""

AIMS: dict[str, tuple[str, ...]] = {"pareto": ("spearman", "within")}
"""What is traded off, together with size; the fitness above then picks one formula of a size."""


@dataclass(frozen=True)
class FoldedRows:
    """Rows with what training gave; rows of one network share their score."""

    truth: Values
    groups: tuple[str, ...]
    cells: tuple[str, ...]
    fold: Codes
    """Of each row."""
    fitness: str = "spearman"

    @classmethod
    def of(cls, truth: Values, groups: Sequence[str], cells: Sequence[str], *, seed: int, fitness: str) -> "FoldedRows":
        fold = folds(cells, groups, rng=np.random.default_rng((seed, 7)), count=FOLDS)
        return cls(truth, tuple(groups), tuple(cells), fold, fitness)

    @cached_property
    def names(self) -> list[str]:
        """The networks, in the order of a table."""
        return sorted(set(self.groups))

    @cached_property
    def networks(self) -> Codes:
        """Network of each row."""
        return codes(self.groups)

    @property
    def rows(self) -> Values:
        """How many rows each network has."""
        return np.bincount(self.networks, minlength=len(self.names)).astype(np.float64)

    @property
    def count(self) -> int:
        return int(self.fold.max()) + 1

    @property
    def sets(self) -> list[Mask]:
        """Rows that each search may see: all but a fold, for every fold, and at last all."""
        return [*(self.fold != place for place in range(self.count)), np.ones(len(self.fold), dtype=bool)]

    def rankings(self, there: Mask, sets: Sequence[Mask] | None = None) -> BulkCorrelations:
        """Of score vectors of the networks that are there, which have the order of the table."""
        rows = there[self.networks]
        inside = [one[rows] for one in (self.sets if sets is None else sets)]
        groups, cells = (np.array(side)[rows].tolist() for side in (self.groups, self.cells))
        return BulkCorrelations.of(self.truth[rows], groups=groups, cells=cells, sets=inside)
