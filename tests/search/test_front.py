"""Pareto front, ranks and crowding against slow definitions."""

import numpy as np
import optuna
from designs import Designs
from hypothesis import given
from hypothesis import strategies as st
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from archwright.search import front
from archwright.search.front import crowding, ranks
from archwright.statistics import pareto_mask

points = st.integers(1, 3).flatmap(
    lambda m: st.lists(st.lists(st.integers(0, 6), min_size=m, max_size=m), min_size=1, max_size=25)
)


def dominates(one: np.ndarray, other: np.ndarray) -> bool:
    return bool((one <= other).all() and (one < other).any())


@given(points)
def test_mask_is_the_definition(rows: list[list[int]]) -> None:
    losses = np.array(rows, dtype=float)
    assert pareto_mask(losses).tolist() == [not any(dominates(b, a) for b in losses) for a in losses]


@given(points)
def test_each_rank_is_a_front_dominated_by_the_one_before(rows: list[list[int]]) -> None:
    losses = np.array(rows, dtype=float)
    rank = ranks(losses)
    for a, level in zip(losses, rank, strict=True):
        above = [b for b, other in zip(losses, rank, strict=True) if other == level - 1]
        assert not any(dominates(b, a) for b, other in zip(losses, rank, strict=True) if other == level)
        assert level == 0 or any(dominates(b, a) for b in above)


def test_crowding_by_hand() -> None:
    losses = np.array([[0.0, 4.0], [1.0, 2.0], [3.0, 1.0], [4.0, 0.0]])
    assert crowding(losses).tolist() == [np.inf, 3 / 4 + 3 / 4, 3 / 4 + 2 / 4, np.inf]


def told(values: list[float] | None, *, x: int = 0, number: int = 0, **constraints: float) -> FrozenTrial:
    state = TrialState.COMPLETE if values else TrialState.PRUNED
    trial = create_trial(
        state=state,
        values=values,
        params={"x": x},
        distributions={"x": optuna.distributions.IntDistribution(0, 9)},
        constraints=constraints or None,
    )
    trial.number = number
    return trial


def test_front_is_feasible_distinct_and_sorted_by_the_second_objective() -> None:
    trials = [
        told([1.0, 5.0], number=0),
        told([3.0, 2.0], number=1),
        told([3.0, 2.0], number=2),
        told([4.0, 4.0], number=3),
        told([0.0, 0.0], number=4, size=1.0),
        told([2.0, 3.0], number=5, size=-1.0),
        told(None, number=6, size=2.0),
    ]
    assert [trial.number for trial in front(trials)] == [1, 5, 0]


def test_front_knows_directions_and_designs() -> None:
    trials = [told([1.0, 5.0], x=1, number=0), told([2.0, 6.0], x=2, number=1), told([3.0, 6.5], x=2, number=2)]
    up = [StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE]
    assert [trial.number for trial in front(trials)] == [0]
    assert [trial.number for trial in front(trials, up)] == [0, 1, 2]
    assert [trial.number for trial in front(trials, up, space=Designs({"x": range(10)}))] == [0, 1]
    assert front([]) == []
