"""The search itself: ask, check the limits, measure, tell; several workers may do so on one study."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from archwright.errors import BadInput
from archwright.search.choices import Config
from archwright.search.encoding import config_key, config_of, is_complete
from archwright.search.space import Candidate, Constraint, Objective, Space
from archwright.search.trial_queue import TrialQueue, freed_on_error

MISSING = "missing"
Told = Callable[[FrozenTrial], None]
Outcome = tuple[TrialState, list[float] | None]


def search(
    study: Study,
    space: Space,
    objectives: Sequence[Objective],
    *,
    constraints: Sequence[Constraint] = (),
    trials: int,
    deadline: float | None = None,
    on_trial: Told | None = None,
) -> None:
    """Tries configs until `trials` of the study are told (within the limits or not), or `deadline` has passed.

    The deadline is a value of `time.monotonic()`. Run it again to go on after a crash, or at the same time in other
    processes to share the work; each returns when all trials are told. `told` is called after each of one's own.
    """
    _check_directions(study, objectives)
    known = Known(space)
    for trial in TrialQueue(study, space.choices, trials, deadline):
        with freed_on_error(study, trial):
            candidate = Candidate(space, config_of(space.choices, trial))
            same = known.find(study, candidate.config)
            state, values = copied(same, trial) if same else _measure(candidate, objectives, constraints, trial)
            outcome = study.tell(trial, values, state=state, skip_if_finished=True)
            if on_trial and outcome.state is state:
                on_trial(outcome)


class Known:
    """Finds the told trial of the same design; each told trial is read once."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._seen: set[int] = set()
        self._first: dict[str, FrozenTrial] = {}

    def find(self, study: Study, config: Config) -> FrozenTrial | None:
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED)):
            if trial.number not in self._seen and is_complete(self._space.choices, trial):
                self._seen.add(trial.number)
                self._first.setdefault(self.key(config_of(self._space.choices, trial)), trial)
        return self._first.get(self.key(config))

    def key(self, config: Config) -> str:
        """The same for all configs of one design."""
        return config_key(self._space.canonical(config))


def exceeds(limit: Constraint, candidate: Candidate, trial: Trial) -> bool:
    """True when over the limit; by how much is kept with the trial."""
    excess = float(limit.measure(candidate)) - limit.at_most
    trial.set_constraint(limit.name, math.inf if math.isnan(excess) else excess)
    return not excess <= 0


def _measure(
    candidate: Candidate, objectives: Sequence[Objective], constraints: Sequence[Constraint], trial: Trial
) -> Outcome:
    """Limits first, in order, up to the first one exceeded; a measure that is no finite number ends as missing."""
    if any(exceeds(limit, candidate, trial) for limit in constraints):
        return TrialState.PRUNED, None
    values = []
    for objective in objectives:
        values.append(float(objective.measure(candidate)))
        if not math.isfinite(values[-1]):
            trial.set_user_attr(MISSING, objective.name)
            return TrialState.PRUNED, None
    return TrialState.COMPLETE, values


def copied(same: FrozenTrial, trial: Trial) -> Outcome:
    """The outcome of an earlier trial with the same design, instead of measuring it again."""
    for name, excess in same.constraints.items():
        trial.set_constraint(name, excess)
    for key in same.user_attrs.keys() & {MISSING}:
        trial.set_user_attr(key, same.user_attrs[key])
    trial.set_user_attr("same_as", same.number)
    return same.state, same.values


def _check_directions(study: Study, objectives: Sequence[Objective]) -> None:
    wanted = [objective.direction for objective in objectives]
    found = [direction.name.lower() for direction in study.directions]
    if wanted != found:
        raise BadInput(
            f"a study must be made for the objectives {wanted}, got {found}; start a new run in another folder."
        )
