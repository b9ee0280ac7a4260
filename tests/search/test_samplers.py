"""The contract of every sampler: Optuna's own tests, seeds, first configs, limits, maximising, packed switches."""

from collections.abc import Callable

import numpy as np
import optuna
import pytest
from designs import LARGE, MIXED, OBJECTIVES, SMALL, Designs, corners, open_study, size
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

from archwright.errors import BadInput
from archwright.search import (
    EPOCHS,
    SAMPLERS,
    Bits,
    Candidate,
    Choices,
    Config,
    Constraint,
    Objective,
    config_of,
    front,
    search,
)
from archwright.statistics.pareto import hypervolume

CHEAP = [name for name in SAMPLERS if name != "ehvi"]


def fitting(sampler: str, choices: Choices) -> Choices:
    """The space as this sampler can serve it: with epochs to choose from where it needs them."""
    return {**choices, EPOCHS: (1, 3, 5)} if SAMPLERS[sampler].rungs else choices


def opened(sampler: str, choices: Choices) -> list[Config]:
    """The corners as this sampler begins with them."""
    least = {EPOCHS: 1} if SAMPLERS[sampler].rungs else {}
    return [corner | least for corner in corners(choices)]


def trials_for(sampler: str) -> int:
    return {"ehvi": 12}.get(sampler, 45)


def configs(study: optuna.Study, choices: Choices) -> list[Config]:
    return [config_of(choices, trial) for trial in study.trials]


def run(sampler: str, choices: Choices, *, seed: int = 0, trials: int | None = None, **options: object) -> optuna.Study:
    study = open_study(None, choices, sampler=sampler, seed=seed, first=corners(choices))
    search(study, Designs(choices), OBJECTIVES, trials=trials or trials_for(sampler), **options)  # type: ignore[arg-type]
    return study


PAIRS = [(name, fitting(name, SMALL)) for name in SAMPLERS] + [
    (name, fitting(name, choices)) for name in CHEAP for choices in (MIXED, LARGE)
]


