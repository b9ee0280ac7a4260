"""Processes that end with the one that started them, however that one ends.

The parent holds the writing end of a pipe and never writes to it. When it lets go, or the system does so because it
was killed, the child reads the end of the pipe: on every system, and also when nobody is left to send a signal.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

from archwright.parallel.launcher import unlaunched_environment

PIPE = "ARCHWRIGHT_PARENT"
"""Environment variable with the reading end."""
GRACE_SECONDS = 5.0
"""What a child has for putting things in order: its trial is given back, half-written files are deleted. One that is
killed after them leaves both to the next command."""


class ChildProcess:
    """A command that is interrupted when this process ends or lets go of it; a terminal's Ctrl-C does not reach it."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        reading, self._writing = os.pipe()
        environment = {**unlaunched_environment(os.environ), **(variables or {}), PIPE: str(reading)}
        try:
            self._process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, env=environment, pass_fds=[reading], start_new_session=True
            )
        finally:
            os.close(reading)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def let_go(self) -> None:
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1

    def wait(self) -> None:
        """Returns when it has ended, which it does by itself after `let_go`; one that cannot is killed."""
        try:
            self._process.wait(timeout=2 * GRACE_SECONDS)
        except subprocess.TimeoutExpired:  # stopped by somebody
            self._process.kill()
            self._process.wait()


def end_with_parent() -> None:
    """In a `ChildProcess`: from now on the end of the parent interrupts this process. Elsewhere nothing happens."""
    pipe = os.environ.pop(PIPE, None)
    if pipe is not None:
        threading.Thread(target=_wait_for_end, args=(int(pipe),), daemon=True).start()


def _wait_for_end(pipe: int) -> None:
    os.read(pipe, 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # nobody wants to know that we were interrupted
    os.kill(os.getpid(), signal.SIGTERM)  # which the command line treats as Ctrl-C
    time.sleep(GRACE_SECONDS)
    os._exit(1)  # a computation that does not listen
