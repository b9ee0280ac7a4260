"""Asks a study for trials: one by one when several workers share it, or whole configs at once inside one process.

Trials are opened through `study._storage.create_new_trial`: Optuna's public `ask` can neither write the owner of a
trial together with it, so that a worker killed in between would leave a trial that belongs to nobody, nor write a
whole config in one step, where one `suggest` per parameter writes to the storage every time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from archwright.errors import BadInput
from archwright.search.choices import Choices
from archwright.search.encoding import PACKED, distributions, packed_names
from archwright.search.heartbeat import WORKER, Heartbeat
from archwright.search.history import RETRY_OF, trials_before, valid_trials
from archwright.search.workers import fail_stale_trials, next_lost_trial

STALE_CHECK_SECONDS = 30.0
IDLE_STALE_CHECK_SECONDS = 1.0
POLL_SECONDS = 0.2


class TrialQueue:
    """Trials for this worker, with their whole config drawn; ends when `count` are told or time is up.

    When the last ones are in the hands of other workers it waits for them, and takes over those of the dead.
    """

    def __init__(
        self, study: Study, choices: Choices, count: int, *, time_is_up: Callable[[], bool], heartbeat: Heartbeat
    ) -> None:
        self._study = study
        self._choices = choices
        self._distributions = distributions(choices)
        self._count = count
        self._time_is_up = time_is_up
        self._heartbeat = heartbeat
        self._checked = float("-inf")

    def __iter__(self) -> Iterator[Trial]:
        while not self._time_is_up():
            self._fail_stale_trials(every=STALE_CHECK_SECONDS)
            trials = self._study.get_trials(deepcopy=False)
            taken = valid_trials(trials)[: self._count]
            if len(taken) < self._count or any(trial.state is TrialState.WAITING for trial in taken):
                trial = self._ask(trials)
                if trial:
                    yield trial
            elif all(trial.state.is_finished() for trial in taken):
                return
            else:
                time.sleep(POLL_SECONDS)
                self._fail_stale_trials(every=IDLE_STALE_CHECK_SECONDS)

    def _fail_stale_trials(self, every: float) -> None:
        if time.monotonic() - self._checked >= every:
            fail_stale_trials(self._study, self._heartbeat)
            self._checked = time.monotonic()

    def _ask(self, trials: list[FrozenTrial]) -> Trial | None:
        """None when other workers took the last free place, or the same lost trial, at the same moment."""
        trial = self._open(trials)
        with fail_on_error(self._study, [trial]):
            past = trials_before(self._study, trial.number + 1)
            if len(past) > self._count or not past or past[-1].number != trial.number:
                trial.set_user_attr("surplus", True)
                self._study.tell(trial, state=TrialState.FAIL)
                return None
            self._draw(trial)
            return trial
        return None

    def _open(self, trials: list[FrozenTrial]) -> Trial:
        """A lost trial again, else one that waits in the study, else a new one."""
        lost = next_lost_trial(self._choices, trials)
        if not lost and any(trial.state is TrialState.WAITING for trial in trials):
            trial = self._study.ask()
            trial.set_user_attr(WORKER, self._heartbeat.worker)
            return trial
        template = create_trial(state=TrialState.RUNNING)
        if lost:
            packed = {key: value for key, value in lost.user_attrs.items() if key.startswith(PACKED)}
            template = create_trial(
                state=TrialState.RUNNING,
                params=lost.params,
                distributions=lost.distributions,
                user_attrs={**packed, RETRY_OF: lost.number},
            )
        template.user_attrs[WORKER] = self._heartbeat.worker
        return Trial(self._study, self._study._storage.create_new_trial(self._study._study_id, template))

    def _draw(self, trial: Trial) -> None:
        """All parameters, then the packed choices that the sampler proposed beside them."""
        for name, distribution in self._distributions.items():
            if isinstance(distribution, IntDistribution):
                trial.suggest_int(name, distribution.low, distribution.high, step=distribution.step)
            elif isinstance(distribution, CategoricalDistribution):
                trial.suggest_categorical(name, distribution.choices)
        written = trial.user_attrs
        for key in (PACKED + name for name in packed_names(self._choices)):
            if key not in written:
                value: str | None = trial.relative_params.get(key)
                if value is None:
                    sampler = type(trial.study.sampler).__name__
                    raise BadInput(
                        f"a sampler must draw {key!r} whole, got {sampler}; take one of archwright.search.SAMPLERS."
                    )
                trial.set_user_attr(key, value)


def ask_whole(study: Study, choices: Choices) -> Trial:
    """A new trial with the whole config that the study's sampler proposes, written at once."""
    sampler, space = study.sampler, distributions(choices)
    blank = create_trial(state=TrialState.RUNNING)
    blank.number = len(study.get_trials(deepcopy=False))
    proposed = sampler.sample_relative(study, blank, sampler.infer_relative_search_space(study, blank))
    params = {name: proposed[name] for name in space if name in proposed}
    for name, distribution in space.items():
        if name not in proposed:
            params[name] = sampler.sample_independent(study, blank, name, distribution)
    packed = {name: value for name, value in proposed.items() if name.startswith(PACKED)}
    template = create_trial(state=TrialState.RUNNING, params=params, distributions=space, user_attrs=packed)
    return Trial(study, study._storage.create_new_trial(study._study_id, template))


@contextmanager
def fail_on_error(study: Study, trials: Sequence[Trial]) -> Iterator[None]:
    """An error or Ctrl-C frees the trials at once; one given away as lost meanwhile stays with its new worker."""
    try:
        yield
    except UpdateFinishedTrialError:
        return
    except BaseException:
        for trial in trials:
            study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
        raise
