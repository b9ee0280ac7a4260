"""Tables of invented statistics: fast, with gaps and with numbers that are none."""

from typing import Any

import numpy as np

from archwright.discovery.fitness import FoldedRows
from archwright.discovery.score_table import StatisticsTable
from archwright.parallel.pool import LocalPool
from archwright.spaces.formulas import FormulaSpace

INPUTS = ("A", "J", "S")
NETWORKS = 40


def toy_table(space: FormulaSpace, *, seed: int = 0, gaps: bool = True, by_layer: bool = False) -> StatisticsTable:
    """S is missing in some layers and in one network, one chain of A is infinite somewhere."""
    rng = np.random.default_rng(seed)
    values = (64 * rng.normal(size=(NETWORKS, len(space.inputs), len(space.chains), 3))).round() / 64  # exact sums
    values[:, :, space.chains.index(("zscore",))] = 0.0  # as the mean of standardised numbers is
    values[: NETWORKS // 2, :, :, 2] = np.nan
    if "J" in space.inputs and not by_layer:  # one tensor of the whole network
        at = space.inputs.index("J")
        values[:, at] = np.where(np.isnan(values[:, at]), np.nan, values[:, at, :, :1])
    if gaps:
        values[::7, 2, :, 1] = np.nan
        values[5, 2] = np.nan
        values[3, 0, 4, 0] = np.inf
    return StatisticsTable(space.inputs, space.chains, values)


def with_counts(space: FormulaSpace) -> StatisticsTable:
    """The same, and counts for factors behind the inputs: one number of a network in all of its layers."""
    plain = toy_table(FormulaSpace(space.unary, space.inputs), gaps=False)
    rng = np.random.default_rng(3)
    values = np.full((NETWORKS, len(space.statistics_inputs), len(space.chains), 3), np.nan)
    for place, chain in enumerate(plain.chains):
        values[:, : len(space.inputs), space.chains.index(chain)] = plain.values[:, :, place]
    values[:, len(space.inputs) :] = rng.integers(1, 9, size=(NETWORKS, 1, len(space.chains), 1))
    return StatisticsTable(space.statistics_inputs, space.chains, values)


def toy_rows(*, seed: int = 0, fitness: str = "spearman", truth: Any = None, repeats: int = 1) -> FoldedRows:
    """Sixty rows of forty networks in four cells."""
    rng = np.random.default_rng((seed, 1))
    networks = np.concatenate([np.arange(NETWORKS), rng.integers(NETWORKS, size=20)])
    found = rng.normal(size=len(networks)) if truth is None else truth[networks]
    names = [f"{network:02d}" for network in networks]
    cells = [str(n % 4) for n in networks]
    return FoldedRows.split(found, names, cells, seed=seed, fitness=fitness, repeats=repeats)


POOL = LocalPool()
"""Tasks are done here, one after another."""
