"""Thresholds of labels: none has a larger F1 on the rows they are chosen on."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archwright.statistics.metrics import f1
from archwright.statistics.thresholds import FEWEST, USUAL, best_threshold, choose_thresholds

ROWS = st.lists(st.tuples(st.integers(0, 6).map(lambda n: n / 6), st.booleans()), min_size=1, max_size=12)


@given(ROWS)
def test_no_threshold_is_better(rows: list[tuple[float, bool]]) -> None:
    probabilities, wanted = np.array([p for p, _ in rows]), np.array([yes for _, yes in rows])
    found = best_threshold(probabilities, wanted)
    others = max(f1(probabilities > threshold, wanted) for threshold in np.arange(13) / 12)
    assert f1(probabilities > found, wanted) >= others - 1e-12


def test_rare_labels_keep_the_usual_one() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.uniform(size=(60, 3))
    targets = np.zeros((60, 3))
    targets[:, 0] = probabilities[:, 0] > 0.2
    targets[: FEWEST - 1, 1] = 1
    targets[:, 2] = 1
    found = choose_thresholds(probabilities, targets)
    assert found[1] == found[2] == USUAL
    assert ((probabilities[:, 0] > found[0]) == targets[:, 0]).all()
