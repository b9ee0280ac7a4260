"""How a command ends: an exit code, and at most one line that says why."""

import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from archwright.errors import BadInput, Failed
from archwright.logs import hide_passwords

OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

# What the system says about a path the user chose, as opposed to a disk or a connection that gave up.
ABOUT_A_PATH = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENAMETOOLONG,
    errno.ELOOP,
}


def exit_code(work: Callable[[], int]) -> int:
    """The exit code; what a user can understand becomes one line on stderr, a defect keeps its traceback."""
    try:
        return work()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads; keeps the final flush silent
        return FAILED
    except (BadInput, RuntimeError, OSError, MemoryError, KeyboardInterrupt) as error:
        # Torch says that there is no memory in a RuntimeError, in the words of the device.
        text = str(error).lower()
        no_memory = isinstance(error, MemoryError) or "can't allocate memory" in text or "out of memory" in text
        if isinstance(error, RuntimeError) and not (isinstance(error, Failed) or no_memory):
            raise
        if os.environ.get("ARCHWRIGHT_TRACEBACK"):
            traceback.print_exc()
        code, line = explain(error, no_memory=no_memory)
        print(f"archwright: {hide_passwords(line)}", file=sys.stderr)
        return code


@contextmanager
def interrupt_on_sigterm() -> Iterator[None]:
    """Inside, SIGTERM is as Ctrl-C: what was begun is put in order, trials are given back, workers end."""
    if threading.current_thread() is not threading.main_thread():  # Python leaves signals to the main thread
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # putting things in order is not interrupted by a second one
    raise KeyboardInterrupt


def explain(error: BaseException, *, no_memory: bool) -> tuple[int, str]:
    """Exit code and line of an error that a user can understand."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted; the same command again goes on from here."
    about_a_path = isinstance(error, OSError) and error.errno in ABOUT_A_PATH
    code = BAD_INPUT if about_a_path or isinstance(error, BadInput) else FAILED
    if no_memory:
        return code, "out of memory; choose a smaller batch size or model, or close other programs."
    if isinstance(error, OSError) and error.strerror:
        return code, f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return code, " ".join(str(error).split()) or type(error).__name__
