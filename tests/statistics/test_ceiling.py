"""The noise ceiling: known noise is found again, and the twins of FlexiBERT."""

from pathlib import Path

import numpy as np
import pytest

from archwright.errors import BadInput
from archwright.statistics.reliability import halves, noise_ceiling
from tests.statistics.flexibert import flexibert


def runs(noise: float, *, twins: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Networks of unit variance, each trained a few times."""
    rng = np.random.default_rng(seed)
    networks = np.repeat(np.arange(400), twins)
    true = rng.normal(size=400)[networks]
    return true + noise * rng.normal(size=true.size), networks, true


@pytest.mark.parametrize("noise", [0.3, 1.0, 2.0])
def test_a_perfect_predictor_reaches_the_ceiling(noise: float) -> None:
    truth, networks, true = runs(noise)
    found = noise_ceiling(truth, networks=networks, cells=np.zeros(800))
    assert found is not None and found.kind == "twins" and found.n_pairs == 400
    reached = np.corrcoef(np.argsort(np.argsort(true)), np.argsort(np.argsort(truth)))[0, 1]
    assert found.value == pytest.approx(reached, abs=0.05) and found.within_cells == pytest.approx(found.value)
    assert found.reliability == pytest.approx(found.value**2)


def test_only_some_with_twins_tell_the_same_of_all() -> None:
    """Twins among the alike ones alone correlate less, but the ceiling is that of all rows."""
    truth, networks, true = runs(0.5)
    far = networks.copy()
    lonely = np.flatnonzero(np.abs(true) > 0.7)
    far[lonely] = 1000 + np.arange(len(lonely))
    whole, part = (noise_ceiling(truth, networks=names, cells=np.zeros(800)) for names in (networks, far))
    assert whole is not None and part is not None and part.value == pytest.approx(whole.value, abs=0.06)


def test_inside_cells_less_can_be_reached() -> None:
    truth, networks, _ = runs(1.0)
    cells = networks % 4
    found = noise_ceiling(truth + 20 * cells, networks=networks, cells=cells)
    assert found is not None and found.value is not None and found.within_cells is not None
    assert found.value > 0.95 and found.within_cells == pytest.approx(np.sqrt(0.5), abs=0.06)


def test_without_twins_the_tasks_are_halved() -> None:
    rng = np.random.default_rng(3)
    tasks = rng.normal(size=(500, 1)) + rng.normal(size=(500, 8))
    found = noise_ceiling(tasks.mean(axis=1), networks=np.arange(500), cells=np.zeros(500), tasks=tasks)
    assert found is not None and found.kind.startswith("split-half") and found.n_pairs == 35
    assert found.value == pytest.approx(np.sqrt(8 / 9), abs=0.02)  # variance 1 of 1 + 1/8
    assert noise_ceiling(tasks[:, 0], networks=np.arange(500), cells=np.zeros(500)) is None
    assert noise_ceiling(tasks[:, 0], networks=np.arange(500), cells=np.zeros(500), tasks=tasks[:, :1]) is None


def test_halves_are_all_and_none_twice() -> None:
    assert len(halves(4)) == 3 and len(halves(8)) == 35 and len(halves(3)) == 3 and len(halves(2)) == 1
    for one, other in halves(6):
        assert sorted(one + other) == list(range(6)) and len(one) == 3
    assert len(halves(30)) == 200


def test_columns_of_other_lengths_are_refused() -> None:
    with pytest.raises(BadInput, match="equally long"):
        noise_ceiling(np.arange(4.0), networks=np.arange(3), cells=np.zeros(4))


def test_the_twins_of_flexibert(data_dir: Path) -> None:
    rows = flexibert(data_dir)
    assert len(rows.glue) < 300 or len(set(rows.networks)) < len(rows.glue)
    found = noise_ceiling(rows.glue, networks=rows.networks, cells=rows.cells, tasks=rows.tasks)
    assert found is not None and found.kind == "twins"
    if len(rows.glue) == 300:
        assert (len(set(rows.networks)), found.n_pairs) == (199, 218)
        assert found.value == pytest.approx(0.961, abs=0.001) and found.within_cells == pytest.approx(0.648, abs=0.002)


def test_cells_count_by_their_rows() -> None:
    """As they do for a proxy inside cells; how many of its rows have a twin does not matter."""
    truth, networks, _ = runs(0.3)
    noisy, more, _ = runs(2.0, seed=1)
    lonely = np.where(np.arange(800) < 760, 5000 + np.arange(800), more + 1000)  # twenty pairs of twins
    cells = np.repeat([0, 1], 800)
    both = noise_ceiling(np.r_[truth, noisy], networks=np.r_[networks, lonely], cells=cells)
    first = noise_ceiling(truth, networks=networks, cells=np.zeros(800))
    second = noise_ceiling(noisy, networks=lonely, cells=np.zeros(800))
    assert both is not None and first is not None and second is not None
    assert first.reliability is not None and second.reliability is not None
    assert both.reliability_within_cells == pytest.approx((first.reliability + second.reliability) / 2)


def test_the_interval_holds_what_is_true() -> None:
    truth, networks, _ = runs(1.0)
    found = noise_ceiling(truth, networks=networks, cells=networks % 4, rng=np.random.default_rng(0))
    assert found is not None and found.low is not None and found.high is not None
    assert found.low < np.sqrt(0.5) < found.high and found.high - found.low < 0.2
    assert found.within_cells_low is not None and found.within_cells_high is not None
    assert found.within_cells_low < np.sqrt(0.5) < found.within_cells_high


def test_other_ways_to_train_are_twins_too() -> None:
    """A way that is worse for all networks is no chance."""
    rng = np.random.default_rng(0)
    true = rng.normal(size=300)
    table = np.stack([true + 0.5 * rng.normal(size=300), true - 10 + 0.5 * rng.normal(size=300)], axis=1)
    table[::7, 1] = np.nan
    found = noise_ceiling(table[:, 0], networks=np.arange(300), cells=np.arange(300) // 100, runs=table)
    assert found is not None and found.kind.startswith("runs of one network") and found.n_pairs == 257
    assert found.value == pytest.approx(np.sqrt(1 / 1.25), abs=0.05)
