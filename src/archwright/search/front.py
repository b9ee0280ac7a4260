"""Who is better when there are several objectives: Pareto front, ranks by non-dominated sorting, crowding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from archwright.search.encoding import config_key, config_of
from archwright.search.space import Space

Losses = NDArray[np.float64]  # points x objectives, smaller is better


def front(
    trials: Sequence[FrozenTrial], directions: Sequence[StudyDirection] | None = None, *, space: Space | None = None
) -> list[FrozenTrial]:
    """The Pareto front of the completed trials within constraints, by the second objective; all minimised by default.

    Of trials with equal values only the first stays; with `space` also of those with the same canonical config.
    """
    usable = [trial for trial in trials if trial.state is TrialState.COMPLETE and is_feasible(trial)]
    if not usable:
        return []
    from archwright.statistics.pareto import pareto_mask  # loads scipy, which --help need not wait for

    losses = np.array([losses_of(trial, directions) for trial in usable])
    best = [trial for trial, on_front in zip(usable, pareto_mask(losses), strict=True) if on_front]
    values: set[tuple[float, ...]] = set()
    designs: dict[str, FrozenTrial] = {}
    for trial in best:
        if tuple(trial.values) not in values:
            values.add(tuple(trial.values))
            config = space.canonical(config_of(space.choices, trial)) if space else {}
            designs.setdefault(config_key(config) if space else str(trial.number), trial)
    return sorted(designs.values(), key=lambda trial: (trial.values[1:], trial.values[0]))


def is_feasible(trial: FrozenTrial) -> bool:
    """True when no constraint was found to be violated."""
    return all(excess <= 0 for excess in trial.constraints.values())


def losses_of(trial: FrozenTrial, directions: Sequence[StudyDirection] | None = None) -> tuple[float, ...]:
    """The values of a completed trial, turned so that smaller is better."""
    signs = [-1.0 if direction is StudyDirection.MAXIMIZE else 1.0 for direction in directions or []]
    return tuple(sign * value for sign, value in zip(signs or [1.0] * len(trial.values), trial.values, strict=True))


def ranks(losses: Losses) -> NDArray[np.int64]:
    """0 for the Pareto front, 1 for the front of the rest, and so on (non-dominated sorting)."""
    from archwright.statistics.pareto import pareto_mask

    rank = np.zeros(len(losses), dtype=np.int64)
    left, level = np.arange(len(losses)), 0
    while left.size:
        best = pareto_mask(losses[left])
        rank[left[best]] = level
        left, level = left[~best], level + 1
    return rank


def crowding(losses: Losses) -> Losses:
    """How much room each point has among its neighbours, larger is lonelier (Deb et al. 2002); ends are infinite."""
    room = np.zeros(len(losses))
    for column in losses.T:
        order = np.argsort(column, kind="stable")
        width = column[order[-1]] - column[order[0]]
        if width > 0:
            room[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / width
            room[order[[0, -1]]] = np.inf
    return room


def standing(losses: Losses) -> tuple[NDArray[np.int64], Losses]:
    """Rank of each point, lower is better, and its room among those of the same rank, larger is better."""
    rank, room = ranks(losses), np.zeros(len(losses))
    for level in np.unique(rank):
        room[rank == level] = crowding(losses[rank == level])
    return rank, room
