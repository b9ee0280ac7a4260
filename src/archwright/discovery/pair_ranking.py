"""All formulas of two inputs: matrices of scores, sorted in blocks, the best kept."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import add, mul, sub
from typing import Any

import numpy as np

from archwright.discovery.folds import FITNESS, FoldedRows
from archwright.discovery.score_table import LEAST_SHARE, Mask, Values
from archwright.proxies.formulas.formula import Branch, Formula
from archwright.proxies.formulas.reductions import REDUCTIONS
from archwright.proxies.formulas.simplification import PRUNED
from archwright.spaces.formulas import Sided, products

BINS = np.linspace(-1, 1, 401)
KEPT = 200
"""Formulas of a pair that are kept for all rows, besides the best of each size, which every set of rows keeps."""
TOGETHER = 256
"""Scores of so many formulas are sorted at once, so that small pairs are not mostly overhead."""
JOINED: dict[str, Callable[[Values, Values], Values]] = {"add": add, "sub": sub, "mul": mul}
"""The fourth binary operation is the third on numbers."""
FLIPPED = {"add": "sub", "sub": "add"}
"""Turned round as a whole: -(x + y) is -x - y."""
Factor = tuple[Branch | None, Values]
"""What multiplies the score, and its value for every network."""


@dataclass(frozen=True)
class Side:
    """One input with the numbers of its chains."""

    sided: Sided
    values: Values
    """Networks x layers x chains."""

    @property
    def signs(self) -> Mask:
        """(plus, minus) x chains: which of them the space has."""
        return np.array([self.sided.plus, self.sided.minus])

    @property
    def sizes(self) -> Values:
        return np.array([len(chain) for chain in self.sided.chains])

    def of(self, chains: Mask) -> "Side":
        """Only these chains."""
        of = self.sided
        kept = [
            triple
            for triple, wanted in zip(zip(of.chains, of.plus, of.minus, strict=True), chains, strict=True)
            if wanted
        ]
        named, plus, minus = zip(*kept, strict=True) if kept else ((), (), ())
        return Side(Sided(of.input, named, plus, minus), self.values[:, :, chains])


@dataclass(frozen=True)
class Pair:
    """All formulas of two inputs, or of one alone: work for a process."""

    left: Side
    right: Side | None
    trial: FoldedRows
    reduction: str
    factors: tuple[Factor, ...]

    def __call__(self) -> dict[str, Any]:
        """How many formulas there are and how good the best of them are, on every set of rows."""
        there = ~np.isnan(self.left.values[:, :, 0])
        there &= ~np.isnan(self.right.values[:, :, 0]) if self.right else True
        networks: Mask = np.asarray(there.any(axis=1))
        known = {"total": self.total, "valid": 0, "counts": np.zeros(len(BINS) - 1, dtype=int).tolist(), "best": []}
        if self.trial.rows[networks].sum() < LEAST_SHARE * len(self.trial.truth):
            return known
        pair = replace(self, left=cut(self.left, there), right=cut(self.right, there) if self.right else None)
        return known | joined([pair.summary(factor, networks, there) for factor in self.factors])

    @property
    def total(self) -> int:
        return int(self.available().sum()) * len(self.factors)

    def available(self) -> Mask:
        """(as it is, turned round) x binary x left x right: whether the space has the formula."""
        if self.right is None:
            return self.left.signs[:, None, :, None]
        sums = np.repeat(self.left.signs[:, :, None], len(self.right.sizes), axis=2)  # on the right it is the binary's
        return np.stack([sums, sums, products(self.left.sided, self.right.sided)], axis=1)

    def sizes(self) -> Values:
        """Of the same."""
        if self.right is None:
            return np.stack([self.left.sizes, self.left.sizes + 1])[:, None, :, None] + 1
        both = self.left.sizes[:, None] + self.right.sizes[None] + 3
        return np.stack([np.stack([both, both, both]), np.stack([both + 1, both, both + 1])])

    def fitness(self, factor: Values, networks: Mask, there: Mask) -> Values:
        """Binary x left x right x sets; NaN for what is not finite somewhere, or constant."""
        rankings = self.trial.rankings(networks)
        measure = FITNESS[self.trial.fitness]
        found = np.full((*self.available().shape[1:], len(self.trial.sets)), np.nan)
        with np.errstate(all="ignore"):
            for binary, left, scores in self.blocks(networks, there):
                multiplied = scores * factor[networks]
                valid = np.isfinite(multiplied).all(axis=2)
                found[binary, left][valid] = measure(rankings, multiplied[valid])
        return found

    def blocks(self, networks: Mask, there: Mask) -> Iterator[tuple[int, slice, Values]]:
        """Place of the binary operation and of some left chains, and their scores: left x right chains x networks."""
        of = REDUCTIONS[self.reduction]
        weights = of.weights(there[networks]).T[:, None, None]  # layers x 1 x 1 x networks
        left = layered(self.left, networks)[:, :, None]
        right = layered(self.right, networks)[:, None] if self.right else np.zeros_like(left[:, :1])
        weighted = left * weights if of.linear else left
        alone = weighted.sum(axis=0)[None], (right * weights).sum(axis=0)[None]
        step = max(1, TOGETHER // right.shape[2])
        for place in range(0, left.shape[1], step):
            some = slice(place, place + step)
            for binary, join in enumerate(JOINED.values() if self.right else [add]):
                one, other = alone if of.linear and join is not mul else (weighted, right)
                layers = (join(a[some], b) for a, b in zip(one, other, strict=True))
                yield binary, some, added(layers, of.step)

    def summary(self, factor: Factor, networks: Mask, there: Mask) -> dict[str, Any]:
        """What is kept of the numbers of all formulas with this factor."""
        fitness = self.fitness(factor[1], networks, there)
        signed = np.where(self.available()[..., None], np.stack([fitness, -fitness]), np.nan)
        last = signed[..., -1]
        valid = np.isfinite(last)
        sizes = np.broadcast_to(self.sizes() + (2 + len(factor[0].chain) if factor[0] else 0), last.shape)
        counts = np.histogram(np.clip(last[valid], -1, 1), BINS)[0]
        kept = [0] * (signed.shape[-1] - 1) + [KEPT]
        best = [self.kept(signed[..., place], sizes, most, factor[0]) for place, most in enumerate(kept)]
        return {"valid": int(valid.sum()), "counts": counts.tolist(), "best": best}

    def kept(self, fitness: Values, sizes: Values, most: int, factor: Branch | None) -> list[list[Any]]:
        """[fitness, size, formula] of so many of the best on one set of rows, and of the best of each size."""
        flat, of = np.nan_to_num(fitness, nan=-np.inf).ravel(), sizes.ravel()
        found = {int(np.argmax(np.where(of == size, flat, -np.inf))) for size in np.unique(of)}
        most = min(most, len(flat))
        found |= set(np.argpartition(flat, -most)[-most:].tolist()) if most else set()
        valid = [code for code in found if np.isfinite(flat[code])]
        texts = {code: str(replace(self.formula(code, fitness.shape), factor=factor)) for code in valid}
        return sorted(([float(flat[code]), int(of[code]), texts[code]] for code in valid), key=order)

    def formula(self, code: int, shape: tuple[int, ...]) -> Formula:
        """The formula at this place of the arrays above, without its factor."""
        turned, binary, left, right = np.unravel_index(code, shape)
        one = Branch(self.left.sided.input, self.left.sided.chains[left])
        if self.right is None:
            alone = one.with_sign() if turned else one
            return Formula(alone, Branch(one.input, PRUNED), "add", self.reduction).canonical()
        other = Branch(self.right.sided.input, self.right.sided.chains[right])
        name = list(JOINED)[int(binary)]
        flipped = FLIPPED.get(name, name) if turned else name
        return Formula(one.with_sign() if turned else one, other, flipped, self.reduction).canonical()


def layered(side: Side, networks: Mask) -> Values:
    """Layers x chains x networks."""
    return np.ascontiguousarray(side.values[networks].transpose(1, 2, 0))


def added(layers: Iterator[Values], step: Callable[[Values, Values], Values]) -> Values:
    found = step(np.zeros(()), next(layers))
    for layer in layers:
        found = step(found, layer)
    return found


def joined(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Summaries of several factors as one."""
    counts = np.sum([one["counts"] for one in found], axis=0).tolist()
    best = [
        sorted((row for of in sets for row in of), key=order)
        for sets in zip(*(one["best"] for one in found), strict=True)
    ]
    return {"valid": sum(one["valid"] for one in found), "counts": counts, "best": [thinned(rows) for rows in best]}


def thinned(rows: list[list[Any]]) -> list[list[Any]]:
    """The best, and the best of each size."""
    first = {row[1]: place for place, row in reversed(list(enumerate(rows)))}
    return [row for place, row in enumerate(rows) if place < KEPT or place == first[row[1]]]


def order(row: Sequence[Any]) -> tuple[float, int, str]:
    """The best first; of equals the smallest."""
    return -row[0], row[1], row[2]


def cut(side: Side, there: Mask) -> Side:
    """Zero in layers that do not count, and without the chains that are not finite in one that does."""
    finite: Mask = np.asarray((np.isfinite(side.values) | ~there[..., None]).all(axis=(0, 1)))
    kept = side.of(finite)
    return replace(kept, values=np.where(there[..., None], kept.values, 0.0))
