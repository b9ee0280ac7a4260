"""Who lives when a generation begins: the best of all before it, found from the order of the trials alone.

The generation of a trial is its index divided by the size of the population, so nothing has to be stored, and trials
that failed leave no gap. Those over a limit follow all others, the nearest to passing first (constrained domination).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archwright.search.front import standing
from archwright.search.history import PastTrial


@dataclass(frozen=True)
class Parent:
    """A survivor: the lower its rank, then the more room around it, the better."""

    one: PastTrial
    rank: int
    room: float


class Generations:
    """Survivors after each generation in turn; kept once all of a generation was told."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._parents: dict[int, list[Parent]] = {0: []}

    def parents(self, tried: Sequence[PastTrial]) -> list[Parent]:
        """Those whose children the next trial is one of, the best first; none in the first generation."""
        return self.of(len(tried) // self.size, tried)

    def of(self, generation: int, tried: Sequence[PastTrial]) -> list[Parent]:
        start = max(known for known in self._parents if known <= generation)
        parents, settled = self._parents[start], True
        for step in range(start, generation):
            children = tried[step * self.size : (step + 1) * self.size]
            pool = [parent.one for parent in parents] + [child for child in children if child.told]
            parents = survivors(different(pool), self.size)
            settled = settled and all(child.told for child in children)
            if settled:
                self._parents[step + 1] = parents
        return parents


def different(pool: Sequence[PastTrial]) -> list[PastTrial]:
    """Each config once, in the order of first appearance."""
    return list({one.key: one for one in reversed(pool)}.values())[::-1]


def survivors(pool: Sequence[PastTrial], count: int) -> list[Parent]:
    """The best `count`: by rank, within a rank by room; then those over a limit, the nearest to passing first."""
    scored = [one for one in pool if one.losses is not None]
    misfits = sorted((one for one in pool if one.losses is None), key=lambda one: one.violation)
    chosen = _ranked(scored)[:count]
    worst = max((parent.rank for parent in chosen), default=0)
    return chosen + [Parent(one, worst + 1 + place, 0.0) for place, one in enumerate(misfits[: count - len(chosen)])]


def _ranked(scored: Sequence[PastTrial]) -> list[Parent]:
    if not scored:
        return []
    losses = np.array([one.losses for one in scored])
    rank, room = standing(losses)
    order = np.lexsort((-room, rank))
    return [Parent(scored[place], int(rank[place]), float(room[place])) for place in order]
