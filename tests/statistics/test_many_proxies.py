"""Many proxies at once: false discoveries, differences inside cells, small cells, and fits across benchmarks."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from archwright.statistics import draw_resamples, judge_proxy
from archwright.statistics.false_discovery import bootstrap_p, false_discovery_rates
from archwright.statistics.positional import positional_predictions
from archwright.statistics.proxies import correct_verdicts
from archwright.statistics.reliability import icc_within_cells
from archwright.statistics.scaling import LawTable, choose_law, fit_law

N = 240
CELLS = np.repeat([0.0, 1.0, 2.0, 3.0], 60)
RNG = np.random.default_rng(0)
FINE, SIZE = RNG.normal(size=N), RNG.normal(size=N)
TRUTH = 5 * CELLS + FINE + 0.5 * SIZE


def against(**changes):  # type: ignore[no-untyped-def]
    given = {"cells": CELLS, "parameters": SIZE + 5 * CELLS, "depth_width": CELLS, "rng": np.random.default_rng(1)}
    return draw_resamples(TRUTH, **({**given, "size": 200} | changes))


def test_rates_are_those_of_scipy() -> None:
    values = [0.001, 0.2, 0.03, 0.04, 0.9]
    expected = stats.false_discovery_control(values)
    assert false_discovery_rates([*values, None]) == [*map(pytest.approx, expected), None]
    assert false_discovery_rates([]) == []


def test_a_p_value_follows_the_spread() -> None:
    draws = np.random.default_rng(0).normal(0.3, 0.1, size=2000)
    assert bootstrap_p(np.r_[0.3, draws]) == pytest.approx(stats.norm.sf(3), rel=0.3)
    assert bootstrap_p(np.r_[np.nan, draws]) is None
    assert bootstrap_p(np.r_[-0.3, draws - 0.6]) > 0.9  # type: ignore[operator]


def test_the_difference_inside_cells_is_paired() -> None:
    found = judge_proxy(FINE, against())
    size = [stats.spearmanr(SIZE[c == CELLS], TRUTH[c == CELLS]).statistic for c in range(4)]
    own = [stats.spearmanr(FINE[c == CELLS], TRUTH[c == CELLS]).statistic for c in range(4)]
    assert found.minus_parameters_within == pytest.approx(np.mean(own) - np.mean(size))
    assert found.minus_parameters_within_low is not None and found.minus_parameters_within_low > 0
    same = judge_proxy(SIZE + 5 * CELLS, against())
    assert same.minus_parameters_within == same.minus_parameters_within_high == 0.0


def test_the_parameter_count_adds_nothing_to_itself() -> None:
    size = SIZE + 5 * CELLS
    for scores in (size, np.exp(size)):
        found = judge_proxy(scores, against())
        assert found.verdict == "only restates parameters" and found.within_given_parameters is None
    assert "adds" in judge_proxy(FINE + 5 * CELLS, against()).verdict


def test_a_constant_count_is_worth_nothing_inside_cells() -> None:
    found = judge_proxy(FINE, against(parameters=CELLS))
    assert found.minus_parameters_within == pytest.approx(found.within_cells)


def test_what_looks_useful_among_many_is_taken_back() -> None:
    """One finding of p = 0.02 says little among a hundred."""
    useful = judge_proxy(FINE + 5 * CELLS, against())
    assert useful.p_adds is not None and useful.p_adds < 1e-6
    lucky, useless = replace(useful, p_adds=0.02), replace(useful, p_adds=0.6, verdict="noise")
    rows = {"useful": useful, "lucky": lucky} | {f"useless {n}": useless for n in range(98)}
    found = correct_verdicts(rows)
    assert found["useful"].verdict == useful.verdict and found["useless 0"].verdict == "noise"
    assert found["lucky"].verdict.startswith("perhaps chance") and "among 100 proxies" in found["lucky"].verdict
    assert correct_verdicts({"lucky": lucky})["lucky"].verdict == useful.verdict


def test_small_cells_are_drawn_as_a_whole() -> None:
    cells = np.repeat(np.arange(80), 3)
    small = against(cells=cells, depth_width=cells, smallest_cell=2)
    assert all(len(np.unique(small.inside[5][cells == cell])) == 1 for cell in range(80))
    found = judge_proxy(FINE, small)
    each = [stats.spearmanr(FINE[cells == c], TRUTH[cells == c]).statistic for c in range(80)]
    assert found.within_cells == pytest.approx(np.mean(each))
    width = np.std(each) / np.sqrt(80) * 2 * 1.96
    assert found.within_cells_high - found.within_cells_low == pytest.approx(width, rel=0.3)  # type: ignore[operator]
    assert judge_proxy(FINE, against(cells=cells, depth_width=cells)).within_cells is None


def test_agreement_inside_cells_does_not_count_the_cells() -> None:
    rng = np.random.default_rng(3)
    true = 100 * CELLS + rng.normal(size=N)
    scores = true + rng.normal(size=N)
    seeds = true[::24, None] + rng.normal(size=(10, 10))
    assert icc_within_cells(seeds, scores, CELLS.astype(int)) == pytest.approx(0.5, abs=0.15)
    assert icc_within_cells(seeds, scores, np.arange(N)) is None
    assert icc_within_cells(seeds[:, :1], scores, CELLS.astype(int)) is None


def test_the_positional_fit_knows_which_layer_is_large_and_never_its_own_row() -> None:
    rng = np.random.default_rng(4)
    features = rng.normal(size=(N, 6))
    truth = 10 * CELLS + features @ [1.0, 0, -1, 0, 0, 2]
    groups = np.arange(N)
    found = positional_predictions(features, truth, CELLS.astype(int), groups, rng=np.random.default_rng(0))
    inside = [stats.spearmanr(found[c == CELLS], truth[c == CELLS]).statistic for c in range(4)]
    assert min(inside) > 0.95
    chance = 10 * CELLS + rng.normal(size=N)
    noise = positional_predictions(features, chance, CELLS.astype(int), groups, rng=np.random.default_rng(0))
    assert abs(np.mean([stats.spearmanr(noise[c == CELLS], chance[c == CELLS]).statistic for c in range(4)])) < 0.25
    assert np.isnan(positional_predictions(features, truth, groups, groups, rng=np.random.default_rng(0))).all()


def law_table(weights: dict[str, float], seed: int) -> LawTable:
    rng = np.random.default_rng(seed)
    terms = {name: rng.normal(size=300) for name in ("size", "evenness", "depth", "width")}
    truth = terms["size"] + sum(weight * terms[name] for name, weight in weights.items())
    return LawTable(terms, truth, np.arange(300))


def constant_table(**columns: np.ndarray) -> LawTable:
    """Thirty networks that differ in nothing but their size and what is given."""
    terms = {name: np.zeros(30) for name in ("evenness", "depth", "width")} | {"size": np.arange(30.0)} | columns
    return LawTable(terms, np.arange(30.0), np.arange(30))


def test_a_law_takes_what_all_tables_agree_on() -> None:
    agreed = [law_table({"evenness": 1.0}, seed) for seed in range(3)]
    weights = fit_law(agreed, ("evenness", "depth", "width"), rng=np.random.default_rng(0))
    assert weights["evenness"] > 0.6 and weights["depth"] < 0.15 and weights["width"] < 0.15
    parted = [law_table({"depth": 0.5}, 0), law_table({"depth": -0.5}, 1)]
    assert fit_law(parted, ("depth",), rng=np.random.default_rng(0)) == {"depth": 0.0}
    assert fit_law([constant_table()], ("depth",), rng=np.random.default_rng(0)) == {"depth": 0.0}


def test_a_term_is_kept_only_where_it_helps_on_benchmarks_that_its_weight_does_not_come_from() -> None:
    agreed = {f"b{seed}": [law_table({"evenness": 1.0}, seed)] for seed in range(3)}
    weights, evidence = choose_law(agreed, ("evenness", "depth"), rng=np.random.default_rng(0))
    assert set(weights) == {"evenness"} and weights["evenness"] > 0.6
    assert [(entry.term, entry.benchmark) for entry in evidence] == [
        (term, name) for term in ("evenness", "depth") for name in agreed
    ]
    # one benchmark against it is enough: with a weight from the others it would be harmed there
    against = {**agreed, "b3": [law_table({"evenness": -1.0}, 3)]}
    weights, evidence = choose_law(against, ("evenness",), rng=np.random.default_rng(0))
    assert weights == {}
    by_benchmark = {entry.benchmark: entry for entry in evidence}
    assert by_benchmark["b3"].weight > 0.6 and by_benchmark["b3"].high < 0
    assert by_benchmark["b0"].weight == 0 and by_benchmark["b0"].silent
    # one that it cannot tell apart has no say; the tables of one benchmark are left out together
    silent = {**agreed, "b3": [constant_table()]}
    assert set(choose_law(silent, ("evenness",), rng=np.random.default_rng(0))[0]) == {"evenness"}
    parts = {"b0": [law_table({"evenness": 1.0}, 0), law_table({"evenness": -1.0}, 1)], "b1": agreed["b1"]}
    _, evidence = choose_law(parts, ("evenness",), rng=np.random.default_rng(0))
    assert [(entry.benchmark, entry.table, entry.weight > 0) for entry in evidence] == [
        ("b0", 0, True), ("b0", 1, True), ("b1", 0, False),
    ]  # fmt: skip


def test_a_gain_within_chance_keeps_no_term() -> None:
    chance = {f"b{seed}": [law_table({"evenness": 0.01}, seed)] for seed in range(3)}
    noisy = {
        name: [LawTable(table.terms, table.truth + np.random.default_rng(9).normal(size=300), table.groups)]
        for name, (table,) in chance.items()
    }
    assert choose_law(noisy, ("evenness",), rng=np.random.default_rng(0))[0] == {}
