"""Statistics of all networks as one table, and the scores of formulas computed from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from archwright.proxies.formulas.formula import Branch, Formula
from archwright.proxies.formulas.operations import BINARY, Chain
from archwright.proxies.formulas.reductions import REDUCTIONS, Mask, Values

LEAST_SHARE = 0.95
"""Of the rows that a formula must have a score for."""

HALF = 1 << 19
"""Of the last bit that is kept of a score, in units of the last one it has."""


class FormulaScorer(Protocol):
    """Scores of formulas, from statistics that lie ready or are taken when a formula first needs them."""

    @property
    def lazy(self) -> bool:
        """Whether they are taken when needed: many at once are cheaper."""

    @property
    def content(self) -> bytes:
        """Equal for equal statistics."""

    def scores(self, formula: Formula, networks: Any = ...) -> Values:
        """One per network: NaN where no layer has its inputs, infinite where a number on the way is."""

    def prefetch(self, formulas: Sequence[Formula], networks: Any) -> None:
        """Takes the statistics that these formulas need of these networks."""

    def release(self) -> None:
        """Gives back what only a search needs."""


@dataclass(frozen=True)
class StatisticsTable:
    """Numbers of every network, input, chain and layer: NaN where a layer lacks the role, infinite where none is."""

    inputs: tuple[str, ...]
    chains: tuple[Chain, ...]
    values: Values
    """Networks x inputs x chains x layers; networks with fewer layers are filled up with NaN."""
    lazy: ClassVar[bool] = False

    @classmethod
    def stack(cls, inputs: tuple[str, ...], chains: tuple[Chain, ...], networks: Sequence[Values]) -> "StatisticsTable":
        """From inputs x chains x layers of each network."""
        depth = max(network.shape[2] for network in networks)
        values = np.full((len(networks), len(inputs), len(chains), depth), np.nan)
        for index, network in enumerate(networks):
            values[index, :, :, : network.shape[2]] = network
        return cls(inputs, chains, values)

    @cached_property
    def _indices(self) -> dict[Chain, int]:
        return {chain: index for index, chain in enumerate(self.chains)}

    @property
    def content(self) -> bytes:
        return self.values.tobytes()

    def column(self, branch: Branch) -> Values:
        """Networks x layers; KeyError for a chain whose statistics were not taken."""
        canonical = branch.canonical()
        negate = canonical.is_negated and canonical.chain not in self._indices
        index = self._indices[canonical.without_sign().chain if negate else canonical.chain]
        return np.asarray((-1.0 if negate else 1.0) * self.values[:, self.inputs.index(branch.input), index])

    def scores(self, formula: Formula, networks: Any = slice(None)) -> Values:
        factor = self.column(formula.factor)[networks] if formula.factor else None
        return score_formula(formula, [self.column(branch)[networks] for branch in formula.active], factor)

    def factor(self, branch: Branch | None) -> Values:
        """What the score of every network is multiplied with: a count is the same in all layers."""
        return np.ones(len(self.values)) if branch is None else self.column(branch)[:, 0]

    def prefetch(self, formulas: Sequence[Formula], networks: Any) -> None:
        """Everything lies ready."""

    def release(self) -> None:
        """There is nothing to give back."""


def score_formula(formula: Formula, columns: Sequence[Values], factor: Values | None) -> Values:
    """From networks x layers for each active branch, and for the factor."""
    present: Mask = np.asarray(~np.isnan(np.stack(columns)).any(axis=0))
    with np.errstate(all="ignore"):
        joined = columns[0] if len(columns) == 1 else BINARY[formula.binary].apply(*columns)  # type: ignore[arg-type]
        scores = REDUCTIONS[formula.reduction].reduce_many(np.asarray(joined), present)
        return scores if factor is None else scores * factor[:, 0]  # a count is the same in all layers


def settle(scores: Values) -> Values:
    """Rounded to 32 bits, nine digits: differences beyond are rounding of the arithmetic, which must not become a rank
    (the logarithm of a large count less something tiny)."""
    bits = (np.asarray(scores, dtype=np.float64) + 0.0).view(np.int64)
    rounded = ((bits + HALF) & ~np.int64(2 * HALF - 1)).view(np.float64)
    return np.where(np.isfinite(scores), rounded, scores)


def is_usable(scores: Values, rows: Values) -> bool:
    """Whether scores are finite wherever they are not NaN, and that on 95 % of the rows; `rows` is rows per network."""
    present = ~np.isnan(scores)
    return bool(np.isfinite(scores[present]).all() and rows[present].sum() >= LEAST_SHARE * rows.sum())
