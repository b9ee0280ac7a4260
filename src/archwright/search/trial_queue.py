"""Whose turn it is: hands one worker its trials, one by one, until the study has as many as wanted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from archwright.errors import BadInput
from archwright.search.choices import Choices
from archwright.search.encoding import PACKED, distributions, packed_names
from archwright.search.history import RETRY_OF, trials_before, valid_trials
from archwright.search.workers import WORKER, fail_stale_trials, next_lost_trial, this_worker

REVIVE_SECONDS = 30.0
IDLE_REVIVE_SECONDS = 1.0
POLL_SECONDS = 0.2


class TrialQueue:
    """Trials for this process, with their whole config drawn; ends when `wanted` are told or time is up.

    When the last ones are in the hands of other workers it waits for them, and takes over those of the dead.
    """

    def __init__(self, study: Study, choices: Choices, wanted: int, deadline: float | None) -> None:
        self._study = study
        self._choices = choices
        self._distributions = distributions(choices)
        self._wanted = wanted
        self._deadline = deadline
        self._revived = float("-inf")

    def __iter__(self) -> Iterator[Trial]:
        while not self._is_late():
            self._revive(every=REVIVE_SECONDS)
            trials = self._study.get_trials(deepcopy=False)
            taken = valid_trials(trials)[: self._wanted]
            if len(taken) < self._wanted or any(trial.state is TrialState.WAITING for trial in taken):
                trial = self._ask(trials)
                if trial:
                    yield trial
            elif all(trial.state.is_finished() for trial in taken):
                return
            else:
                self._wait()

    def _ask(self, trials: list[FrozenTrial]) -> Trial | None:
        """None when other workers took the last free place at the same moment."""
        trial = self._open(trials)
        with freed_on_error(self._study, trial):
            if self._is_surplus(trial):
                trial.set_user_attr("surplus", True)
                self._study.tell(trial, state=TrialState.FAIL)
                return None
            self._draw(trial)
            return trial
        return None

    def _open(self, trials: list[FrozenTrial]) -> Trial:
        """A lost trial again, else one that waits in the study, else a new one.

        Owner and, for a lost one, config are written together with the trial, so that none is ever without an owner.
        """
        lost = next_lost_trial(self._choices, trials)
        if not lost and any(trial.state is TrialState.WAITING for trial in trials):
            trial = self._study.ask()
            trial.set_user_attr(WORKER, this_worker())
            return trial
        template = _again(lost) if lost else create_trial(state=TrialState.RUNNING)
        template.user_attrs[WORKER] = this_worker()
        return Trial(self._study, self._study._storage.create_new_trial(self._study._study_id, template))

    def _is_surplus(self, trial: Trial) -> bool:
        """True when others were faster: enough trials before this one, or the same lost one taken up already."""
        past = trials_before(self._study, trial.number + 1)
        return len(past) > self._wanted or not past or past[-1].number != trial.number

    def _draw(self, trial: Trial) -> None:
        for name, distribution in self._distributions.items():
            _suggest(trial, name, distribution)
        given = trial.user_attrs
        for key in (PACKED + name for name in packed_names(self._choices)):
            if key not in given:
                trial.set_user_attr(key, _proposed(trial, key))

    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _revive(self, every: float) -> None:
        if time.monotonic() - self._revived >= every:
            fail_stale_trials(self._study)
            self._revived = time.monotonic()

    def _wait(self) -> None:
        time.sleep(POLL_SECONDS)
        self._revive(every=IDLE_REVIVE_SECONDS)


@contextmanager
def freed_on_error(study: Study, trial: Trial) -> Iterator[None]:
    """An error or Ctrl-C frees the trial at once; one given away as lost meanwhile stays with its new worker."""
    try:
        yield
    except UpdateFinishedTrialError:
        return
    except BaseException:
        study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
        raise


def _again(lost: FrozenTrial) -> FrozenTrial:
    packed = {key: value for key, value in lost.user_attrs.items() if key.startswith(PACKED)}
    return create_trial(
        state=TrialState.RUNNING,
        params=lost.params,
        distributions=lost.distributions,
        user_attrs={**packed, RETRY_OF: lost.number},
    )


def _suggest(trial: Trial, name: str, distribution: BaseDistribution) -> None:
    if isinstance(distribution, IntDistribution):
        trial.suggest_int(name, distribution.low, distribution.high, step=distribution.step)
    elif isinstance(distribution, CategoricalDistribution):
        trial.suggest_categorical(name, distribution.choices)


def _proposed(trial: Trial, key: str) -> str:
    found: str | None = trial.relative_params.get(key)
    if found is None:
        sampler = type(trial.study.sampler).__name__
        raise BadInput(f"a sampler must draw {key!r} whole, got {sampler}; take one of archwright.search.SAMPLERS.")
    return found
