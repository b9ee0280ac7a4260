"""Algorithm 1: seeded, never worse, pruned where asked; and random search beside it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.configs.discover import DiscoverConfig, EvolutionOptions
from archwright.configs.options import make_config, preset_values
from archwright.discovery.evolution import (
    EvolutionResult,
    EvolutionSettings,
    Individual,
    Search,
    evolve,
    search_randomly,
    sort_by_fronts,
)
from archwright.discovery.evolution_runs import (
    best_after,
    compare_searches,
    evolution_settings,
    parse_share,
    select_finalists,
)
from archwright.discovery.fitness import Fitness, FitnessFunction, sample_networks, tells_nothing
from archwright.discovery.offspring import Offspring, child_proposer, cross
from archwright.discovery.score_table import StatisticsTable
from archwright.errors import BadInput
from archwright.proxies.formulas.formula import parse
from archwright.proxies.formulas.pruning_rules import reject
from archwright.spaces.formulas import FormulaSpace
from tests.discovery import toys

SPACE = FormulaSpace(2, toys.INPUTS)
QUICK = EvolutionSettings(generations=150, population=20, parents=0.2)
SEARCHES = {"evolve": evolve, "at_random": search_randomly}


def told(seed: int = 0, **changes: Any) -> EvolutionResult:
    table, folded = toys.toy_table(SPACE), toys.toy_rows()
    search: Callable[..., EvolutionResult] = SEARCHES[changes.pop("search", "evolve")]
    chosen = EvolutionSettings(**{**vars(QUICK), **changes})
    judge = FitnessFunction(table, folded, folded.search_sets[-1], chosen.pps)
    return search(SPACE, judge, chosen, np.random.default_rng(seed))


@pytest.mark.parametrize("search", SEARCHES)
def test_seeded_and_never_worse(search: str) -> None:
    one, again, other = told(0, search=search), told(0, search=search), told(1, search=search)
    assert one == again and one.curve != other.curve
    curve = np.array(one.curve, dtype=float)
    assert len(curve) == QUICK.generations + 1 and (np.diff(curve) >= 0).all()
    assert one.best[0][0] == curve[-1]
    assert one.winning_rate == pytest.approx((np.diff(curve) > 0).mean())


def test_offspring_come_from_the_best_share_alone() -> None:
    table, folded = toys.toy_table(SPACE), toys.toy_rows()
    still = EvolutionSettings(population=20, parents=0.1, crossover=0.0, mutation=0.0)
    search = Search(
        SPACE, FitnessFunction(table, folded, folded.search_sets[-1], True), still, 0, child_proposer(SPACE, 0.0, 0.0)
    )
    population = search._first_population()
    found = {search._next_offspring(population, generation).formula for generation in range(60)}
    assert found == {one.formula for one in population[:2]}


def test_copies_fill_the_population_unless_told_otherwise() -> None:
    """Algorithm 1 keeps them; without mutation and crossover nothing but copies is born."""
    still = told(crossover=0.0, mutation=0.0)
    assert (
        still.winning_rate == 0 and still.counts["copies"] >= QUICK.generations and still.different < QUICK.population
    )
    once = told(distinct=True)
    assert once.counts["copies"] == 0 and once.different == QUICK.population
    assert (
        once.evaluations[-1] + once.counts["stopped"] >= QUICK.generations + QUICK.population - once.counts["invalid"]
    )
    assert told().different < QUICK.population


def test_parents_without_new_children_give_way_to_strangers() -> None:
    """Nothing but copies is born, and none may be scored twice."""
    found = told(distinct=True, crossover=0.0, mutation=0.0)
    assert found.counts["repeated"] > 0 and found.evaluations[-1] > QUICK.population


def test_pruning_rejects_what_table_6_names_and_stops_early() -> None:
    with_pps, without = told(pps=True), told(pps=False)
    assert with_pps.counts["rejected"] > 0 and with_pps.counts["stopped"] > 0
    assert without.counts["rejected"] == without.counts["stopped"] == 0
    assert with_pps.counts["looks"] < 40 * (with_pps.counts["scored"] + with_pps.counts["stopped"])
    assert without.counts["looks"] == 40 * without.counts["scored"]


def test_early_stop() -> None:
    assert tells_nothing(np.array([1.0, 1.0, 1.0, 1.0])) and tells_nothing(np.array([1.0, np.inf, 2.0, 3.0]))
    assert not tells_nothing(np.array([1.0, 2.0, np.nan, 1.0])) and not tells_nothing(np.full(4, np.nan))


@given(st.integers(0, 2**20))
@settings(max_examples=60, deadline=None)
def test_a_child_is_made_of_its_parents(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = SPACE.sample(rng), SPACE.sample(rng)
    child = cross(SPACE, one, other, rng)
    assert child.left.input != child.right.input
    assert SPACE.inputs.index(child.left.input) < SPACE.inputs.index(child.right.input)
    parents = [branch for parent in (one, other) for branch in parent.branches]
    for branch in child.branches:
        assert branch.input in {parent.input for parent in parents}
        assert branch.chain in {parent.chain for parent in parents}
    assert child.binary in {one.binary, other.binary}


def test_a_sample_keeps_twins_and_stays_inside() -> None:
    folded = toys.toy_rows()
    rows = folded.search_sets[0]
    found = sample_networks(folded, rows, 10, np.random.default_rng(0))
    assert len(set(folded.networks[found].tolist())) == 10 and not (found & ~rows).any()
    assert (found == (rows & np.isin(folded.networks, folded.networks[found]))).all()
    assert sample_networks(folded, rows, 0, np.random.default_rng(0)) is rows


def test_nothing_invalid_gets_a_fitness() -> None:
    table, folded = toys.toy_table(SPACE), toys.toy_rows()
    judge = FitnessFunction(table, folded, folded.search_sets[-1], pps=False)
    broken = StatisticsTable(table.inputs, table.chains, np.where(np.arange(3) == 0, np.inf, table.values))
    assert FitnessFunction(broken, folded, folded.search_sets[-1], pps=False)(parse("sum(A + J)")).value == -np.inf
    assert judge(parse("sum(prune(A) + prune(J))")).value == -np.inf
    assert reject(parse("sum(exp(log(A)) + J)")) is not None


def test_the_papers_settings_are_the_default() -> None:
    expected = EvolutionSettings(1000, 80, 0.1, 0.5, 0.5, True, 50, False)
    assert evolution_settings(EvolutionOptions()) == expected == EvolutionSettings()
    assert (parse_share("25%"), parse_share("0.5")) == (0.25, 0.5)


@pytest.mark.parametrize(
    ("name", "value"), [("generations", 0), ("population", 1), ("sample", -1), ("seeds", 0), ("mutation", 2)]
)
def test_bad_settings(name: str, value: int) -> None:
    with pytest.raises(BadInput, match=f"--{name} must (be at least|be between 0 and 1|not be negative)"):
        make_config(DiscoverConfig, {name: value})


@pytest.mark.parametrize("parents", ["0%", "ten", "110%", ""])
def test_bad_shares(parents: str) -> None:
    with pytest.raises(BadInput, match="--parents must be a share such as 10%"):
        parse_share(parents)


PLANTED = parse("sum(sqrt(exp(A)) * frobenius(J))")


def planted(seed: int, search: str, **changes: Any) -> EvolutionResult:
    """A table on which one formula ranks everything rightly, and those close to it nearly."""
    space = FormulaSpace(2, ("A", "J"))
    table = toys.toy_table(FormulaSpace(2, toys.INPUTS), gaps=False, by_layer=True)
    table = StatisticsTable(table.inputs, table.chains, table.values - np.nanmin(table.values) + 1)
    folded = toys.toy_rows(truth=table.scores(PLANTED))
    chosen = EvolutionSettings(**{"generations": 1000, "population": 40, "parents": 0.2, **changes})
    judge = FitnessFunction(table, folded, folded.search_sets[-1], chosen.pps)
    return SEARCHES[search](space, judge, chosen, np.random.default_rng(seed))


def test_a_planted_optimum_is_found_by_evolution_and_not_by_chance() -> None:
    """4 x 21^4 formulas of two inputs: as many draws as evolution has do not meet it, parents and mutation do."""
    ours = [planted(seed, "evolve", distinct=True) for seed in range(3)]
    chance = [planted(seed, "at_random") for seed in range(3)]
    assert sum(one.best[0][2] == str(PLANTED.canonical()) for one in ours) >= 2
    assert all(one.best[0][2] != str(PLANTED.canonical()) for one in chance)
    told_apart = compare_searches({"ours": ours, "random search": chance}, "random search")["ours"]
    assert told_apart["minus_random"]["value"] > 0 and told_apart["minus_random_at_equal_evaluations"]["value"] > 0


def test_fitness_after_so_many_different_formulas() -> None:
    one = told()
    assert best_after(one, one.evaluations[0]) == one.curve[0] and best_after(one, one.evaluations[-1]) == one.curve[-1]


def pareto(seed: int = 0) -> EvolutionResult:
    table, folded = toys.toy_table(SPACE), toys.toy_rows(fitness="pareto")
    chosen = EvolutionSettings(**{**vars(QUICK), "distinct": True})
    return evolve(
        SPACE, FitnessFunction(table, folded, folded.search_sets[-1], True), chosen, np.random.default_rng(seed)
    )


def test_several_aims_give_a_front() -> None:
    found = pareto()
    folded = toys.toy_rows(fitness="pareto")
    judge = FitnessFunction(toys.toy_table(SPACE), folded, folded.search_sets[-1], pps=False)
    aims = [judge(parse(text)).objectives for text in found.front]
    assert len(aims) > 2 and len({one[2] for one in aims}) > 1
    for one in aims:
        assert not any(all(a >= b for a, b in zip(other, one, strict=True)) and other != one for other in aims)
    rows = select_finalists([found], 3)
    assert {text for _, _, text in rows} >= set(found.front) and len({row[1] for row in rows}) > 1


def test_the_order_of_several_aims_is_front_by_front() -> None:
    births = Offspring(parse("sum(A + J)"))
    aims = [(0.1, 0.1, -9.0), (0.9, 0.1, -3.0), (0.1, 0.9, -3.0), (0.5, 0.5, -3.0), (0.4, 0.4, -3.0)]
    population = [Individual(Fitness(-np.inf), births), *(Individual(Fitness(sum(one), one), births) for one in aims)]
    found = [one.fitness.objectives for one in sort_by_fronts(population)]
    assert set(found[:3]) == {aims[1], aims[2], aims[3]} and found[3:] == [aims[4], aims[0], ()]


def test_the_preset_has_the_papers_settings() -> None:
    given = preset_values(DiscoverConfig, {"preset": "lpzero"})
    assert (given["unary"], given["batch_rows"], given["seed"]) == (2, 128, 42)
    assert preset_values(DiscoverConfig, {"preset": "lpzero-gpt2"})["batch_rows"] == 16
    names = EvolutionOptions.__dataclass_fields__
    chosen = EvolutionOptions(**{name: value for name, value in given.items() if name in names})
    assert evolution_settings(chosen) == EvolutionSettings()
