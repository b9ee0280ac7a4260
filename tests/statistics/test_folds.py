"""Outer folds: twins together, cells spread evenly, repeatable."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.errors import BadInput
from archwright.statistics.resampling import folds


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), min_size=40, max_size=120), st.integers(0, 5))
def test_twins_are_together_and_every_cell_is_spread(rows: list[tuple[int, int]], seed: int) -> None:
    cells, groups = [cell for cell, _ in rows], [f"{cell} {name}" for cell, name in rows]
    if len(set(groups)) < 5:
        return
    found = folds(cells, groups, rng=np.random.default_rng(seed))
    assert set(found.tolist()) <= set(range(5))
    of = dict(zip(groups, found.tolist(), strict=True))
    assert [of[name] for name in groups] == found.tolist()
    largest = max(groups.count(name) for name in groups)
    for cell in set(cells):
        counts = np.bincount(found[np.array(cells) == cell], minlength=5)
        assert np.ptp(counts) <= largest


def test_seeded() -> None:
    cells, groups = np.arange(100) % 4, np.arange(100)
    one, again, other = (folds(cells, groups, rng=np.random.default_rng(seed)) for seed in (0, 0, 1))  # type: ignore[arg-type]
    assert (one == again).all() and (one != other).any()
    assert np.bincount(one).tolist() == [20] * 5


def test_too_few_networks() -> None:
    with pytest.raises(BadInput, match="5 folds need at least 5 different networks, got 3"):
        folds([0] * 9, [0, 1, 2] * 3, rng=np.random.default_rng(0))
