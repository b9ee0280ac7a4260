"""Who is alive, found out without comparing clocks, host names or process ids of different machines.

A worker is known by a random id, which stands in each of its trials. Every BEAT_SECONDS it counts up a number in the
trial that it works on; others watch that number with a clock of their own and take the worker for dead when they have
seen no change for STALE_SECONDS. Trials may last for days, clocks may differ, machines may share a name. A trial that
is shorter than a beat costs nothing. (Optuna has heartbeats for databases only, and they compare times of day.)

On one machine nobody has to wait that long: a worker also holds a lock on a file in the folder for temporary files,
which the system lets go when the process ends, however it ends. Who finds the file and can lock it knows of the death;
who does not find it, because it is on another machine or in another container, knows nothing and watches the number.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from uuid import uuid4

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

BEAT_SECONDS = 20.0
STALE_SECONDS = 120.0
LONGEST_GAP = 2 * BEAT_SECONDS
"""Seconds between two looks that count at most: while a database was gone, nobody could write to it either."""
LAST_BEAT_SECONDS = 5.0
"""How long an end waits for a beat that a database does not answer."""
LOCK = "archwright-worker-"
OLD_SECONDS = 86_400.0
WORKER, HEARTBEAT = "worker", "heartbeat"
"""Attributes of a trial."""


@dataclass(frozen=True)
class Look:
    """What was seen of a running trial so far."""

    sign: tuple[Any, Any]
    """Who worked on it, and the heartbeat."""
    at: float
    silent: float = 0.0
    """Seconds without a change."""
    changed: bool = False
    """Whether it ever did."""

    def again(self, sign: tuple[Any, Any], now: float) -> Self:
        if sign != self.sign:
            return replace(self, sign=sign, at=now, silent=0.0, changed=True)
        return replace(self, at=now, silent=self.silent + min(now - self.at, LONGEST_GAP))


class HeartbeatMonitor:
    """For how long the running trials of others have not changed, on the clock of this process."""

    def __init__(self) -> None:
        self._looks: dict[int, Look] = {}  # by the number of the trial
        self._lock = threading.Lock()

    def look(self, trial: FrozenTrial) -> Look:
        """Looks at the trial once more."""
        now, sign = time.monotonic(), (trial.user_attrs.get(WORKER), trial.user_attrs.get(HEARTBEAT))
        with self._lock:
            before = self._looks.get(trial.number)
            look = self._looks[trial.number] = before.again(sign, now) if before else Look(sign, now)
        return look

    def is_dead(self, trial: FrozenTrial) -> bool:
        """True when nobody will tell this running trial any more."""
        ended = has_ended(trial)
        return self.look(trial).silent >= STALE_SECONDS if ended is None else ended

    def is_alive(self, trial: FrozenTrial) -> bool:
        """True when it is known that somebody works on it; False as long as that is not known."""
        return has_ended(trial) is False or self.look(trial).changed


class Heartbeat(HeartbeatMonitor):
    """The life of one worker in a study while the block lasts; a thread beats for it and watches the others."""

    def __init__(self, study: Study) -> None:
        super().__init__()
        self.id = uuid4().hex
        self._study = study
        self._file: IO[bytes] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat_again, daemon=True)

    @property
    def worker(self) -> dict[str, Any]:
        """What a trial says about its worker; host and process id are for people who look for it."""
        return {"id": self.id, "host": socket.gethostname(), "pid": os.getpid()}

    def __enter__(self) -> Self:
        sweep_locks()
        with suppress(OSError):  # without a folder for temporary files others have to watch the heartbeat
            self._file = open(lock_file(self.id), "wb", opener=_private)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=LAST_BEAT_SECONDS)
        with suppress(Exception):  # where the store is gone the file stays, and tells others that this worker ended
            if error is not None:
                self.give_back()
            lock_file(self.id).unlink(missing_ok=True)
        if self._file is not None:
            self._file.close()

    def give_back(self) -> None:
        """Frees a trial that an interrupt has caught between two lines, before anybody answered for it."""
        for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if worker_id(trial) == self.id:
                self._study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)

    def beat(self) -> None:
        """Counts up in one's own running trials, looks at those of the others."""
        for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if worker_id(trial) == self.id:
                # Through the storage, like everything about trials that are not an Optuna Trial of this thread.
                beats = trial.user_attrs.get(HEARTBEAT, 0) + 1
                self._study._storage.set_trial_user_attr(trial._trial_id, HEARTBEAT, beats)
            else:
                self.look(trial)

    def _beat_again(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            with suppress(Exception):  # the trial was told meanwhile, or the store is gone, which the worker will find
                self.beat()


def worker_id(trial: FrozenTrial) -> str | None:
    return (trial.user_attrs.get(WORKER) or {}).get("id")


def has_ended(trial: FrozenTrial) -> bool | None:
    """Whether the worker of a trial has ended, as far as the system knows; None: nothing is known of it here."""
    name = worker_id(trial)
    return None if name is None else is_free(lock_file(name))


def is_free(path: Path) -> bool | None:
    """Whether nobody holds a lock on the file; None when it is not there, or cannot be locked."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def lock_file(name: str) -> Path:
    """The file that the worker of this id holds a lock on."""
    return Path(tempfile.gettempdir()) / f"{LOCK}{name}"


def sweep_locks() -> None:
    """Deletes the files of workers that were killed long ago, and between two trials: nobody asks after them."""
    with suppress(OSError):
        for file in Path(tempfile.gettempdir()).glob(f"{LOCK}*"):
            if time.time() - file.stat().st_mtime > OLD_SECONDS and is_free(file):
                file.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
