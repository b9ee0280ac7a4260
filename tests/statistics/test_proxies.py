"""The judge: golden numbers of FlexiBERT, proxies made to deserve each verdict, gaps, twins, pairing."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from archwright.errors import BadInput
from archwright.statistics import Resampling, draw_resamples, judge_proxy
from archwright.statistics.proxies import BOUNDED, Judgement
from tests.statistics.flexibert import flexibert


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


N = 240
DEPTH = rng(1).integers(2, 6, size=N) * 1.0
FINE = rng(2).normal(size=N)
"""What matters beside depth."""
TRUTH = 3 * DEPTH + FINE + 0.3 * rng(3).normal(size=N)
SIZE = DEPTH + 0.5 * rng(4).normal(size=N)


def made(size: int = 200, **changes: Any) -> Resampling:
    given = {"cells": DEPTH, "parameters": SIZE, "depth_width": DEPTH, "rng": rng(), "size": size}
    return draw_resamples(TRUTH, **(given | changes))


def test_every_number_is_scipys() -> None:
    scores = np.round(FINE + DEPTH, 1)
    found = judge_proxy(scores, made(size=5))
    assert found.spearman == pytest.approx(stats.spearmanr(scores, TRUTH).statistic)
    assert found.kendall_b == pytest.approx(stats.kendalltau(scores, TRUTH).statistic)
    assert found.weighted_tau == pytest.approx(stats.weightedtau(scores, TRUTH).statistic)
    assert found.pearson == pytest.approx(stats.pearsonr(scores, TRUTH).statistic)
    assert found.correlation_with_parameters == pytest.approx(stats.spearmanr(scores, SIZE).statistic)
    size = stats.spearmanr(SIZE, TRUTH).statistic
    assert found.minus_parameters == pytest.approx(stats.spearmanr(scores, TRUTH).statistic - size)


VERDICTS = {
    "adds information beyond depth and width": (DEPTH + 0.2 * FINE, SIZE),
    "worse than depth and width, adds within cells": (FINE, SIZE),
    "only restates depth and width": (DEPTH + 0.1 * rng(5).normal(size=N), SIZE),
    "only restates parameters": (SIZE + 0.1 * rng(5).normal(size=N), SIZE),
    "noise": (rng(6).normal(size=N), SIZE),
    "ranks the wrong way round": (-TRUTH, SIZE),
    "cannot be judged": (np.ones(N), SIZE),
}


@pytest.mark.parametrize("words", VERDICTS)
def test_proxies_made_to_deserve_their_verdict(words: str) -> None:
    scores, parameters = VERDICTS[words]
    assert judge_proxy(scores, made(parameters=parameters)).verdict == words


def test_what_is_known_restates_itself() -> None:
    assert judge_proxy(DEPTH * 2, made()).verdict == "only restates depth and width"
    by_size = made(cells=np.searchsorted(np.quantile(SIZE, [0.2, 0.4, 0.6, 0.8]), SIZE), depth_width=None, known="size")
    assert judge_proxy(SIZE**3, by_size).verdict == "only restates size"
    found = judge_proxy(TRUTH + 0.1, by_size)
    assert found.verdict == "adds information beyond size" and found.minus_depth_width is None


def test_functions_of_depth_and_width_restate_them_in_coarse_cells_too() -> None:
    width = rng(11).integers(1, 9, size=N) * 1.0
    truth = DEPTH * width**2 * np.exp(0.05 * FINE)
    cells = [f"{depth > 3} {wide > 4}" for depth, wide in zip(DEPTH, width, strict=True)]
    shape = np.column_stack([DEPTH, width])
    against = draw_resamples(truth, cells=cells, parameters=SIZE, depth_width=shape, rng=rng(), size=200)
    for scores in (DEPTH, width):
        found = judge_proxy(scores, against)
        assert found.within_cells is not None and found.within_cells > 0.2 and found.within_given_known is None
        assert found.verdict == "only restates depth and width"
    assert "adds" in judge_proxy(FINE, against).verdict


def test_rows_without_a_score_are_left_out_on_both_sides_of_a_difference() -> None:
    scores = FINE + DEPTH
    scores[::3] = np.nan
    scores[1] = np.inf
    kept = np.isfinite(scores)
    found = judge_proxy(scores, made(size=50))
    assert (found.n, found.missing) == (int(kept.sum()), int((~kept).sum()))
    pair = [stats.spearmanr(side[kept], TRUTH[kept]).statistic for side in (scores, SIZE)]
    assert found.minus_parameters == pytest.approx(pair[0] - pair[1])
    assert found.minus_parameters_low is not None and found.minus_parameters_low < found.minus_parameters


@pytest.mark.parametrize("scores", [np.full(N, np.nan), np.where(np.arange(N) < 2, 1.0, np.nan), np.ones(N)])
def test_nothing_to_judge_gives_no_number(scores: np.ndarray) -> None:
    found = judge_proxy(scores, made(size=5)).as_dict()
    assert found["spearman"] is None and found["verdict"] == "cannot be judged"
    assert found["n"] + found["missing"] == N
    json.dumps(found, allow_nan=False)


def test_a_difference_is_surer_than_its_parts() -> None:
    """Pairing: both proxies rise and fall on the same resamples."""
    close = SIZE + 0.01 * rng(8).normal(size=N)
    found = judge_proxy(close, made())
    assert found.spearman_high is not None and found.spearman_low is not None
    assert found.minus_parameters_high is not None and found.minus_parameters_low is not None
    assert found.minus_parameters_high - found.minus_parameters_low < 0.2 * (found.spearman_high - found.spearman_low)


def test_copies_of_a_network_do_not_make_an_interval_narrower() -> None:
    places = np.arange(40).repeat(6)
    twice = {"cells": np.zeros(N), "parameters": SIZE[places], "rng": rng()}
    alone, together = (
        judge_proxy((FINE + DEPTH)[places], draw_resamples(TRUTH[places], **(twice | {"groups": groups, "rng": rng()})))
        for groups in (None, places)
    )
    widths = [found.spearman_high - found.spearman_low for found in (alone, together)]  # type: ignore[operator]
    assert widths[1] > 1.5 * widths[0]


def test_all_bounds_hold_their_value_and_seeds_repeat() -> None:
    found, again, other = (judge_proxy(FINE + DEPTH, made(rng=rng(seed))).as_dict() for seed in (0, 0, 1))
    for name in BOUNDED:
        assert found[f"{name}_low"] <= found[name] <= found[f"{name}_high"], name
    assert found == again != other
    assert set(found) == set(Judgement.__dataclass_fields__)


def test_repeats_give_the_agreement() -> None:
    table = rng(9).normal(size=(10, 1)) + 0.1 * rng(10).normal(size=(10, 5))
    found = judge_proxy(FINE, made(size=20), seeds=table, batches=table)
    assert found.icc_seeds is not None and found.icc_seeds > 0.9 and found.icc_batches is not None
    noise = judge_proxy(FINE, made(size=20), seeds=rng(11).normal(size=(10, 5)))
    assert noise.icc_seeds is not None and noise.icc_seeds < 0.5 and noise.icc_batches is None


def test_bad_columns_are_refused() -> None:
    with pytest.raises(BadInput, match="one score per row"):
        judge_proxy(np.ones(3), made(size=2))
    with pytest.raises(BadInput, match="truth must be one finite"):
        draw_resamples([1.0, np.nan], cells=[0, 0], parameters=[1, 2], rng=rng())
    with pytest.raises(BadInput, match="parameters must be"):
        draw_resamples([1.0, 2.0], cells=[0, 0], parameters=[1], rng=rng())
    with pytest.raises(BadInput, match="one cell and group per row"):
        draw_resamples([1.0, 2.0], cells=[0], parameters=[1, 2], rng=rng())


def test_flexibert_in_two_integers(data_dir: Path) -> None:
    rows = flexibert(data_dir)
    against = rows.ground()
    depth, shape = judge_proxy(rows.depth, against), judge_proxy(rows.shape, against)
    assert {depth.verdict, shape.verdict} == {"only restates depth and width"}
    assert shape.within_cells is None and shape.minus_depth_width == shape.minus_depth_width_high == 0.0
    if len(rows.glue) == 300:
        assert depth.spearman == pytest.approx(0.839, abs=5e-4) and shape.spearman == pytest.approx(0.931, abs=5e-4)
        assert (shape.kendall_b, shape.kendall_a) == pytest.approx((0.811, 0.702), abs=5e-4)


def test_published_scores_of_flexibert_restate_depth_or_are_noise(data_dir: Path) -> None:
    rows = flexibert(data_dir)
    against = rows.ground()
    found = {name: judge_proxy(scores, against) for name, scores in rows.published.items()}
    for name in ("Synaptic Diversity", "Synaptic Saliency", "Head Importance", "Head Confidence"):
        assert found[name].verdict == "only restates depth and width", name
    for name in ("Jacobian Score", "Jacobian Score Normalized", "Head Importance Normalized"):
        assert found[name].verdict == "noise", name
    for name, row in found.items():
        assert row.minus_depth_width_high is not None and row.minus_depth_width_high < 0, name
