"""search(): limits before objectives, no design measured twice, budgets, errors, and what the store costs."""

import cProfile
import math
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optuna
import pytest
from designs import LARGE, MIXED, OBJECTIVES, SMALL, Designs, error, journal, open_storage, open_study, size
from optuna.trial import FrozenTrial, TrialState

from archwright.errors import BadInput
from archwright.search import (
    Candidate,
    Choices,
    Config,
    Constraint,
    Objective,
    config_of,
    distributions,
    encode,
    sample,
    search,
)


@dataclass(frozen=True)
class Blind(Designs):
    """A space in which units make no difference without layers."""

    def canonical(self, config: Config) -> Config:
        return config if config["layers"] else {**config, "units": 0, "heads": 1}


def test_limits_come_first_in_order_and_stop_at_the_first() -> None:
    calls: Counter[str] = Counter()

    def counted(name: str, value: float) -> Constraint:
        return Constraint(name, lambda candidate: calls.update([name]) or value, 1.0)  # type: ignore[func-returns-value]

    def never(candidate: Candidate) -> float:
        raise AssertionError("a candidate over a limit must not be scored")

    study = open_study(None, SMALL)
    constraints = [counted("low", 0.5), counted("high", 3.0), counted("unasked", 0.0)]
    search(study, Designs(SMALL), [Objective("a", never), Objective("b", never)], constraints=constraints, trials=1)
    assert calls == {"low": 1, "high": 1}
    assert study.trials[0].state is TrialState.PRUNED
    assert study.trials[0].constraints == {"low": -0.5, "high": 2.0}


def test_equal_designs_are_measured_once() -> None:
    measured: list[Config] = []

    def remembered(candidate: Candidate) -> float:
        measured.append(candidate.space.canonical(candidate.config))
        return error(candidate)

    space = Blind({"heads": range(1, 4), "units": range(0, 3), "layers": range(0, 2)})
    study = open_study(None, space.choices)
    objectives = [Objective("error", remembered), OBJECTIVES[1]]
    search(study, space, objectives, constraints=[Constraint("size", size, 0.9)], trials=18)
    assert len(measured) == len({str(config) for config in measured})
    for trial in study.trials:
        if "same_as" in trial.user_attrs:
            twin = study.trials[trial.user_attrs["same_as"]]
            assert (trial.state, trial.values, trial.constraints) == (twin.state, twin.values, twin.constraints)
    assert sum("same_as" in trial.user_attrs for trial in study.trials) >= 8


def test_a_candidate_is_built_once_and_only_when_needed() -> None:
    built: list[Config] = []

    class Counting(Designs):
        def build(self, config: Config) -> Config:
            built.append(config)
            return config

    twice = [Objective(name, lambda candidate: float(candidate.built["heads"])) for name in ("a", "b")]
    search(open_study(None, SMALL), Counting(SMALL), twice, trials=3)
    assert len(built) == 3
    search(open_study(None, SMALL), Counting(SMALL), twice, constraints=[Constraint("size", size, -1)], trials=3)
    assert len(built) == 3


def test_told_hears_of_every_trial_and_a_second_call_adds_only_what_is_missing() -> None:
    heard: list[FrozenTrial] = []
    study = open_study(None, MIXED)
    for trials in (3, 3, 7, 2):
        search(study, Designs(MIXED), OBJECTIVES, trials=trials, on_trial=heard.append)
    assert [trial.number for trial in heard] == list(range(7))


def test_no_time_no_trial() -> None:
    study = open_study(None, SMALL)
    search(study, Designs(SMALL), OBJECTIVES, trials=5, deadline=time.monotonic() - 1)
    assert study.trials == []


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_no_number_is_missing_not_a_number(bad: float) -> None:
    study = open_study(None, SMALL)
    search(study, Designs(SMALL), [Objective("loss", lambda _: bad), OBJECTIVES[1]], trials=4)
    assert [trial.state.name for trial in study.trials] == ["PRUNED"] * 4
    assert [trial.user_attrs["missing"] for trial in study.trials] == ["loss"] * 4


