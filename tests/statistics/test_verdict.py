"""Every verdict, from the intervals that lead to it."""

from dataclasses import replace

import pytest

from archwright.statistics.bootstrap import Estimate
from archwright.statistics.proxies import NOTHING, RULES, Evidence, verdict

ABOVE, BELOW, AROUND = Estimate(0.3, 0.2, 0.4), Estimate(-0.3, -0.4, -0.2), Estimate(0.05, -0.1, 0.2)
EQUAL = Estimate(0.0, 0.0, 0.0)

USEFUL = Evidence(ABOVE, within=ABOVE, minus_known=AROUND, partial=ABOVE)
CASES = {
    "adds information beyond depth and width": USEFUL,
    "worse than depth and width, adds within cells": replace(USEFUL, minus_known=BELOW),
    "only restates depth and width": replace(USEFUL, within=AROUND),
    "only restates parameters": replace(USEFUL, within=AROUND, partial=AROUND),
    "noise": Evidence(AROUND, within=AROUND, minus_known=BELOW, partial=AROUND),
    "ranks the wrong way round": Evidence(BELOW, within=AROUND, minus_known=BELOW, partial=AROUND),
    "cannot be judged": Evidence(NOTHING),
}


@pytest.mark.parametrize("words", CASES)
def test_the_verdict_follows_the_intervals(words: str) -> None:
    assert verdict(CASES[words]) == words


def test_every_rule_is_reached() -> None:
    assert {verdict(found) for found in CASES.values()} == {words.format(known="depth and width") for words, _ in RULES}


def test_useful_inside_cells_although_useless_overall() -> None:
    found = Evidence(AROUND, within=ABOVE, minus_known=BELOW, partial=ABOVE)
    assert verdict(found) == "worse than depth and width, adds within cells"
    assert verdict(replace(found, partial=BELOW)) == "noise"  # the parameters explain what there seemed to be


def test_depth_and_width_restate_themselves_whatever_else_is_true() -> None:
    assert verdict(replace(USEFUL, minus_known=EQUAL, same_as_known=True)) == "only restates depth and width"


def test_cells_too_small_to_tell_leave_the_comparison_itself() -> None:
    found = Evidence(ABOVE, minus_known=ABOVE, partial=ABOVE, cells_tell=False)
    assert verdict(found) == "adds information beyond depth and width"
    assert verdict(replace(found, minus_known=AROUND)) == "only restates depth and width"
    assert verdict(replace(found, partial=AROUND)) == "only restates parameters"


def test_words_of_cells_by_size() -> None:
    assert verdict(USEFUL, known="size") == "adds information beyond size"
    assert verdict(replace(USEFUL, minus_known=EQUAL, same_as_known=True), known="size") == "only restates size"


def test_a_function_of_the_known_adds_nothing_although_it_is_better() -> None:
    """Depth times width may order better than depth before width: with cells that tell, it is still only that."""
    assert verdict(Evidence(ABOVE, minus_known=ABOVE, partial=ABOVE)) == "only restates depth and width"
