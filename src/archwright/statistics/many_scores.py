"""Rank correlations of very many score vectors with one truth, on several sets of rows at once.

A vector has one score per network; rows that are the same network share it. Every vector is sorted once, whatever the
number of sets: the ranks inside a set are sums of its rows along that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archwright.statistics.bootstrap import codes
from archwright.statistics.ranks import Codes, RankOrder, Values
from archwright.statistics.strata import is_usable_cell, rows_by_cell

Mask = NDArray[np.bool_]
BLOCK = 256
"""Vectors that are ranked together: what they take fits into the cache of a core."""


@dataclass(frozen=True)
class RowSets:
    """Some sets of rows as weights of networks, and what correlations with the truth need to know of each."""

    weights: Values
    """Sets x networks: rows of the network in the set."""
    truth: Values
    """Sets x networks: sum of the centred ranks of its rows in the set; zero outside."""
    spread: Values
    """Of each set, the sum of squares of these ranks."""

    @classmethod
    def of(cls, truth: Values, networks: Codes, sets: Sequence[Mask]) -> RowSets:
        """`networks` is the network of every row, 0 and up; each set says which rows it has."""
        count = int(networks.max()) + 1
        ranks = [RankOrder.of(truth[rows]).centred_ranks(np.ones((1, int(rows.sum()))))[0] for rows in sets]
        weights = [np.bincount(networks[rows], minlength=count).astype(np.float64) for rows in sets]
        sums = [np.bincount(networks[rows], rank, count) for rows, rank in zip(sets, ranks, strict=True)]
        return cls(np.array(weights), np.array(sums), np.array([float(rank @ rank) for rank in ranks]))

    def spearman(self, scores: ArrayLike) -> Values:
        """Vectors x sets, from finite scores, vectors x networks; NaN where a side is constant in a set.

        Scores that agree in the first 12 digits are equal.
        """
        table = np.asarray(scores, dtype=np.float64)
        found = np.empty((len(table), len(self.weights)))
        for start in range(0, len(table), BLOCK):
            found[start : start + BLOCK] = self._block(table[start : start + BLOCK])
        return found

    def _block(self, scores: Values) -> Values:
        order, first = sorted_places(scores)
        tied = ~first.all(axis=1)
        found = np.empty((len(scores), len(self.weights)))
        found[~tied] = self._without_ties(order[~tied])
        found[tied] = self._with_ties(order[tied], first[tied])
        return found

    def _without_ties(self, order: Codes) -> Values:
        """Where no two networks have the same score, only twins tie, and the spread of the ranks is known before."""
        found = np.empty((len(order), len(self.weights)))
        for place, (weights, truth, spread) in enumerate(zip(self.weights, self.truth, self.spread, strict=True)):
            rows = weights.sum()
            own = (rows**3 - rows - (weights**3 - weights).sum()) / 12
            ranks = np.cumsum(weights.take(order), axis=1)
            ranks -= (weights / 2).take(order)
            found[:, place] = np.einsum("vn,vn->v", ranks, truth.take(order))
            found[:, place] *= (own * spread) ** -0.5 if own > 0 and spread > 0 else np.nan
        return found

    def _with_ties(self, order: Codes, first: Mask) -> Values:
        """Networks of equal score have their mean rank."""
        last = np.concatenate([first[:, 1:], np.ones((len(first), 1), dtype=bool)], axis=1)
        found = np.empty((len(order), len(self.weights)))
        for place, (weights, truth, spread) in enumerate(zip(self.weights, self.truth, self.spread, strict=True)):
            ranks = mean_ranks(weights.take(order), first, last) - weights.sum() / 2
            own = np.einsum("vn,vn,vn->v", ranks, ranks, weights.take(order))
            above = np.einsum("vn,vn->v", ranks, truth.take(order))
            with np.errstate(all="ignore"):
                found[:, place] = np.where((own > 0) & (spread > 0), above / np.sqrt(own * spread), np.nan)
        return found


def sorted_places(scores: Values) -> tuple[Codes, Mask]:
    """Places of the networks from the smallest score up, and which of them have another score than the one before.

    The place is written into the last bits of its score: of 256 x 500 numbers `np.sort` takes half the time of
    `np.argsort`, and a quarter of that of a stable one.
    """
    keys = (scores + 0.0).view(np.int64)  # + 0.0: minus zero is zero
    bits = np.int64((1 << (scores.shape[1] - 1).bit_length()) - 1)
    keys &= ~bits
    keys |= np.arange(scores.shape[1])
    keys.view(np.float64).sort(axis=1)
    first = np.ones(scores.shape, dtype=bool)
    np.not_equal(keys[:, 1:] & ~bits, keys[:, :-1] & ~bits, out=first[:, 1:])
    return keys & bits, first


def mean_ranks(weights: Values, first: Mask, last: Mask) -> Values:
    """Mean rank, less a half, of every network in sorted order, those of equal score together."""
    above = np.cumsum(weights, axis=1)
    begin = np.maximum.accumulate(np.where(first, above - weights, -1.0), axis=1)
    end = np.minimum.accumulate(np.where(last, above, np.inf)[:, ::-1], axis=1)[:, ::-1]
    return np.asarray((begin + end) / 2)


@dataclass(frozen=True)
class BulkCorrelations:
    """Correlations of score vectors with the truth on several sets of rows: overall and inside cells."""

    overall: RowSets
    cells: tuple[tuple[Codes, RowSets], ...]
    """The networks of every cell, and the parts of the sets inside it."""
    rows: Values
    """Sets x cells: rows of each part, zero where it is too small."""

    @classmethod
    def of(
        cls, truth: ArrayLike, *, groups: Sequence[Any], cells: Sequence[Any], sets: Sequence[Mask]
    ) -> BulkCorrelations:
        values, networks, inside = np.asarray(truth, dtype=np.float64), codes(groups), codes(cells)
        rows, parts = [], []
        for cell in rows_by_cell(inside):
            own, members, inner = values[cell], networks[cell], [mask[cell] for mask in sets]
            rows.append([mask.sum() if is_usable_cell(own[mask], own[mask]) else 0 for mask in inner])
            parts.append((np.unique(members), RowSets.of(own, codes(members), inner)))
        return cls(RowSets.of(values, networks, sets), tuple(parts), np.array(rows, dtype=np.float64).T)

    def spearman(self, scores: ArrayLike) -> Values:
        """Vectors x sets."""
        return self.overall.spearman(scores)

    def within(self, scores: ArrayLike) -> Values:
        """Vectors x sets: mean Spearman inside cells weighted by their rows, as `judge_on` has it."""
        table = np.asarray(scores, dtype=np.float64)
        found = np.stack([sets.spearman(table[:, networks]) for networks, sets in self.cells], axis=2)
        weights = np.where(np.isfinite(found), self.rows, 0.0)
        with np.errstate(all="ignore"):
            return np.asarray((np.nan_to_num(found) * weights).sum(axis=2) / weights.sum(axis=2))
