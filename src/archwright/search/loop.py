"""The search itself: ask, check the constraints, evaluate, tell; one trial or a whole population at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from archwright.errors import BadInput
from archwright.search.choices import Config
from archwright.search.encoding import config_key, config_of, is_complete
from archwright.search.heartbeat import Heartbeat
from archwright.search.space import Candidate, Constraint, Objective, Space
from archwright.search.trial_queue import TrialQueue, ask_whole, fail_on_error

MISSING = "missing"
ObjectiveValues = Sequence[float] | str
"""One number per objective, or why there is none."""
Describe = Callable[[Candidate], Mapping[str, Any]]
"""What is worth knowing of a candidate beside its objectives, by name; JSON."""
EvaluateBatch = Callable[[Sequence[Candidate]], Sequence[ObjectiveValues]]


def search(
    study: Study,
    space: Space,
    objectives: Sequence[Objective],
    *,
    constraints: Sequence[Constraint] = (),
    trials: int,
    deadline: float | Callable[[], float | None] | None = None,
    on_trial: Callable[[FrozenTrial], None] | None = None,
    describe: Describe | None = None,
) -> None:
    """Tries configs until `trials` of the study are told (within the constraints or not), or `deadline` has passed.

    The deadline is a value of `time.monotonic()`, or gives one where it may still change. Run it again to go on after a
    crash, or at the same time in other processes to share the work; each returns when all trials are told. `on_trial`
    is called after each of one's own. What `describe` says of a measured candidate is kept with its trial as user
    attributes, for those who look at the study.
    """
    expected = [objective.direction for objective in objectives]
    directions = [direction.name.lower() for direction in study.directions]
    if expected != directions:
        rule = f"a study must be made for the objectives {expected}, got {directions}"
        raise BadInput(f"{rule}; start a new run in another folder.")

    def evaluate(candidates: Sequence[Candidate]) -> list[ObjectiveValues]:
        return [_evaluate(candidate, objectives) for candidate in candidates]

    def time_is_up() -> bool:
        latest = deadline() if callable(deadline) else deadline
        return latest is not None and time.monotonic() >= latest

    with Heartbeat(study) as heartbeat:
        queue = TrialQueue(study, space.choices, trials, time_is_up=time_is_up, heartbeat=heartbeat)
        for finished in _ask_and_tell(study, space, ([trial] for trial in queue), evaluate, constraints, describe):
            for trial in finished:
                if on_trial:
                    on_trial(trial)


def search_batches(
    study: Study,
    space: Space,
    evaluate: EvaluateBatch,
    *,
    constraints: Sequence[Constraint] = (),
    trials: int,
    batch_size: int,
    on_batch: Callable[[list[FrozenTrial]], None] | None = None,
) -> None:
    """Tries configs until the study has `trials`, `batch_size` at a time, which `evaluate` may do together.

    `on_batch` is given the trials of each batch when they are told. The study lives in this process: nobody else
    works on it.
    """

    def ask_batches() -> Iterator[list[Trial]]:
        while (done := len(study.get_trials(deepcopy=False))) < trials:
            yield [ask_whole(study, space.choices) for _ in range(min(batch_size, trials - done))]

    for finished in _ask_and_tell(study, space, ask_batches(), evaluate, constraints):
        if on_batch:
            on_batch(finished)


def _ask_and_tell(
    study: Study,
    space: Space,
    batches: Iterable[list[Trial]],
    evaluate: EvaluateBatch,
    constraints: Sequence[Constraint],
    describe: Describe | None = None,
) -> Iterator[list[FrozenTrial]]:
    """Evaluates what is new and within the constraints, tells all in the order in which they were asked.

    A design that was told before, or comes twice in a batch, is evaluated once.
    """
    known = FinishedDesigns(space)
    for batch in batches:
        finished: list[FrozenTrial] = []
        with fail_on_error(study, batch):
            candidates = [Candidate(space, config_of(space.choices, trial)) for trial in batch]
            fresh: dict[str, int] = {}  # design -> position in the batch
            for position, (trial, candidate) in enumerate(zip(batch, candidates, strict=True)):
                key = known.key(candidate.config)
                if known.find(study, key) or key in fresh:
                    continue
                if not any(_exceeds(constraint, candidate, trial) for constraint in constraints):
                    fresh[key] = position
            values = evaluate([candidates[position] for position in fresh.values()])
            evaluated = dict(zip(fresh.values(), values, strict=True))
            for position, (trial, candidate) in enumerate(zip(batch, candidates, strict=True)):
                same = None if position in evaluated else known.find(study, known.key(candidate.config))
                state, result = _copy(same, trial) if same else _outcome(trial, evaluated.get(position))
                if describe and state is TrialState.COMPLETE:
                    for name, value in describe(candidate).items():
                        trial.set_user_attr(name, value)
                frozen = study.tell(trial, result, state=state, skip_if_finished=True)
                if frozen.state is state:  # otherwise another worker took the trial over
                    finished.append(frozen)
        yield finished


class FinishedDesigns:
    """Finds the told trial of the same design; each told trial is read once."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._read: set[int] = set()
        self._first: dict[str, FrozenTrial] = {}

    def find(self, study: Study, key: str) -> FrozenTrial | None:
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED)):
            if trial.number not in self._read and is_complete(self._space.choices, trial):
                self._read.add(trial.number)
                self._first.setdefault(self.key(config_of(self._space.choices, trial)), trial)
        return self._first.get(key)

    def key(self, config: Config) -> str:
        """The same for all configs of one design."""
        return config_key(self._space.canonical(config))


def _exceeds(constraint: Constraint, candidate: Candidate, trial: Trial) -> bool:
    """True when the constraint is violated; by how much is kept with the trial."""
    excess = float(constraint.measure(candidate)) - constraint.at_most
    trial.set_constraint(constraint.name, math.inf if math.isnan(excess) else excess)
    return not excess <= 0


def _evaluate(candidate: Candidate, objectives: Sequence[Objective]) -> ObjectiveValues:
    """All objectives in order; the name of the first one that is no finite number instead."""
    values = []
    for objective in objectives:
        values.append(float(objective.measure(candidate)))
        if not math.isfinite(values[-1]):
            return objective.name
    return values


def _outcome(trial: Trial, values: ObjectiveValues | None) -> tuple[TrialState, list[float] | None]:
    """Pruned where nothing was evaluated (None: a constraint), or nothing could be (the reason is kept)."""
    if values is None or isinstance(values, str):
        if values:
            trial.set_user_attr(MISSING, values)
        return TrialState.PRUNED, None
    return TrialState.COMPLETE, list(values)


def _copy(same: FrozenTrial, trial: Trial) -> tuple[TrialState, list[float] | None]:
    """The outcome of an earlier trial with the same design, instead of evaluating it again."""
    for name, excess in same.constraints.items():
        trial.set_constraint(name, excess)
    if MISSING in same.user_attrs:
        trial.set_user_attr(MISSING, same.user_attrs[MISSING])
    trial.set_user_attr("same_as", same.number)
    return same.state, same.values
