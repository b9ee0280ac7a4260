"""The genetic algorithm: its generations, its operators, and proposals that keep within bounds."""

import numpy as np
import optuna
import pytest
from designs import SMALL, Designs, size
from pytest import approx

from archwright.search import SAMPLERS, Bits, Candidate, Choices, Config, Objective, config_of, search
from archwright.search.choices import mutate_each
from archwright.search.history import PastTrial
from archwright.search.samplers.genetic import Genetic
from archwright.search.samplers.nsga2 import Generations
from archwright.search.samplers.sampler import Bounds

LAYERS: Choices = {f"block.{place}": tuple(range(12)) for place in range(12)}


def total(config: Config) -> int:
    return sum(config.values())


def tried(config: Config, loss: float, name: int) -> PastTrial:
    return PastTrial(config, str(name), (loss,), True, (0, 0.0))


def test_every_choice_mutates_at_the_rate_and_never_to_itself() -> None:
    rng, before = np.random.default_rng(0), dict.fromkeys(LAYERS, 5)
    after = [mutate_each(LAYERS, before, rng, rate=0.1) for _ in range(2000)]
    changed = np.array([[config[name] != 5 for name in LAYERS] for config in after])
    assert changed.mean(axis=0) == approx(np.full(12, 0.1), abs=0.03)
    assert {config["block.3"] for config in after} == set(range(12))


def test_about_one_of_many_switches_mutates() -> None:
    mask, rng = Bits(500), np.random.default_rng(0)
    off = {"mask": mask.pack(np.zeros(500, dtype=bool))}
    flips = [mask.unpack(mutate_each({"mask": mask}, off, rng, rate=0.1)["mask"]).sum() for _ in range(300)]
    assert float(np.mean(flips)) == approx(1.0, abs=0.2)


def test_children_come_from_the_better_half_and_few_values_are_new() -> None:
    """The better half is all 0 to 4, the worse half all 5 to 9: what a child has of the worse is mutation."""
    rule, rng = Genetic(LAYERS, population=10), np.random.default_rng(0)
    past = [tried(dict.fromkeys(LAYERS, place), float(place), place) for place in range(10)]
    children = [rule.propose(past, rng) for _ in range(400)]
    values = np.array([list(child.values()) for child in children])
    assert (values < 5).mean() == approx(0.9 + 0.1 * 5 / 12, abs=0.02)
    assert np.mean([len(set(child.values())) > 1 for child in children]) > 0.9


def test_the_best_of_all_generations_stay() -> None:
    generations = Generations(4)
    past = [tried({"a": place}, loss, place) for place, loss in enumerate([3, 1, 9, 8, 7, 2, 6, 5, 4, 11, 12, 13])]
    assert [parent.trial.losses for parent in generations.parents(past[:8])] == [(1,), (2,), (3,), (5,)]
    assert [parent.trial.losses for parent in generations.parents(past)] == [(1,), (2,), (3,), (4,)]


def test_a_design_lives_once() -> None:
    twice = [tried({"a": 1}, 1.0, 1), tried({"a": 1}, 1.0, 1), tried({"a": 2}, 2.0, 2)]
    assert [parent.trial.key for parent in Generations(3).parents(twice)] == ["1", "2"]


def study_of(sampler: str, **options: object) -> optuna.Study:
    return optuna.create_study(direction="maximize", sampler=SAMPLERS[sampler](LAYERS, seed=3, **options))  # type: ignore[arg-type]


def weighted(candidate: Candidate) -> float:
    return float(sum((place + 1) * candidate.config[f"block.{place}"] for place in range(12)))


@pytest.mark.parametrize("sampler", ["genetic", "random", "local", "nsga2", "evolution"])
def test_nothing_outside_the_bounds_is_ever_proposed(sampler: str) -> None:
    bounds = Bounds(lambda config: total(config) <= 55, dict.fromkeys(LAYERS, 0))
    study = study_of(sampler, bounds=bounds)
    search(study, Designs(LAYERS), [Objective("weighted", weighted, "maximize")], trials=150)
    assert max(total(config_of(LAYERS, trial)) for trial in study.trials) <= 55


def test_bounds_that_chance_does_not_meet_are_met_all_the_same() -> None:
    bounds = Bounds(lambda config: total(config) <= 1, dict.fromkeys(LAYERS, 0))
    study = study_of("genetic", bounds=bounds, population=5)
    search(study, Designs(LAYERS), [Objective("weighted", weighted, "maximize")], trials=20)
    assert {total(config_of(LAYERS, trial)) for trial in study.trials} <= {0, 1}


def test_genetic_search_beats_chance_at_the_same_budget() -> None:
    found = {}
    for sampler in ("genetic", "random"):
        study = study_of(sampler, population=20)
        search(study, Designs(LAYERS), [Objective("weighted", weighted, "maximize")], trials=400)
        found[sampler] = study.best_value
    assert found["genetic"] > 1.15 * found["random"]


def test_repeats_are_allowed_only_when_asked_for() -> None:
    choices: Choices = {"a": tuple(range(6)), "b": tuple(range(6))}
    tries = {}
    for repeats in (False, True):
        sampler = SAMPLERS["genetic"](choices, seed=0, population=6, repeats=repeats)
        study = optuna.create_study(sampler=sampler)
        search(study, Designs(choices), [Objective("size", size)], trials=30)
        tries[repeats] = len({str(config_of(choices, trial)) for trial in study.trials})
    assert tries[False] == 30 and tries[True] < 30


def test_population_is_the_length_of_a_generation() -> None:
    rule, rng = Genetic(SMALL, population=3), np.random.default_rng(0)
    same = [tried({"heads": 1, "units": 0, "layers": 0}, 0.0, 0)] * 3
    assert len({str(rule.propose(same[:2], rng)) for _ in range(20)}) == 20
    assert {"heads": 1, "units": 0, "layers": 0} in [rule.propose(same, rng) for _ in range(20)]
