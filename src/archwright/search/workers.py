"""What happens to the trials of workers that died."""

from __future__ import annotations

import time

from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from archwright.logs import logger
from archwright.search import heartbeat
from archwright.search.choices import Choices
from archwright.search.encoding import is_complete
from archwright.search.heartbeat import HeartbeatMonitor, has_ended, lock_file, worker_id
from archwright.search.history import RETRY_OF, first_retries

LOST = "lost"
POLL_SECONDS = 1.0


def fail_stale_trials(study: Study, monitor: HeartbeatMonitor) -> list[int]:
    """Frees the trials of dead workers and returns their numbers: told FAIL and marked as lost.

    If a worker lives after all, its result is ignored.
    """
    return [trial.number for trial in _running(study) if monitor.is_dead(trial) and _bury(study, trial)]


def settle_trials(study: Study) -> None:
    """Frees the trials of dead workers, for a search that begins or goes on; waits until it knows of each who lives.

    Otherwise a search that was killed on another machine would go on without the trial that was lost, and draw others
    than an undisturbed one.
    """
    monitor = HeartbeatMonitor()
    found = {trial.number for trial in _running(study)}
    unsure = _unsure(study, monitor, found)
    if unsure:
        seconds = heartbeat.STALE_SECONDS
        logger.warning("%d trials may be worked on elsewhere; waiting up to %g s for a sign", len(unsure), seconds)
    while unsure:
        time.sleep(POLL_SECONDS)
        unsure = _unsure(study, monitor, found)


def _unsure(study: Study, monitor: HeartbeatMonitor, found: set[int]) -> list[int]:
    """Those of the found trials that still run, nobody knows whether for a living worker."""
    fail_stale_trials(study, monitor)
    return [trial.number for trial in _running(study) if trial.number in found and not monitor.is_alive(trial)]


def _running(study: Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))


def next_lost_trial(choices: Choices, trials: list[FrozenTrial]) -> FrozenTrial | None:
    """The first lost trial that nobody has tried again; a second attempt that was lost too is not owed a third."""
    retries = first_retries(trials)
    for trial in trials:
        lost = trial.state is TrialState.FAIL and LOST in trial.user_attrs
        if lost and RETRY_OF not in trial.user_attrs and trial.number not in retries and is_complete(choices, trial):
            return trial
    return None


def _bury(study: Study, trial: FrozenTrial) -> bool:
    """False when another worker was faster.

    Marked before it is told, so that no moment exists to forget it. Through the study's storage: Optuna has no public
    way to write an attribute of another process's running trial.
    """
    try:
        study._storage.set_trial_user_attr(trial._trial_id, LOST, True)
        study.tell(trial.number, state=TrialState.FAIL)
    except (UpdateFinishedTrialError, ValueError):
        return False
    if has_ended(trial):
        lock_file(worker_id(trial) or "").unlink(missing_ok=True)
    return True
