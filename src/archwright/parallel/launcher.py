"""Processes that torchrun or `accelerate launch` has started for one command: how many, and which is this one.

The first of them works as if it were alone, writes and speaks. The others take part in trainings. Loads no torch.
"""

import os
import signal
import threading
import time
from collections.abc import Mapping

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK")
"""What a launcher tells a process; what begins with one of PREFIXES too."""
PREFIXES = ("MASTER_", "TORCHELASTIC_", "ROLE_")
WATCH_SECONDS = 1.0
GRACE_SECONDS = 5.0
"""For putting things in order after the launcher has been killed."""


def launched_processes() -> int:
    """How many processes were started for this command; 1 where nothing was launched."""
    return max(1, read_number("WORLD_SIZE", 1)) if "RANK" in os.environ else 1


def processes_here() -> int:
    """Those of them that share this machine."""
    return max(1, read_number("LOCAL_WORLD_SIZE", 1)) if launched_processes() > 1 else 1


def is_first() -> bool:
    """Whether this process is alone, or the one that writes and speaks."""
    return launched_processes() == 1 or read_number("RANK", 0) == 0


def read_number(name: str, otherwise: int) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else otherwise


def unlaunched_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that is not one of the launched ones."""
    return {name: v for name, v in environment.items() if name not in VARIABLES and not name.startswith(PREFIXES)}


def end_with_launcher() -> None:
    """From now on the death of the launcher interrupts this process; it would go on alone otherwise."""
    if launched_processes() > 1:
        threading.Thread(target=_watch_launcher, args=(os.getppid(),), daemon=True).start()


def _watch_launcher(launcher: int) -> None:
    while os.getppid() == launcher:  # an orphan gets another parent
        time.sleep(WATCH_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)  # which the command line treats as Ctrl-C
    time.sleep(GRACE_SECONDS)
    os._exit(1)  # it waits for another process that is gone
