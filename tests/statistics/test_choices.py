"""The x-ray of a space: what the best have in common."""

from pathlib import Path

import pytest

from archwright.errors import BadInput
from archwright.statistics import choice_effects
from tests.statistics.flexibert import flexibert


def test_by_hand_with_a_choice_that_not_all_have() -> None:
    configs = [
        {"depth": 2, "heads_1": "few"},
        {"depth": 4, "heads_1": "many", "heads_3": 8},
        {"depth": 4, "heads_1": "few"},
    ]
    rows = {(row["choice"], row["value"]): row for row in choice_effects(configs, [1.0, 3.0, 2.0])}
    assert list(rows) == [("depth", 2), ("depth", 4), ("heads_1", "few"), ("heads_1", "many"), ("heads_3", 8)]
    assert rows["depth", 4] | {"choice": ""} == {
        "choice": "", "value": 4, "n": 2, "mean": 2.5, "share": pytest.approx(2 / 3), "top_share": 1.0,
    }  # fmt: skip
    assert rows["heads_3", 8]["n"] == 1 and rows["heads_3", 8]["share"] == 1.0
    assert rows["heads_1", "few"]["top_share"] == 0.0


def test_lists_and_mixed_values_are_values_too() -> None:
    rows = choice_effects([{"a": [1, 2], "b": True}, {"a": "x", "b": 1}], [0.0, 1.0])
    assert [row["value"] for row in rows] == [[1, 2], "x", True, 1] and all(row["n"] == 1 for row in rows)


def test_all_of_the_best_flexiberts_are_deep_and_wide(data_dir: Path) -> None:
    rows = flexibert(data_dir)
    configs = [{"layers": int(d), "hidden": int(w)} for d, w in zip(rows.depth, rows.width, strict=True)]
    found = {(row["choice"], row["value"]): row["top_share"] for row in choice_effects(configs, rows.glue)}
    assert found == {("layers", 2): 0.0, ("layers", 4): 1.0, ("hidden", 128): 0.0, ("hidden", 256): 1.0}


def test_one_score_per_config() -> None:
    with pytest.raises(BadInput, match="one finite score"):
        choice_effects([{"a": 1}], [1.0, 2.0])
