"""A search as a process of its own, for tests that kill it: worker.py ADDRESS SPACE SAMPLER TRIALS SECONDS [PACE].

The pace is the seconds between heartbeats and those of a silence that counts as death. It says when it is ready, and
begins when it is told to.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from designs import SPACES, Designs, corners, open_storage, open_study, slow_objectives

from archwright.search import heartbeat, search


def main(address: str, space: str, sampler: str, trials: str, seconds: str, *pace: str) -> None:
    if "FAKETIME" in os.environ:  # libfaketime does not know the way in which Python sleeps
        time.sleep = lambda seconds: threading.Event().wait(seconds) and None
    if pace:
        heartbeat.BEAT_SECONDS, heartbeat.STALE_SECONDS = map(float, pace)
    choices = SPACES[space]
    study = open_study(open_storage(address), choices, sampler=sampler, seed=3, first=corners(choices))
    print("ready", flush=True)
    sys.stdin.readline()
    search(study, Designs(choices), slow_objectives(float(seconds)), trials=int(trials))


if __name__ == "__main__":
    main(*sys.argv[1:])
