"""Folds for cross-fitting: what is found without a fold is judged on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archwright.errors import BadInput
from archwright.statistics.bootstrap import codes
from archwright.statistics.ranks import Codes

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
                place = emptiest(rows, total, rng)
                found[here] = place
                rows[place] += len(here)
                total[place] += len(here)
    return found


def emptiest(rows: np.ndarray[Any, Any], total: np.ndarray[Any, Any], rng: np.random.Generator) -> int:
    """The fold with the fewest rows of a cell, of those the one with the fewest at all; by chance where that ties."""
    return int(np.lexsort((rng.random(len(rows)), total, rows))[0])
