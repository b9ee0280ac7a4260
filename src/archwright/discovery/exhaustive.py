"""All formulas of a space, ranked pair of inputs by pair, by whoever works; what is done lies on disk."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from archwright.discovery.folds import FoldedRows
from archwright.discovery.pair_ranking import BINS, KEPT, Pair, Side, order
from archwright.discovery.score_table import Table
from archwright.errors import Failed
from archwright.parallel.pool import LocalPool, WorkerPool
from archwright.progress import progress
from archwright.proxies.formulas.formula import Branch
from archwright.spaces.formulas import FormulaSpace, Sided
from archwright.store import digest, write_whole

__all__ = ["BINS", "keys", "order", "pairs", "ranked", "read"]

FOLDER = "discover"
REVISION = 2
"""Of how formulas are ranked: what an earlier one left on disk is not taken for this one's."""
LARGEST = 500_000
"""Formulas of a pair above which its factors are work of their own."""
WORTH_PROCESSES = 200_000
"""Formulas below which starting processes would take longer than ranking them here."""


def pairs(space: FormulaSpace, table: Table, trial: FoldedRows) -> dict[str, Pair]:
    """The work, by name: every pair of inputs, and every input alone."""
    sides = {name: side_of(space.sides[name], table) for name in space.inputs}
    shared = trial, space.reduction, tuple((branch, table.factor(branch)) for branch in space.branches)
    alone = {name: Pair(side, None, *shared) for name, side in sides.items()}
    both = {f"{a} {b}": Pair(sides[a], sides[b], *shared) for a, b in space.pairs}
    return {name: part for whole in (both | alone).items() for name, part in parts(*whole).items()}


def parts(name: str, pair: Pair) -> dict[str, Pair]:
    """The pair as it is, or factor by factor where it has many formulas: what is done is seen, and kept."""
    if pair.total <= LARGEST or len(pair.factors) == 1:
        return {name: pair}
    return {f"{name} {place}": replace(pair, factors=(factor,)) for place, factor in enumerate(pair.factors)}


def side_of(sided: Sided, table: Table) -> Side:
    columns = [table.column(Branch(sided.input, chain)) for chain in sided.chains]
    return Side(sided, np.stack(columns, axis=2))


def ranked(
    space: FormulaSpace, table: Table, trial: FoldedRows, folder: Path, eyes: WorkerPool
) -> dict[str, dict[str, Any]]:
    """What came of every pair; those done before, with the same statistics, rows and folds, are not done again."""
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    work = pairs(space, table, trial)
    files = {name: place / f"{key}.json" for name, key in keys(space, table, trial, work).items()}
    found = {name: read(file) for name, file in files.items() if file.exists()}
    undone = [name for name in work if name not in found]
    pool = eyes if sum(work[name].total for name in undone) > WORTH_PROCESSES else LocalPool()
    with progress("formulas", sum(one.total for one in work.values()), "formulas") as bar:
        bar.advance(sum(work[name].total for name in found))
        for done, result in pool.map_unordered([work[name] for name in undone]):
            write_whole(files[undone[done]], json.dumps(result))
            found[undone[done]] = result
            bar.advance(work[undone[done]].total)
    return {name: found[name] for name in work}


def keys(
    space: FormulaSpace, table: Table, trial: FoldedRows, names: Sequence[str] | dict[str, Pair]
) -> dict[str, str]:
    options = space.reduction, space.unary, space.factors, KEPT, REVISION
    rows = repr((trial.groups, trial.cells, trial.fitness, trial.fold.tolist(), *options))
    content = digest(rows, repr((table.inputs, table.chains)), table.values.tobytes(), trial.truth.tobytes())
    return {name: digest(content, name) for name in names}


def read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
        if {"total", "valid", "counts", "best"} <= found.keys():
            return dict(found)
    except (OSError, ValueError, AttributeError):
        pass
    raise Failed(f"{file} is damaged; delete it and run the same command again.")
