"""What proxies are judged against, and the resamples of architectures that all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from archwright.errors import BadInput
from archwright.judge.bootstrap import RESAMPLES, codes, resamples
from archwright.judge.ranks import Codes, Counts, Order, Values, correlation


@dataclass(frozen=True)
class Ground:
    """What proxies are judged against: trained architectures, and the resamples that all proxies share."""

    truth: Values
    """Trained score, higher is better."""
    parameters: Values
    depth_width: Values | None
    """(depth, width) as one number that orders the rows, see `lexicographic`; None where they mean nothing."""
    cells: Codes
    groups: Codes
    known: str
    draws: Counts
    """Resamples x rows; the first row is the architectures as they are."""
    inside: Counts
    """The same, drawn inside each cell."""

    @property
    def rival(self) -> Values:
        """What everybody knows to matter: depth and width, or size."""
        return self.parameters if self.depth_width is None else self.depth_width

    @cached_property
    def order(self) -> Order:
        """Of the truth."""
        return Order.of(self.truth)

    @cached_property
    def ranks(self) -> dict[str, Values]:
        """Centred ranks of every resample, which all proxies share."""
        columns = {"truth": self.truth, "parameters": self.parameters, "rival": self.rival}
        return {name: Order.of(column).centred(self.draws) for name, column in columns.items()}

    @cached_property
    def correlations(self) -> dict[str, Values]:
        """Spearman of the parameters and of the rival with the truth."""
        ranks = self.ranks
        return {name: correlation(self.draws, ranks[name], ranks["truth"]) for name in ("parameters", "rival")}

    def points(self) -> Ground:
        """Without resamples, for values without intervals."""
        return replace(self, draws=self.draws[:1], inside=self.inside[:1])

    def on(self, rows: Codes) -> Ground:
        """Only these rows, with the same draws."""
        if len(rows) == len(self.truth):
            return self
        columns = {name: getattr(self, name)[rows] for name in ("truth", "parameters", "cells", "groups")}
        width = None if self.depth_width is None else self.depth_width[rows]
        return replace(self, depth_width=width, draws=self.draws[:, rows], inside=self.inside[:, rows], **columns)


def ground(
    truth: ArrayLike,
    *,
    cells: Sequence[Any],
    parameters: ArrayLike,
    rng: np.random.Generator,
    depth_width: ArrayLike | None = None,
    groups: Sequence[Any] | None = None,
    known: str = "depth and width",
    size: int = RESAMPLES,
) -> Ground:
    """Draws the resamples once. `groups` names the network of each row: rows of one network are drawn together.

    Without `groups` every row counts as a network of its own. `known` names what is equal in a cell, for the verdict.
    """
    values = finite("truth", truth)
    counts = finite("parameters", parameters, len(values))
    width = None if depth_width is None else finite("depth_width", depth_width, len(values))
    inside, networks = codes(cells), np.arange(len(values)) if groups is None else codes(groups)
    if not len(values) == len(inside) == len(networks):
        raise BadInput(f"one cell and group per row: got {len(values)} rows, {len(inside)}, {len(networks)}.")
    draws = resamples(networks, rng=rng, size=size)
    stratified = resamples(networks, rng=rng, size=size, strata=inside)
    return Ground(values, counts, width, inside, networks, known, draws, stratified)


def finite(name: str, values: ArrayLike, length: int | None = None) -> Values:
    """One row of finite numbers, as long as said."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or not np.isfinite(given).all() or len(given) != (length or len(given)):
        raise BadInput(f"{name} must be one finite number per row, got shape {given.shape}; leave out unusable rows.")
    return given