@pytest.fixture(params=list(SAMPLERS))
def sampler(request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
    """A maker of samplers for a space that has nothing to do with what Optuna's tests ask for."""
    return lambda: SAMPLERS[request.param](fitting(request.param, {"unrelated": (1, 2, 3)}), seed=0)


class TestOptunaBasic(BasicSamplerTestCase):
    @pytest.fixture
    def sampler(self, sampler: Callable[[], BaseSampler]) -> Callable[[], BaseSampler]:
        return sampler


class TestOptunaRelative(RelativeSamplerTestCase):
    @pytest.fixture
    def sampler(self, sampler: Callable[[], BaseSampler]) -> Callable[[], BaseSampler]:
        return sampler


class TestOptunaMultiObjective(MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self, sampler: Callable[[], BaseSampler]) -> Callable[[], BaseSampler]:
        return sampler


@pytest.mark.parametrize(("sampler", "choices"), PAIRS)
def test_a_seed_repeats_and_another_differs(sampler: str, choices: Choices) -> None:
    once, again, other = (configs(run(sampler, choices, seed=seed), choices) for seed in (5, 5, 6))
    assert once == again
    assert once[3:] != other[3:]


@pytest.mark.parametrize(("sampler", "choices"), PAIRS)
def test_first_configs_come_first_and_nothing_is_tried_twice(sampler: str, choices: Choices) -> None:
    study = run(sampler, choices)
    found = configs(study, choices)
    assert found[:3] == opened(sampler, choices)
    assert len({str(config) for config in found}) == len(found)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_stopping_and_going_on_gives_the_same_configs(sampler: str) -> None:
    choices = fitting(sampler, SMALL if sampler == "ehvi" else MIXED)
    whole = run(sampler, choices)
    storage = optuna.storages.InMemoryStorage()
    for part in (4, 11, trials_for(sampler) - 1, trials_for(sampler)):
        study = open_study(storage, choices, sampler=sampler, first=corners(choices))
        search(study, Designs(choices), OBJECTIVES, trials=part)
    assert configs(study, choices) == configs(whole, choices)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_limits_prune_without_breaking_or_blinding_the_sampler(sampler: str) -> None:
    choices = fitting(sampler, SMALL)
    small_enough = Constraint("size", size, 0.4)
    study = run(sampler, choices, constraints=[small_enough], trials=16 if sampler == "ehvi" else 80)
    states = [trial.state.name for trial in study.trials]
    assert states[0] == "PRUNED" and states[1] == "COMPLETE"
    assert all(trial.values[1] <= 0.4 for trial in study.trials if trial.state.name == "COMPLETE")
    assert len({str(config) for config in configs(study, choices)}) == len(study.trials)
    assert states[10:].count("COMPLETE") > 0


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_nothing_within_the_limits_is_no_dead_end(sampler: str) -> None:
    study = run(sampler, fitting(sampler, SMALL), constraints=[Constraint("size", size, -1.0)], trials=25)
    assert [trial.state.name for trial in study.trials] == ["PRUNED"] * 25
    assert front(study.trials) == []


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_space_smaller_than_the_budget_ends(sampler: str) -> None:
    choices = fitting(sampler, {"a": (1, 2), "b": (1, 2)})
    study = open_study(None, choices, sampler=sampler)
    search(study, Designs(choices), OBJECTIVES, trials=12)
    promoted = int(SAMPLERS[sampler].rungs)  # one of the four designs goes on, and a rung of one has no best third
    assert sum("same_as" in trial.user_attrs for trial in study.trials) == 8 - promoted


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_choice_with_one_value_keeps_it(sampler: str) -> None:
    """Standard NAS with any other sampler than MO-ASHA: the epochs are part of the config and never vary."""
    choices: Choices = {**SMALL, EPOCHS: (5,)}
    study = run(sampler, choices)
    assert {config[EPOCHS] for config in configs(study, choices)} == {5}
    assert len({str(config) for config in configs(study, choices)}) == len(study.trials)
    assert all(trial.state.name == "COMPLETE" for trial in study.trials)


def test_only_a_sampler_of_rungs_sees_several_epochs() -> None:
    seen = {name: tuple(strategy.epochs((1, 3, 5))) for name, strategy in SAMPLERS.items()}
    assert seen == {name: (5,) for name in SAMPLERS} | {"mo-asha": (1, 3, 5)}


@pytest.mark.parametrize(("sampler", "switches"), [("local", 40), ("nsga2", 40), ("nsga2", 300)])
def test_learning_beats_drawing(sampler: str, switches: int) -> None:
    """Which switches matter can be learnt; chance takes the bad with the good."""
    mask = Bits(switches)
    weight = np.random.default_rng(0).random(switches) ** 4

    def loss(candidate: Candidate) -> float:
        return float(1 - weight[mask.unpack(candidate.config["mask"])].sum() / weight.sum())

    def volume(name: str) -> float:
        study = open_study(None, {"mask": mask}, sampler=name, seed=1, first=corners({"mask": mask}))
        search(study, Designs({"mask": mask}), [Objective("loss", loss), Objective("size", size)], trials=250)
        return hypervolume([trial.values for trial in study.trials], (1, 1))

    assert volume(sampler) > volume("random") + 0.02


def test_maximising_is_turned_round() -> None:
    study = optuna.create_study(directions=["maximize"], sampler=SAMPLERS["local"](SMALL, seed=0))
    search(study, Designs(SMALL), [Objective("size", size, "maximize")], trials=120)
    assert study.best_value > 0.9


@pytest.mark.slow
def test_ehvi_beats_random_early() -> None:
    volumes = [
        hypervolume([t.values for t in run(name, SMALL, seed=2, trials=22).trials], (1.2, 1.2))
        for name in ("ehvi", "random")
    ]
    assert volumes[0] > volumes[1]


def test_ehvi_refuses_packed_switches_in_one_line() -> None:
    with pytest.raises(BadInput, match="9288") as error:
        SAMPLERS["ehvi"](LARGE, seed=0)
    assert "\n" not in str(error.value)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(BadInput, match="-1"):
        SAMPLERS["random"](SMALL, seed=-1)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_is_described_in_a_line(sampler: str) -> None:
    assert 10 < len(SAMPLERS[sampler].description) < 100
