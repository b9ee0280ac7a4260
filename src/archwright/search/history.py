"""What a study has tried so far, in the order that counts.

Only trials that count have a place in the order: not those told FAIL, not one that is being tried again, and not a
second attempt at the same lost trial (two workers may notice a death at once; the lower number wins). Because the
place of a trial decides its random numbers, a search that was killed and resumed draws what it would have drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from archwright.search.choices import Choices, Config
from archwright.search.encoding import config_key, config_of, is_complete
from archwright.search.front import is_feasible, losses_of

RETRY_OF = "retry_of"


@dataclass(frozen=True)
class PastTrial:
    """A trial as samplers see it; `losses` (smaller is better) is None for one over a constraint or still running."""

    config: Config
    key: str
    losses: tuple[float, ...] | None
    finished: bool
    violation: tuple[int, float]
    """How far from passing the limits, smaller is nearer: (minus the limits passed, excess over the one failed)."""


def valid_trials(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that have a place in the order; `trials` are sorted by number."""
    retries = first_retries(trials)
    valid = []
    for trial in trials:
        origin = trial.user_attrs.get(RETRY_OF)
        surplus = origin is not None and retries[origin] != trial.number
        if trial.state is not TrialState.FAIL and trial.number not in retries and not surplus:
            valid.append(trial)
    return valid


def first_retries(trials: Sequence[FrozenTrial]) -> dict[int, int]:
    """Number of a lost trial -> number of the one trial that tries it again."""
    retries: dict[int, int] = {}
    for trial in trials:
        origin = trial.user_attrs.get(RETRY_OF)
        if origin is not None:
            retries.setdefault(origin, trial.number)
    return retries


def trials_before(study: Study, number: int) -> list[FrozenTrial]:
    """The counting trials with a smaller number; how many they are is the index of trial `number`."""
    trials = study.get_trials(deepcopy=False)
    return [trial for trial in valid_trials(trials) if trial.number < number]


class TrialHistory:
    """Tried trials by number, read once after they were told: asking stays cheap with thousands of them."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._finished: dict[int, PastTrial] = {}

    def recall(self, trials: Sequence[FrozenTrial], directions: Sequence[StudyDirection]) -> list[PastTrial]:
        past = (self._finished.get(trial.number) or self._read(trial, directions) for trial in trials)
        return [trial for trial in past if trial]

    def _read(self, trial: FrozenTrial, directions: Sequence[StudyDirection]) -> PastTrial | None:
        if not is_complete(self._choices, trial):
            return None
        config = config_of(self._choices, trial)
        usable = trial.state is TrialState.COMPLETE and is_feasible(trial)
        losses = losses_of(trial, directions) if usable else None
        excesses = [excess for excess in trial.constraints.values() if excess > 0]
        violation = (len(excesses) - len(trial.constraints), sum(excesses))
        tried = PastTrial(config, config_key(config), losses, trial.state.is_finished(), violation)
        if tried.finished:
            self._finished[trial.number] = tried
        return tried
