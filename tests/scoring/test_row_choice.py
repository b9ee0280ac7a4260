"""Which rows are scored: all that fit, else a seeded sample with every cell in proportion; counts are of all rows."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import archwright as aw
from archwright.errors import BadInput, Failed
from archwright.networks.roles import Counts
from archwright.proxies import PROXIES
from archwright.scoring import row_choice
from archwright.scoring.row_choice import choose_rows, stratified_order

import numpy as np  # isort: skip


def counts(size: int) -> Counts:
    return Counts(2 * size, size, size // 2, size // 2, flops=2 * size, depth=2, width=8)


CELLS = ["a"] * 600 + ["b"] * 300 + ["c"] * 100


def choose(**changes: Any) -> row_choice.RowChoice:
    given = {"tokens": 128, "wanted": None, "minutes": None, "workers": 2, "seed": 0}
    return choose_rows([counts(40_000_000)] * 1000, CELLS, **(given | changes))


def test_a_sample_has_every_cell_in_proportion_and_follows_its_seed() -> None:
    chosen = choose(wanted=100)
    assert Counter(CELLS[place] for place in chosen.places) == {"a": 60, "b": 30, "c": 10}
    assert chosen.places == choose(wanted=100).places != choose(wanted=100, seed=1).places
    assert "100 of 1000 rows (--rows)" in chosen.notes[0]


def test_more_minutes_allow_more_rows() -> None:
    few, more = (len(choose(minutes=minutes).places) for minutes in (5, 50))
    assert 20 < few < more <= 1000
    assert len(choose(minutes=10_000).places) == 1000 and choose(minutes=10_000).notes == ()
    assert choose().places == choose(minutes=5).places


def test_every_beginning_of_the_order_is_balanced() -> None:
    order = stratified_order(CELLS, rng=np.random.default_rng(0))
    assert sorted(order) == list(range(1000))
    for end in (10, 50, 200):
        assert Counter(CELLS[place] for place in order[:end])["a"] == pytest.approx(0.6 * end, abs=2)


def test_networks_beyond_the_memory_are_counted_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_choice, "available_memory", lambda: 10**9)
    sizes = [counts(1_000_000)] * 30 + [counts(10**9)] * 5
    given = {"tokens": 8, "wanted": None, "minutes": None, "workers": 1, "seed": 0}
    chosen = choose_rows(sizes, ["a"] * 35, **given)  # type: ignore[arg-type]
    assert sorted(chosen.places) == list(range(30))
    assert chosen.notes == ("5 of 35 networks are too large to be scored in the memory here; counts are of all.",)


def test_counts_are_of_all_rows_and_scores_of_the_sample(options: dict[str, Any]) -> None:
    ranked = aw.rank(**options, rows=20)
    rows = {row["proxy"]: row for row in ranked.rows}
    assert rows["parameters"]["n"] == rows["scaling_law" if "scaling_law" in rows else "depth"]["n"] == 24
    assert rows["w_pca"]["n"] == 20 and rows["w_pca"]["missing"] == {"count": 0, "reason": ""}
    assert len(ranked.document["architectures"]) == ranked.document["scored"] == 20
    assert any("20 of 24 rows" in note for note in ranked.document["notes"])


def test_minutes_that_are_over_end_the_scoring(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archwright.scoring.ranked_rows.monotonic", lambda: -1e9)  # a deadline long ago
    with pytest.raises(Failed, match="no network was scored within --budget-minutes 1"):
        aw.rank(**options, budget_minutes=1)


def test_dear_proxies_are_on_request(options: dict[str, Any], tmp_path: Path) -> None:
    dear = {name for name, proxy in PROXIES.items() if not proxy.is_default}
    assert {"grasp", "small_noise_jacobian", "dss", "synaptic_diversity_normalised"} <= dear
    assert not {"w_pca", "snip", "synflow", "parameters"} & dear
    with pytest.raises(BadInput, match="--all-proxies takes all"):
        aw.rank(**options, all_proxies=True)
