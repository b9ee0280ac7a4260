"""All formulas of two inputs: matrices of scores, sorted in blocks, the best kept."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from archwright.discovery.cross_fitting import best_first
from archwright.discovery.fitness import FoldedRows
from archwright.discovery.score_table import LEAST_SHARE, settle
from archwright.proxies.formulas.formula import Branch, Formula, single_branch
from archwright.proxies.formulas.operations import BINARY
from archwright.proxies.formulas.reductions import REDUCTIONS, Mask, Values
from archwright.spaces.formulas import SignedChains, available_products

BINS = np.linspace(-1, 1, 401)
KEPT = 200
"""Formulas of a pair that are kept for all rows, besides the best of each size, which every set of rows keeps."""
TOGETHER = 256
"""Scores of so many formulas are sorted at once, so that small pairs are not mostly overhead."""
MEASURED = 1024
"""Scores of so many formulas are gathered before their fitness is taken, as each set of rows costs a loop."""
JOINS = tuple(name for name, binary in BINARY.items() if binary.synonym is None)
"""add, sub, mul: what gives different numbers."""
Factor = tuple[Branch | None, Values]
"""What multiplies the score, and its value for every network."""


@dataclass(frozen=True)
class Side:
    """One input with the numbers of its chains."""

    signed: SignedChains
    values: Values
    """Networks x layers x chains."""

    @property
    def signs(self) -> Mask:
        """(plus, minus) x chains: which of them the space has."""
        return np.array([self.signed.plus, self.signed.minus])

    @property
    def sizes(self) -> Values:
        return np.array([len(chain) for chain in self.signed.chains])

    def mask_layers(self, present: Mask) -> "Side":
        """Zero in layers that are not present, and without the chains that are not finite in one that is."""
        finite: Mask = np.asarray((np.isfinite(self.values) | ~present[..., None]).all(axis=(0, 1)))
        chains, plus, minus = (
            tuple(item for item, keep in zip(items, finite, strict=True) if keep)
            for items in (self.signed.chains, self.signed.plus, self.signed.minus)
        )
        values = np.where(present[..., None], self.values[:, :, finite], 0.0)
        return Side(SignedChains(self.signed.input, chains, plus, minus), values)  # type: ignore[arg-type]

    def by_layer(self, networks: Mask) -> Values:
        """Layers x chains x networks."""
        return np.ascontiguousarray(self.values[networks].transpose(1, 2, 0))


@dataclass(frozen=True)
class Pair:
    """All formulas of two inputs, or of one alone: work for a process."""

    left: Side
    right: Side | None
    rows: FoldedRows
    reduction: str
    factors: tuple[Factor, ...]

    def __call__(self) -> dict[str, Any]:
        """How many formulas there are and how good the best of them are, on every set of rows."""
        present = ~np.isnan(self.left.values[:, :, 0])
        present &= ~np.isnan(self.right.values[:, :, 0]) if self.right else True
        networks = REDUCTIONS[self.reduction].enough(present)
        summary = {"total": self.total, "valid": 0, "counts": np.zeros(len(BINS) - 1, dtype=int).tolist(), "best": []}
        if self.rows.rows_per_network[networks].sum() < LEAST_SHARE * len(self.rows.truth):
            return summary
        right = self.right.mask_layers(present) if self.right else None
        pair = replace(self, left=self.left.mask_layers(present), right=right)
        return summary | merge_summaries([pair._summarise(factor, networks, present) for factor in self.factors])

    @property
    def total(self) -> int:
        return int(self._available().sum()) * len(self.factors)

    def _available(self) -> Mask:
        """(as it is, turned round) x binary x left x right: whether the space has the formula."""
        if self.right is None:
            return self.left.signs[:, None, :, None]
        sums = np.repeat(self.left.signs[:, :, None], len(self.right.sizes), axis=2)  # on the right it is the binary's
        return np.stack([sums, sums, available_products(self.left.signed, self.right.signed)], axis=1)

    def _sizes(self) -> Values:
        """Of the same."""
        if self.right is None:
            return np.stack([self.left.sizes, self.left.sizes + 1])[:, None, :, None] + 1
        both = self.left.sizes[:, None] + self.right.sizes[None] + 3
        return np.stack([np.stack([both, both, both]), np.stack([both + 1, both, both + 1])])

    def _fitness(self, factor: Values, networks: Mask, present: Mask) -> Values:
        """Binary x left x right x sets; NaN for what is not finite somewhere, or constant."""
        correlations = self.rows.correlations(networks)
        fitness = np.full((*self._available().shape[1:], len(self.rows.search_sets)), np.nan)
        waiting: list[tuple[Values, Mask, Values]] = []  # where fitness goes, which of it is valid, and its scores

        def measure() -> None:
            measured = self.rows.measure.measure(correlations, settle(np.concatenate([rows for _, _, rows in waiting])))
            ends = np.cumsum([len(rows) for _, _, rows in waiting])
            for (place, valid, _), part in zip(waiting, np.split(measured, ends[:-1]), strict=True):
                place[valid] = part
            waiting.clear()

        with np.errstate(all="ignore"):
            for binary, left, scores in self._score_blocks(networks, present):
                multiplied = scores * factor[networks]
                valid: Mask = np.asarray(np.isfinite(multiplied).all(axis=2))
                waiting.append((fitness[binary, left], valid, multiplied[valid]))
                if sum(len(rows) for _, _, rows in waiting) >= MEASURED:
                    measure()
            if waiting:
                measure()
        return fitness

    def _score_blocks(self, networks: Mask, present: Mask) -> Iterator[tuple[int, slice, Values]]:
        """Index of the binary operation and of some left chains, and their scores: left x right chains x networks."""
        reduction = REDUCTIONS[self.reduction]
        weights = reduction.weights(present[networks]).T[:, None, None]  # layers x 1 x 1 x networks
        left = self.left.by_layer(networks)[:, :, None]
        right = self.right.by_layer(networks)[:, None] if self.right else np.zeros_like(left[:, :1])
        weighted = left * weights if reduction.linear else left
        sums = weighted.sum(axis=0)[None], (right * weights).sum(axis=0)[None]  # of each branch by itself
        step = max(1, TOGETHER // right.shape[2])
        for start in range(0, left.shape[1], step):
            some = slice(start, start + step)
            for binary, name in enumerate(JOINS if self.right else JOINS[:1]):
                join: Callable[..., Values] = BINARY[name].apply  # type: ignore[assignment]
                first, second = sums if reduction.linear and name != "mul" else (weighted, right)
                layers = (join(a[some], b) for a, b in zip(first, second, strict=True))
                yield binary, some, reduce(reduction.step, layers, np.zeros(()))

    def _summarise(self, factor: Factor, networks: Mask, present: Mask) -> dict[str, Any]:
        """What is kept of the numbers of all formulas with this factor."""
        branch, values = factor
        fitness = self._fitness(values, networks, present)
        signed = np.where(self._available()[..., None], np.stack([fitness, -fitness]), np.nan)
        last = signed[..., -1]
        valid = np.isfinite(last)
        sizes = np.broadcast_to(self._sizes() + (2 + len(branch.chain) if branch else 0), last.shape)
        counts = np.histogram(np.clip(last[valid], -1, 1), BINS)[0]
        most = [0] * (signed.shape[-1] - 1) + [KEPT]
        best = [self._best(signed[..., index], sizes, count, branch) for index, count in enumerate(most)]
        return {"valid": int(valid.sum()), "counts": counts.tolist(), "best": best}

    def _best(self, fitness: Values, sizes: Values, most: int, factor: Branch | None) -> list[list[Any]]:
        """[fitness, size, formula] of so many of the best on one set of rows, and of the best of each size."""
        flat, flat_sizes = np.nan_to_num(fitness, nan=-np.inf).ravel(), sizes.ravel()
        codes = {int(np.argmax(np.where(flat_sizes == size, flat, -np.inf))) for size in np.unique(flat_sizes)}
        most = min(most, len(flat))
        codes |= set(np.argpartition(flat, -most)[-most:].tolist()) if most else set()
        valid = [code for code in codes if np.isfinite(flat[code])]
        texts = {code: str(replace(self._formula(code, fitness.shape), factor=factor)) for code in valid}
        return sorted(([float(flat[code]), int(flat_sizes[code]), texts[code]] for code in valid), key=best_first)

    def _formula(self, code: int, shape: tuple[int, ...]) -> Formula:
        """The formula at this index of the arrays above, without its factor."""
        turned, binary, left, right = np.unravel_index(code, shape)
        first = Branch(self.left.signed.input, self.left.signed.chains[left])
        if turned:
            first = first.with_sign()
        if self.right is None:
            return single_branch(first, self.reduction).canonical()
        second = Branch(self.right.signed.input, self.right.signed.chains[right])
        name = JOINS[int(binary)]
        if turned:  # -(x + y) is -x - y
            name = BINARY[name].negated_right or name
        return Formula(first, second, name, self.reduction).canonical()


def merge_summaries(summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Summaries of several factors as one, with the best, and the best of each size."""
    counts = np.sum([summary["counts"] for summary in summaries], axis=0).tolist()
    best = []
    for sets in zip(*(summary["best"] for summary in summaries), strict=True):
        rows = sorted((row for part in sets for row in part), key=best_first)
        first = {row[1]: index for index, row in reversed(list(enumerate(rows)))}
        best.append([row for index, row in enumerate(rows) if index < KEPT or index == first[row[1]]])
    return {"valid": sum(summary["valid"] for summary in summaries), "counts": counts, "best": best}
