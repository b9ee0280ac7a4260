"""Who works on which trial, and what happens to the trials of those who died."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from archwright.search.choices import Choices
from archwright.search.encoding import is_complete
from archwright.search.history import RETRY_OF, first_retries

STALE_SECONDS = 600.0
WORKER = "worker"
LOST = "lost"


def this_worker() -> dict[str, Any]:
    """Names this process so that others can tell whether it still lives; kept with each of its trials."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "started": process_start(pid), "asked": time.time()}


def process_start(pid: int) -> str | None:
    """When a living process of this machine was started, None if there is none; ids are used again, times are not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return _started_elsewhere(pid) if not Path("/proc/self/stat").exists() else None
    return None if fields[0] in "ZX" else fields[19]  # a zombie has ended; field 22 of the line is the start time


def fail_stale_trials(study: Study, *, stale_seconds: float = STALE_SECONDS) -> list[int]:
    """Frees the trials of dead workers and returns their numbers: told FAIL and marked as lost.

    A worker is dead when its process on this machine is gone. One on another machine counts as dead when its trial is
    older than `stale_seconds`; if it lives after all, its result is ignored.
    """
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return [trial.number for trial in running if is_dead(trial, stale_seconds) and _bury(study, trial)]


def next_lost_trial(choices: Choices, trials: list[FrozenTrial]) -> FrozenTrial | None:
    """The first lost trial that nobody has tried again; a second attempt that was lost too is not owed a third."""
    retries = first_retries(trials)
    for trial in trials:
        lost = trial.state is TrialState.FAIL and LOST in trial.user_attrs
        if lost and RETRY_OF not in trial.user_attrs and trial.number not in retries and is_complete(choices, trial):
            return trial
    return None


def is_dead(trial: FrozenTrial, stale_seconds: float) -> bool:
    """True when nobody will tell this running trial any more."""
    worker = trial.user_attrs.get(WORKER)
    if worker and worker["host"] == socket.gethostname():
        return bool(process_start(worker["pid"]) != worker["started"])
    begun = worker["asked"] if worker else trial.datetime_start.timestamp() if trial.datetime_start else 0.0
    return bool(time.time() - begun > stale_seconds)


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
    return True


def _started_elsewhere(pid: int) -> str | None:
    """Systems without /proc: alive or not is all there is to know."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    return ""
