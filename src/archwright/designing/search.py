"""One search: a study in memory, generation by generation, and its result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from archwright.configs import design as do
from archwright.designing.limits import DesignLimits, LatencyMeter
from archwright.errors import Failed
from archwright.progress import progress
from archwright.search import SAMPLERS, Config, config_of, front, search_batches
from archwright.search.loop import EvaluateBatch
from archwright.spaces.architectures import ArchitectureSpace

SAME = "same_as"
MISSING = "missing"


@dataclass(frozen=True)
class DesignTask:
    """What all searches of a command have in common."""

    space: ArchitectureSpace
    objectives: tuple[str, ...]
    """Names of what is maximised."""
    limits: DesignLimits
    latency: LatencyMeter
    options: do.DesignSearchOptions

    @property
    def budget(self) -> int:
        return self.options.population * self.options.generations


@dataclass(frozen=True)
class ScoredDesign:
    """A design with its scores."""

    config: Config
    scores: Mapping[str, float]


@dataclass(frozen=True)
class DesignSearchResult:
    """What one search gave."""

    repeat: int
    front: list[ScoredDesign]
    """Designs that no other beats in all objectives, the best in the first objective first."""
    best: list[ScoredDesign]
    """As many as the population has, by the first objective, each once."""
    history: list[dict[str, Any]]
    """Per generation."""
    evaluations: int
    distinct: int
    missing: dict[str, int]
    """Reasons why designs have no score, and how many."""
    seconds: float


def search_designs(
    task: DesignTask, evaluate: EvaluateBatch, *, sampler: str, repeat: int, seed: int, title: str
) -> DesignSearchResult:
    """The same for the same seeds, whoever evaluates and however often it was interrupted."""
    begun, strategy, options = perf_counter(), SAMPLERS[sampler], task.options
    study = optuna.create_study(
        sampler=strategy(
            task.space.choices,
            seed=int(np.random.SeedSequence((seed, repeat)).generate_state(1)[0]),
            population=options.population,
            bounds=task.limits.bounds(),
            repeats=not options.distinct and strategy.together,
        ),
        directions=["maximize"] * len(task.objectives),
    )
    latency, history = task.limits.latency_ms, list[dict[str, Any]]()
    with progress(title, task.budget, "designs") as bar:

        def report(trials: Sequence[FrozenTrial]) -> None:
            """Another line whenever a population's worth of trials is done; the bar shows the best so far."""
            done = trials[-1].number + 1
            if done % options.population == 0:
                history.append(generation_summary(task, study, done, history))
            best = history[-1]["best"] if history else None
            bar.advance(len(trials), **({} if best is None else {"best": best}))

        search_batches(
            study,
            task.space,
            evaluate,
            constraints=[] if latency is None else [task.latency.limit(latency)],
            trials=task.budget,
            batch_size=options.population if strategy.together else 1,
            on_batch=report,
        )
    return collect_result(task, study, repeat, history, perf_counter() - begun)


def generation_summary(
    task: DesignTask, study: Study, done: int, history: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What is known after so many trials."""
    trials = study.get_trials(deepcopy=False)
    before = history[-1]["evaluations"] if history else 0
    scores = [trial.values[0] for trial in trials[before:] if trial.state is TrialState.COMPLETE]
    values = np.array([trial.values for trial in trials if trial.state is TrialState.COMPLETE])
    bests = dict(zip(task.objectives, values.max(axis=0).tolist(), strict=True)) if len(values) else {}
    return {
        "generation": len(history) + 1,
        "best": bests.get(task.objectives[0]),
        "bests": bests,
        "mean": float(np.mean(scores)) if scores else None,
        "evaluations": done,
        "distinct": sum(SAME not in trial.user_attrs for trial in trials),
    }


def collect_result(
    task: DesignTask, study: Study, repeat: int, history: list[dict[str, Any]], seconds: float
) -> DesignSearchResult:
    trials = study.get_trials(deepcopy=False)
    usable = [trial for trial in trials if trial.state is TrialState.COMPLETE and SAME not in trial.user_attrs]
    reasons = [str(trial.user_attrs[MISSING]) for trial in trials if MISSING in trial.user_attrs]
    missing = {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}
    if not usable:
        why = next(iter(missing), "every one is over a limit; raise it, or search longer")
        raise Failed(f"none of {len(trials)} designs has a score: {why}")

    def designs(trials: Sequence[FrozenTrial]) -> list[ScoredDesign]:
        """The best in the first objective first."""
        return [
            ScoredDesign(
                task.space.canonical(config_of(task.space.choices, trial)),
                dict(zip(task.objectives, map(float, trial.values), strict=True)),
            )
            for trial in sorted(trials, key=lambda trial: -trial.values[0])
        ]

    return DesignSearchResult(
        repeat=repeat,
        front=designs(front(trials, study.directions, space=task.space)),
        best=designs(usable)[: task.options.population],
        history=history,
        evaluations=len(trials),
        distinct=sum(SAME not in trial.user_attrs for trial in trials),
        missing=missing,
        seconds=seconds,
    )
