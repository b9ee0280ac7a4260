"""Cross-fitted several times: values are means over splits, and intervals know of all of them."""

import numpy as np
import pytest

from archwright.statistics import draw_resamples, judge_proxy
from archwright.statistics.repeated import judge_repeated
from archwright.statistics.resampling import Resampling

RNG = np.random.default_rng(0)
TRUTH = RNG.normal(size=80)


def against() -> Resampling:
    cells = [str(n % 2) for n in range(80)]
    depth = np.array([(n % 2, 1) for n in range(80)], dtype=float)
    return draw_resamples(
        TRUTH, cells=cells, parameters=RNG.random(80), rng=np.random.default_rng(1), depth_width=depth, size=400
    )


def test_the_same_prediction_in_all_splits_is_one_proxy() -> None:
    scores, rows = TRUTH + np.random.default_rng(2).normal(size=80), against()
    once, many = judge_proxy(scores, rows), judge_repeated([scores] * 3, rows, rng=np.random.default_rng(3))
    assert once == many


def test_means_over_splits_with_wider_intervals() -> None:
    rows, rng = against(), np.random.default_rng(4)
    good, bad = TRUTH + 0.5 * rng.normal(size=80), TRUTH + 3 * rng.normal(size=80)
    apart = [judge_proxy(scores, rows) for scores in (good, bad)]
    both = judge_repeated([good, bad], rows, rng=rng)
    for name in ("spearman", "within_cells", "kendall_b"):
        values = [getattr(one, name) for one in apart]
        assert getattr(both, name) == pytest.approx(np.mean(values))
        widths = [getattr(one, f"{name}_high") - getattr(one, f"{name}_low") for one in (*apart, both)]
        assert widths[2] > max(widths[:2]) and getattr(both, f"{name}_low") < min(values)


def test_too_few_rows_are_not_judged() -> None:
    scores = np.full(80, np.nan)
    scores[:2] = 1.0
    found = judge_repeated([scores], against(), rng=np.random.default_rng(0))
    assert (found.n, found.missing, found.spearman) == (2, 78, None)
