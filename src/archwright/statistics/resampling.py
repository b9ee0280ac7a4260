"""What proxies are judged against, and the resamples of architectures that all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from archwright.errors import BadInput
from archwright.statistics.bootstrap import RESAMPLES, codes, resamples
from archwright.statistics.ranks import Codes, Counts, RankOrder, Values, resampled_correlation
from archwright.statistics.strata import LEAST_ROWS, is_usable_cell, lexicographic, rows_by_cell, within_cells


@dataclass(frozen=True)
class Resampling:
    """What proxies are judged against: trained architectures, and the resamples that all proxies share."""

    truth: Values
    """Trained score, higher is better."""
    parameters: Values
    depth_width: Values | None
    """(depth, width) as one number that orders the rows; None where they mean nothing."""
    shape: Values
    """Rows x columns of what everybody knows to matter: depth and width, or the parameters."""
    cells: Codes
    groups: Codes
    known: str
    draws: Counts
    """Resamples x rows; the first row is the architectures as they are."""
    inside: Counts
    """The same, drawn inside each cell; whole cells where these are smaller than five rows."""
    smallest_cell: int = LEAST_ROWS
    """Rows that a cell needs to count."""

    @property
    def rival(self) -> Values:
        """What everybody knows to matter: depth and width, or size."""
        return self.parameters if self.depth_width is None else self.depth_width

    @cached_property
    def order(self) -> RankOrder:
        """Of the truth."""
        return RankOrder.of(self.truth)

    @cached_property
    def ranks(self) -> dict[str, Values]:
        """Centred ranks of every resample, which all proxies share."""
        columns = {"truth": self.truth, "parameters": self.parameters, "rival": self.rival}
        return {name: RankOrder.of(column).centred_ranks(self.draws) for name, column in columns.items()}

    @cached_property
    def correlations(self) -> dict[str, Values]:
        """Spearman of the parameters and of the rival with the truth."""
        ranks, names = self.ranks, ("parameters", "rival")
        return {name: resampled_correlation(self.draws, ranks[name], ranks["truth"]) for name in names}

    @cached_property
    def varying(self) -> list[Values]:
        """The known columns that still vary inside cells."""
        inside = rows_by_cell(self.cells)
        return [column for column in self.shape.T if any(np.ptp(column[rows]) > 0 for rows in inside)]

    @property
    def known_inside(self) -> list[Values]:
        """What still varies inside cells of what is known, and the parameters."""
        return [*self.varying, self.parameters]

    @cached_property
    def cells_tell(self) -> bool:
        """Whether any cell has enough rows to say something."""
        cells, least = rows_by_cell(self.cells), self.smallest_cell
        return any(is_usable_cell(self.truth[rows], self.truth[rows], least) for rows in cells)

    @cached_property
    def parameters_inside(self) -> Values:
        """Spearman of the parameters inside cells; a cell in which all networks are as large counts as zero."""
        return self.within(self.parameters, constant=0.0)

    def within(self, scores: Values, *, given: Sequence[Values] = (), constant: float | None = None) -> Values:
        """Mean Spearman with the truth inside cells, see `within_cells`."""
        return within_cells(
            self.inside, scores, self.truth, self.cells, given=given, least=self.smallest_cell, constant=constant
        )

    def points(self) -> Resampling:
        """Without resamples, for values without intervals."""
        return replace(self, draws=self.draws[:1], inside=self.inside[:1])

    def on(self, rows: Codes) -> Resampling:
        """Only these rows, with the same draws."""
        if len(rows) == len(self.truth):
            return self
        columns = {name: getattr(self, name)[rows] for name in ("truth", "parameters", "shape", "cells", "groups")}
        width = None if self.depth_width is None else self.depth_width[rows]
        return replace(self, depth_width=width, draws=self.draws[:, rows], inside=self.inside[:, rows], **columns)


def draw_resamples(
    truth: ArrayLike,
    *,
    cells: Sequence[Any],
    parameters: ArrayLike,
    rng: np.random.Generator,
    depth_width: ArrayLike | None = None,
    groups: Sequence[Any] | None = None,
    known: str = "depth and width",
    size: int = RESAMPLES,
    smallest_cell: int = LEAST_ROWS,
) -> Resampling:
    """Draws the resamples once.

    `depth_width` is rows x 2, or one number per row that orders them; without it the parameters are what is known.
    `groups` names the network of each row: rows of one network are drawn together; without it all are different.
    `known` names what is known, for the verdict. With a `smallest_cell` below five rows whole cells are drawn for what
    is judged inside them: two or three rows drawn again say nothing.
    """
    values = finite("truth", truth)
    counts = finite("parameters", parameters, len(values))
    shape = counts[:, None]
    if depth_width is not None:
        table = np.asarray(depth_width, dtype=np.float64)
        columns = table[:, None] if table.ndim == 1 else table  # rows x columns
        shape = np.stack([finite("depth_width", column, len(values)) for column in columns.T], axis=1)
    inside, networks = codes(cells), np.arange(len(values)) if groups is None else codes(groups)
    if not len(values) == len(inside) == len(networks):
        raise BadInput(f"one cell and group per row: got {len(values)} rows, {len(inside)}, {len(networks)}.")
    draws = resamples(networks, rng=rng, size=size)
    small = smallest_cell < LEAST_ROWS
    stratified = resamples(inside if small else networks, rng=rng, size=size, strata=None if small else inside)
    width = None if depth_width is None else lexicographic(*shape.T)
    return Resampling(values, counts, width, shape, inside, networks, known, draws, stratified, smallest_cell)


def finite(name: str, values: ArrayLike, length: int | None = None) -> Values:
    """One row of finite numbers, as long as said."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or not np.isfinite(given).all() or len(given) != (length or len(given)):
        raise BadInput(f"{name} must be one finite number per row, got shape {given.shape}; leave out unusable rows.")
    return given


FOLDS = 5


def folds(cells: Sequence[Any], groups: Sequence[Any], *, rng: np.random.Generator, count: int = FOLDS) -> Codes:
    """The fold of each row, 0 to count - 1: as many rows of every cell in each, rows of one group in the same.

    Groups are networks: rows of a network that was trained twice would otherwise tell a search what it is judged on.
    """
    inside, names = codes(cells), codes(groups)
    networks = len(np.unique(names))
    if count < 2 or networks < count:
        raise BadInput(f"{count} folds need at least {max(count, 2)} different networks, got {networks}.")
    found, total = np.full(len(names), -1), np.zeros(count)
    for cell in rng.permutation(np.unique(inside)):
        rows = np.zeros(count)
        for group in rng.permutation(np.unique(names[inside == cell])):
            here = np.flatnonzero((names == group) & (found < 0))
            if len(here):
                # fewest rows of this cell, then fewest rows at all, then chance
                place = int(np.lexsort((rng.random(count), total, rows))[0])
                found[here] = place
                rows[place] += len(here)
                total[place] += len(here)
    return found