@pytest.mark.parametrize("trouble", [RuntimeError, KeyboardInterrupt])
def test_after_an_error_the_same_configs_follow(trouble: type[BaseException]) -> None:
    left = [6]

    def fragile(candidate: Candidate) -> float:
        left[0] -= 1
        if left[0] == 0:
            raise trouble("on purpose")
        return error(candidate)

    whole, broken = open_study(None, MIXED), open_study(None, MIXED)
    search(whole, Designs(MIXED), OBJECTIVES, trials=10)
    with pytest.raises(trouble, match="on purpose"):
        search(broken, Designs(MIXED), [Objective("error", fragile), OBJECTIVES[1]], trials=10)
    search(broken, Designs(MIXED), OBJECTIVES, trials=10)
    told = [trial for trial in broken.trials if trial.state is TrialState.COMPLETE]
    assert [trial.params for trial in told] == [trial.params for trial in whole.trials]
    assert [trial.number for trial in broken.trials if trial.state is TrialState.FAIL] == [5]


@pytest.mark.parametrize("choices", [MIXED, LARGE])
def test_an_enqueued_config_is_honoured(choices: Choices) -> None:
    wanted = sample(choices, np.random.default_rng(99))
    params, attrs = encode(choices, wanted)
    study = open_study(None, choices)
    study.enqueue_trial(params, user_attrs=attrs)
    search(study, Designs(choices), OBJECTIVES, trials=2)
    assert config_of(choices, study.trials[0]) == wanted
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 2


def test_a_study_for_other_objectives_is_refused() -> None:
    study = optuna.create_study(directions=["maximize"], sampler=optuna.samplers.RandomSampler(seed=0))
    with pytest.raises(BadInput, match="maximize"):
        search(study, Designs(SMALL), OBJECTIVES, trials=1)


def test_a_sampler_that_cannot_draw_packed_values_is_refused() -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=optuna.samplers.RandomSampler(seed=0))
    with pytest.raises(BadInput, match="RandomSampler"):
        search(study, Designs(LARGE), OBJECTIVES, trials=1)
    assert study.trials[0].state is TrialState.FAIL


def test_thousands_of_switches_cost_as_little_as_three_integers(tmp_path: Path) -> None:
    """250 random trials of 9,288 switches on a journal file, in turn with as many of three integers; 2 KiB each."""
    spaces = {"large": LARGE, "small": SMALL}
    studies, calls = {}, dict.fromkeys(spaces, 0)
    for name, choices in spaces.items():
        (tmp_path / name).mkdir()
        studies[name] = open_study(open_storage(journal(tmp_path / name)), choices)
    for trials in range(50, 251, 50):
        for name, choices in spaces.items():
            calls[name] += cost(studies[name], choices, trials)
    assert len(studies["large"].trials) == 250
    assert calls["large"] < 2.5 * calls["small"]
    assert Path(journal(tmp_path / "large")).stat().st_size / 250 < 3000


def cost(study: optuna.Study, choices: Choices, trials: int) -> int:
    """Function calls of the search until there are so many trials: work, which a busy machine does not change."""
    with cProfile.Profile() as profile:
        search(study, Designs(choices), OBJECTIVES, trials=trials)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("sampler", ["local", "evolution", "nsga2"])
def test_asking_stays_cheap_after_thousands(sampler: str) -> None:
    """Compared with one that does not look at them."""
    rng = np.random.default_rng(0)
    space = distributions(SMALL)
    rows = [
        optuna.create_trial(params=sample(SMALL, rng), distributions=space, values=rng.random(2)) for _ in range(2000)
    ]
    studies = {name: open_study(None, SMALL, sampler=name) for name in (sampler, "random")}
    for study in studies.values():
        study.add_trials(rows)
        search(study, Designs(SMALL), OBJECTIVES, trials=2001)
    calls = dict.fromkeys(studies, 0)
    for trials in range(2006, 2022, 5):
        for name, study in studies.items():
            calls[name] += cost(study, SMALL, trials)
    assert calls[sampler] < 7 * calls["random"]
