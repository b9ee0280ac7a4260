"""Statistics of all networks, and the scores of formulas made of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from archwright.proxies.formulas.formula import Branch, Formula
from archwright.proxies.formulas.operations import BINARY, Chain
from archwright.proxies.formulas.reductions import REDUCTIONS, Mask, Values

__all__ = ["LEAST_SHARE", "Mask", "Scorer", "Table", "Values", "exists", "reduced", "scored"]


class Scorer(Protocol):
    """Scores of formulas, from statistics that lie ready or are taken when they are wanted."""

    @property
    def lazy(self) -> bool:
        """Whether they are taken when wanted: many at once are cheaper."""

    @property
    def content(self) -> bytes:
        """Equal for equal statistics."""

    def scores(self, formula: Formula, networks: Any = ...) -> Values:
        """One per network: NaN where no layer has what it looks at, infinite where a number on the way is."""

    def fetch(self, formulas: Sequence[Formula], networks: Any) -> None:
        """Takes what these formulas need of these networks."""

    def rest(self) -> None:
        """Gives back what only a search needs."""


@dataclass(frozen=True)
class Table:
    """Numbers of every network, input, chain and layer: NaN where a layer lacks the role, infinite where none is."""

    inputs: tuple[str, ...]
    chains: tuple[Chain, ...]
    values: Values
    """Networks x inputs x chains x layers; networks with fewer layers are filled up with NaN."""
    lazy: ClassVar[bool] = False

    @classmethod
    def of(cls, inputs: tuple[str, ...], chains: tuple[Chain, ...], looks: Sequence[Values]) -> "Table":
        """From inputs x chains x layers of each network."""
        most = max(one.shape[2] for one in looks)
        values = np.full((len(looks), len(inputs), len(chains), most), np.nan)
        for place, one in enumerate(looks):
            values[place, :, :, : one.shape[2]] = one
        return cls(inputs, chains, values)

    @cached_property
    def _places(self) -> dict[Chain, int]:
        return {chain: place for place, chain in enumerate(self.chains)}

    def column(self, branch: Branch) -> Values:
        """Networks x layers; KeyError for a chain whose statistics were not taken."""
        chain = branch.canonical().chain
        sign = -1.0 if chain[-1:] == ("negate",) and chain not in self._places else 1.0
        place = self._places[chain if sign > 0 else chain[:-1]]
        return np.asarray(sign * self.values[:, self.inputs.index(branch.input), place])

    @property
    def content(self) -> bytes:
        return self.values.tobytes()

    def fetch(self, formulas: Sequence[Formula], networks: Any) -> None:
        """Everything lies ready."""

    def rest(self) -> None:
        """There is nothing to give back."""

    def scores(self, formula: Formula, networks: Any = slice(None)) -> Values:
        """One per network: NaN where no layer has what it looks at, infinite where a number on the way is."""
        factor = self.column(formula.factor)[networks] if formula.factor else None
        return scored(formula, [self.column(branch)[networks] for branch in formula.active], factor)

    def factor(self, branch: Branch | None) -> Values:
        """What the score of every network is multiplied with: a count is the same in all layers."""
        return np.ones(len(self.values)) if branch is None else self.column(branch)[:, 0]

    def many(self, formulas: Sequence[Formula]) -> Values:
        """Networks x formulas."""
        return np.stack([self.scores(formula) for formula in formulas], axis=1)


def scored(formula: Formula, columns: Sequence[Values], factor: Values | None) -> Values:
    """Of networks x layers for each branch that is kept, and for what the score is multiplied with."""
    there: Mask = np.asarray(~np.isnan(np.stack(columns)).any(axis=0))
    with np.errstate(all="ignore"):
        joined = columns[0] if len(columns) == 1 else BINARY[formula.binary].apply(*columns)  # type: ignore[arg-type]
        found = reduced(np.asarray(joined), there, formula.reduction)
        return found if factor is None else found * factor[:, 0]  # a count is the same in all layers


def reduced(terms: Values, there: Mask, reduction: str) -> Values:
    """Over the layers that are there; networks x layers to one number each."""
    of = REDUCTIONS[reduction]
    finite = np.where(there, np.where(np.isfinite(terms), terms, np.inf), 0.0)
    total = np.zeros(len(terms))
    with np.errstate(all="ignore"):
        for layer, weight in zip(finite.T, of.weights(there).T, strict=True):
            total = of.step(total, np.where(np.isfinite(layer), layer * weight, layer))
    return np.where(there.any(axis=1), np.where(np.isnan(total), np.inf, total), np.nan)


LEAST_SHARE = 0.95


def exists(scores: Values, rows: Values) -> bool:
    """Whether a formula is finite wherever it is anything, and that on 95 % of the rows; `rows` is rows per network."""
    there = ~np.isnan(scores)
    return bool(np.isfinite(scores[there]).all() and rows[there].sum() >= LEAST_SHARE * rows.sum())
