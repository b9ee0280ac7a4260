"""The printed numbers: complete, contradictions kept, and called what they are."""

from pathlib import Path

import numpy as np
import pytest

from archwright.statistics import judge_proxy, published_numbers
from archwright.statistics.proxies import Judgement
from archwright.statistics.published import STATISTICS
from tests.statistics.flexibert import flexibert


def values(**wanted: str) -> list[float]:
    rows = published_numbers()
    return [row["value"] for row in rows if all(row[key] == value for key, value in wanted.items())]


def test_the_tables_are_complete() -> None:
    assert len(values(paper="w-pca", table="Table 1")) == 2 * 8
    assert len(values(paper="lpzero", table="Table 3")) == 2 * 15
    assert len(values(paper="lpzero", table="Table 4")) == 2 * 16
    assert values(paper="w-pca", proxy="w_pca") == [0.513, 0.689]
    assert values(paper="lpzero", table="Table 3", printed="LPZero") == [0.511, 0.748]


def test_contradictions_stand_side_by_side() -> None:
    assert values(paper="training-free-nas", proxy="attention_confidence_published_normalised") == [0.27, 0.30]
    assert sorted(values(proxy="lpzero_gpt2", statistic="kendall")) == [0.87, 0.886]
    assert sorted(values(benchmark="nas-bert", proxy="parameters", statistic="kendall")) == [0.44, 0.454]


def test_every_row_says_what_it_is() -> None:
    for row in published_numbers():
        assert -1 <= row["value"] <= 1 and row["statistic"] in STATISTICS and row["table"] and row["printed"]
        assert STATISTICS[row["statistic"]] in Judgement.__dataclass_fields__
        assert row["benchmark"] in ("nas-bert", "lts-gpt2", "nas-bench-nlp")


CALLED_SPEARMAN = {"No.Params.": "Number of Parameters", "Attention Confidence": "Head Confidence"}


@pytest.mark.parametrize("printed", CALLED_SPEARMAN)
def test_what_was_called_spearman_is_pearson(data_dir: Path, printed: str) -> None:
    """The published scores give the printed number as Pearson, and a clearly higher Spearman."""
    rows = flexibert(data_dir)
    ours = judge_proxy(rows.published[CALLED_SPEARMAN[printed]], rows.ground(size=2))
    (value,) = values(paper="lpzero", table="Table 3", printed=printed, statistic="pearson-called-spearman")
    assert ours.pearson is not None and ours.spearman is not None
    assert abs(ours.pearson - value) < 0.04 < ours.spearman - value
    assert np.isfinite(ours.spearman)
