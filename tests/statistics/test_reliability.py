"""Intraclass correlation on the table of the paper, and on the published ablations."""

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from archwright.errors import BadInput
from archwright.statistics.reliability import deciles, icc_batches, icc_seeds

SHROUT_FLEISS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
"""Four judges rate six targets (Shrout & Fleiss 1979, Table 2)."""


def test_the_papers_own_example() -> None:
    assert icc_seeds(SHROUT_FLEISS) == pytest.approx(0.17, abs=0.005)
    assert icc_batches(SHROUT_FLEISS) == pytest.approx(0.29, abs=0.005)


def test_a_judge_who_is_always_higher_counts_only_against_agreement() -> None:
    table = np.arange(6.0)[:, None] + np.array([0.0, 10.0])
    assert icc_batches(table) == pytest.approx(3.5 / (3.5 + 50))  # variance of targets, and of judges
    assert icc_seeds(table + np.array([0.0, -10.0])) == pytest.approx(1.0)


def test_what_is_left_out_and_what_has_none() -> None:
    table = np.vstack([SHROUT_FLEISS, [np.nan, 1, 2, 3]])
    assert icc_seeds(table) == icc_seeds(SHROUT_FLEISS)
    for nothing in (np.ones((4, 3)), np.ones((1, 3)), np.arange(4.0)[:, None], np.full((3, 3), np.nan)):
        assert icc_seeds(nothing) is None and icc_batches(nothing) is None
    assert icc_seeds(SHROUT_FLEISS * 1e300) == pytest.approx(icc_seeds(SHROUT_FLEISS))
    with pytest.raises(BadInput, match="architectures x replicates"):
        icc_seeds([1.0, 2.0])


def ablation(path: Path, column: str) -> NDArray[np.float64]:
    """Architectures x replicates of one published metric."""
    rows = list(csv.DictReader(path.open(encoding="utf-8-sig")))
    names = list(dict.fromkeys(row["ID"] for row in rows))
    return np.array([[float(row[column]) for row in rows if row["ID"] == name] for name in names])


def test_published_head_confidence_grows_from_repeat_to_repeat(data_dir: Path) -> None:
    """Its low ICC is no noise of the seed: repeat r of the published file holds r times the value of the first."""
    for name in ("initialization", "batch"):
        path = data_dir / "nas-bert" / f"BERT_{name}_ablation.csv"
        table = ablation(path, "Head Confidence")
        assert table / table[:, :1] == pytest.approx(np.tile(np.arange(1.0, 11), (10, 1)), rel=0.01)
        assert icc_batches(table) == pytest.approx(0.39, abs=0.01)
        for steady in (table / np.arange(1, 11), ablation(path, "Head Confidence Normalized")):
            assert icc_seeds(steady) == pytest.approx(1.0, abs=1e-4)


def test_published_metrics_hardly_depend_on_the_seed(data_dir: Path) -> None:
    path = data_dir / "nas-bert" / "BERT_initialization_ablation.csv"
    assert icc_seeds(ablation(path, "Number of Parameters")) == 1.0
    assert icc_seeds(ablation(path, "Jacobian Score")) == pytest.approx(0.987, abs=0.001)
    assert icc_seeds(ablation(path, "Synaptic Diversity")) == pytest.approx(0.9995, abs=1e-4)


def test_one_of_every_decile() -> None:
    truth = np.random.default_rng(0).permutation(300) * 1.0
    assert (truth[deciles(truth)] // 30 == np.arange(10)).all()
    drawn = deciles(truth, rng=np.random.default_rng(1))
    assert (truth[drawn] // 30 == np.arange(10)).all() and (drawn != deciles(truth)).any()
    with pytest.raises(BadInput, match="at least 10"):
        deciles(np.arange(9.0))
