"""One search: a study in memory, generation by generation, and what it found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from archwright.configs import design as do
from archwright.designing.limits import Ceilings, Clock
from archwright.errors import Failed
from archwright.progress import Bar
from archwright.search import SAMPLERS, Config, config_of, front, search_together
from archwright.search.batch_loop import Judge
from archwright.spaces.architectures import ArchitectureSpace

SAME = "same_as"
MISSING = "missing"


@dataclass(frozen=True)
class DesignTask:
    """What all searches of a command have in common."""

    space: ArchitectureSpace
    names: tuple[str, ...]
    """Of what is maximised."""
    ceilings: Ceilings
    clock: Clock
    searching: do.DesignSearchOptions

    @property
    def budget(self) -> int:
        return self.searching.population * self.searching.generations


@dataclass(frozen=True)
class Design:
    """A design with its scores."""

    config: Config
    scores: Mapping[str, float]


@dataclass(frozen=True)
class SearchResult:
    """What one search found."""

    sampler: str
    repeat: int
    front: list[Design]
    """Designs that no other beats in all objectives, the best in the first objective first."""
    best: list[Design]
    """As many as the population has, by the first objective, each once."""
    history: list[dict[str, Any]]
    """Per generation."""
    evaluations: int
    distinct: int
    missing: dict[str, int]
    """Reasons why designs have no score, and how many."""
    seconds: float


def search_designs(task: DesignTask, judge: Judge, *, sampler: str, repeat: int, seed: int, bar: Bar) -> SearchResult:
    """The same for the same seeds, whoever looks and however often it was interrupted."""
    begun, strategy, of = perf_counter(), SAMPLERS[sampler], task.searching
    made = strategy(
        task.space.choices,
        seed=int(np.random.SeedSequence((seed, repeat)).generate_state(1)[0]),
        population=of.population,
        bounds=task.ceilings.bounds(),
        repeats=not of.distinct and strategy.together,
    )
    study = optuna.create_study(sampler=made, directions=["maximize"] * len(task.names))
    latency = task.ceilings.latency_ms
    history: list[dict[str, Any]] = []
    search_together(
        study,
        task.space,
        judge,
        limits=[] if latency is None else [task.clock.limit(latency)],
        trials=task.budget,
        together=of.population if strategy.together else 1,
        heard=lambda told: heard(history, study, told, task, bar),
    )
    return collect_result(task, study, sampler, repeat, history, perf_counter() - begun)


def heard(history: list[dict[str, Any]], study: Study, told: Sequence[FrozenTrial], task: DesignTask, bar: Bar) -> None:
    """Another line whenever a population's worth of trials is told; the bar shows the best so far."""
    done = told[-1].number + 1
    if done % task.searching.population == 0:
        history.append(line_of(history, study, done, task))
    best = history[-1]["best"] if history else None
    bar.advance(len(told), **({} if best is None else {"best": best}))


def line_of(history: Sequence[dict[str, Any]], study: Study, done: int, task: DesignTask) -> dict[str, Any]:
    """What is known after so many trials."""
    trials = study.get_trials(deepcopy=False)
    before = history[-1]["evaluations"] if history else 0
    scored = [trial.values[0] for trial in trials[before:] if trial.state is TrialState.COMPLETE]
    bests = best_values(trials, task.names)
    return {
        "generation": len(history) + 1,
        "best": bests.get(task.names[0]),
        "bests": bests,
        "mean": float(np.mean(scored)) if scored else None,
        "evaluations": done,
        "distinct": sum(SAME not in trial.user_attrs for trial in trials),
    }


def best_values(trials: Sequence[FrozenTrial], names: Sequence[str]) -> dict[str, float]:
    values = np.array([trial.values for trial in trials if trial.state is TrialState.COMPLETE])
    return dict(zip(names, values.max(axis=0).tolist(), strict=True)) if len(values) else {}


def collect_result(
    task: DesignTask, study: Study, sampler: str, repeat: int, history: list[dict[str, Any]], seconds: float
) -> SearchResult:
    trials = study.get_trials(deepcopy=False)
    usable = [trial for trial in trials if trial.state is TrialState.COMPLETE and SAME not in trial.user_attrs]
    reasons = [str(trial.user_attrs[MISSING]) for trial in trials if MISSING in trial.user_attrs]
    missing = {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}
    if not usable:
        why = next(iter(missing), "every one is over a limit; raise it, or search longer")
        raise Failed(f"none of {len(trials)} designs has a score: {why}")
    ordered = sorted(usable, key=lambda trial: -trial.values[0])
    members = sorted(front(trials, study.directions, space=task.space), key=lambda trial: -trial.values[0])
    as_design = design_of(task)
    return SearchResult(
        sampler=sampler,
        repeat=repeat,
        front=[as_design(trial) for trial in members],
        best=[as_design(trial) for trial in ordered[: task.searching.population]],
        history=history,
        evaluations=len(trials),
        distinct=sum(SAME not in trial.user_attrs for trial in trials),
        missing=missing,
        seconds=seconds,
    )


def design_of(task: DesignTask) -> Callable[[FrozenTrial], Design]:
    def made(trial: FrozenTrial) -> Design:
        config = task.space.canonical(config_of(task.space.choices, trial))
        return Design(config, dict(zip(task.names, map(float, trial.values), strict=True)))

    return made
