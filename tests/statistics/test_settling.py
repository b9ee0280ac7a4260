"""When a ranking settles."""

import pytest

from archwright.statistics.ranks import rank_stability


def test_by_hand() -> None:
    found = rank_stability(
        {0: [3.0, 2.0, 1.0, 0.0], 5: [1.0, 2.0, 3.0, 4.0], 9: [1.0, 2.0, 3.0, 4.5], 20: [10, 20, 30, 40]}
    )
    assert [moment.spearman for moment in found.moments] == pytest.approx([-1.0, 1.0, 1.0, 1.0])
    assert [moment.best_kept for moment in found.moments] == [False, True, True, True]
    assert found.settled_at == 5
    assert found.moments[0].mean == 1.5


def test_a_ranking_that_turns_again_is_not_settled() -> None:
    found = rank_stability({0: [1.0, 2.0, 3.0], 5: [3.0, 2.0, 1.0], 9: [1.0, 2.0, 3.0]})
    assert found.settled_at is None
    assert rank_stability({0: [1.0, 1.0, 1.0], 5: [1.0, 2.0, 3.0]}).moments[0].spearman is None
