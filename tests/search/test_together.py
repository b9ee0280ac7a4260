"""Many candidates at a time: the same configs as one by one, each design judged once, limits before anything else."""

from collections.abc import Sequence

import optuna
import pytest
from designs import MIXED, SMALL, Designs, size

from archwright.search import (
    SAMPLERS,
    Candidate,
    Choices,
    Config,
    Constraint,
    Objective,
    config_of,
    search,
    search_batches,
)
from archwright.search.loop import ObjectiveValues


def study_of(choices: Choices, sampler: str, **options: object) -> optuna.Study:
    return optuna.create_study(direction="maximize", sampler=SAMPLERS[sampler](choices, seed=1, **options))  # type: ignore[arg-type]


def sizes(candidates: Sequence[Candidate]) -> list[ObjectiveValues]:
    return [[size(one)] for one in candidates]


def configs(study: optuna.Study, choices: Choices) -> list[Config]:
    return [config_of(choices, trial) for trial in study.trials]


@pytest.mark.parametrize("choices", [SMALL, MIXED], ids=["small", "mixed"])
@pytest.mark.parametrize("sampler", ["genetic", "random", "nsga2", "local"])
def test_one_at_a_time_is_what_search_does(sampler: str, choices: Choices) -> None:
    one, many = study_of(choices, sampler), study_of(choices, sampler)
    search(one, Designs(choices), [Objective("size", size, "maximize")], trials=45)
    search_batches(many, Designs(choices), sizes, trials=45, batch_size=1)
    assert configs(many, choices) == configs(one, choices)


def test_a_generation_at_a_time_changes_nothing_for_a_rule_with_generations() -> None:
    alone, together = (study_of(SMALL, "genetic", population=10) for _ in range(2))
    search_batches(alone, Designs(SMALL), sizes, trials=40, batch_size=1)
    search_batches(together, Designs(SMALL), sizes, trials=40, batch_size=10)
    assert configs(alone, SMALL) == configs(together, SMALL)


def test_each_design_is_judged_once_also_within_a_round() -> None:
    choices: Choices = {"a": (1, 2), "b": (1, 2)}
    judged: list[str] = []

    def judge(candidates: Sequence[Candidate]) -> list[ObjectiveValues]:
        judged.extend(str(one.config) for one in candidates)
        return sizes(candidates)

    study = study_of(choices, "genetic", repeats=True, population=8)
    heard: list[int] = []
    search_batches(
        study, Designs(choices), judge, trials=20, batch_size=8, on_batch=lambda told: heard.append(len(told))
    )
    assert len(judged) == len(set(judged)) <= 4 and heard == [8, 8, 4]
    assert all(trial.state.name == "COMPLETE" for trial in study.trials)
    values = {str(config_of(choices, trial)): trial.values for trial in study.trials}
    assert all(values[str(config_of(choices, trial))] == trial.values for trial in study.trials)


def test_what_is_over_a_limit_or_has_no_score_is_told_as_such() -> None:
    def judge(candidates: Sequence[Candidate]) -> list[ObjectiveValues]:
        assert all(size(one) <= 0.6 for one in candidates)
        return ["no score" if one.config["layers"] > 3 else [size(one)] for one in candidates]

    study = study_of(SMALL, "genetic", population=10)
    search_batches(study, Designs(SMALL), judge, constraints=[Constraint("size", size, 0.6)], trials=40, batch_size=10)
    for trial in study.trials:
        config = config_of(SMALL, trial)
        fits = trial.constraints["size"] <= 0
        assert ("missing" in trial.user_attrs) == (fits and config["layers"] > 3)
        assert (trial.state.name == "COMPLETE") == (fits and config["layers"] <= 3)
