"""Short trainings as baselines of `rank`: judged like proxies, with what they cost."""

from collections.abc import Sequence

import numpy as np
import pytest

from archwright.benchmarks import BenchmarkTable, Row
from archwright.benchmarks.benchmark import ShortTraining
from archwright.reports.rank.rows import proxies, rank_headline
from archwright.scoring.ranked_rows import RankedRows
from archwright.scoring.ranking import judge_baselines, short_trainings
from archwright.spaces.micro_lm import MICRO_LM

LAYERS = {"operation.0": "SA/SDP", "heads.0": 2, "size.0": "small", "operation.1": "SA/SDP", "heads.1": 2}


def table(short: Sequence[tuple[ShortTraining, ...]]) -> RankedRows:
    """Networks of two cells whose results rise with their place."""
    rows = tuple(
        Row(
            str(place), {"layers": 2, "hidden": (48, 96)[place % 2], **LAYERS, "size.1": "large"},
            {"loss": float(place)},
            published={}, cell=str(place % 2), network=str(place), short=trainings,
        )
        for place, trainings in enumerate(short)
    )  # fmt: skip
    benchmark = BenchmarkTable("micro-lm", "trained", MICRO_LM, rows, (), "loss", ("loss",), "none")
    return RankedRows(benchmark, "loss", rows, {}, {}, {}, "mlm", scored=tuple(range(len(rows))))


def test_steps_results_and_median_seconds() -> None:
    ranked = table([(ShortTraining(50, place / 2, place + 1.0), ShortTraining(100, -place, 9.0)) for place in range(3)])
    fifty, hundred = short_trainings(ranked)
    assert fifty[0] == 50 and fifty[1].tolist() == [0, 0.5, 1] and fifty[2] == 2.0
    assert hundred[0] == 100 and hundred[1].tolist() == [0, -1, -2] and hundred[2] == 9.0


def test_rows_without_one_are_missing_and_benchmarks_without_any_have_none() -> None:
    some = table([(ShortTraining(50, 1.0, 1.0),), (), (ShortTraining(50, 3.0, 3.0),)])
    assert np.isnan(short_trainings(some)[0][1]).tolist() == [False, True, False]
    assert short_trainings(table([(), ()])) == []


def test_the_report_has_them_with_their_cost() -> None:
    """One that orders networks as training does, one the wrong way round."""
    ranked = table([(ShortTraining(50, -place, 2.0), ShortTraining(100, place, 4.0)) for place in range(24)])
    rng = np.random.default_rng(0)
    rows = {row["proxy"]: row for row in judge_baselines(ranked, ranked.resample(rng=rng, samples=50), rng=rng)}
    wrong, right = rows["trained_50_steps"], rows["trained_100_steps"]
    assert wrong["spearman"] == pytest.approx(-1) and right["spearman"] == pytest.approx(1)
    assert right["within_cells"] == pytest.approx(1) and right["seconds_per_architecture"] == 4.0
    assert right["origin"] == "training" and not right["gradient_free"] and right["missing"]["count"] == 0
    assert rows["random"]["origin"] == "count" and rows["random"]["seconds_per_architecture"] == 0.0
    assert proxies(rows.values()) == []  # none of them can be named the best proxy
    best = {"proxy": "snip", "origin": "own", "spearman": 0.5}
    assert "trained_100_steps, for 4.00 core-seconds a network, reaches 1.00" in rank_headline(
        {"rows": [best, *rows.values()]}
    )
    assert "core-seconds" not in rank_headline({"rows": [best]})
