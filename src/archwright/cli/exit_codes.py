"""How a command ends: an exit code, and at most one line that says why."""

import errno
import os
import sys
import time
import traceback
from collections.abc import Callable

from archwright.errors import BadInput, Failed, ToldElsewhere
from archwright.logs import hide_passwords
from archwright.parallel.launcher import is_first

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


PATIENCE_SECONDS = 15.0
"""For the launcher to end a process that has failed as the first one did; after that it says what it knows."""
UNDERSTOOD = (BadInput, RuntimeError, OSError, MemoryError, KeyboardInterrupt)


def exit_code(work: Callable[[], int]) -> int:
    """The exit code; what a user can understand becomes one line on stderr, a defect keeps its traceback."""
    try:
        return work()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads; keeps the final flush silent
        return FAILED
    except ToldElsewhere as told:
        return explain(told.error, no_memory=False)[0]
    except (Exception, KeyboardInterrupt) as error:
        if was_interrupted(error):
            error = KeyboardInterrupt()
        if not isinstance(error, UNDERSTOOD):
            raise
        # Torch says that there is no memory in a RuntimeError, in the words of the device.
        text = str(error).lower()
        no_memory = isinstance(error, MemoryError) or "can't allocate memory" in text or "out of memory" in text
        if isinstance(error, RuntimeError) and not (isinstance(error, Failed) or no_memory):
            raise
        if os.environ.get("ARCHWRIGHT_TRACEBACK"):
            traceback.print_exc()
        code, line = explain(error, no_memory=no_memory)
        if not is_first() and ends_unheard(error):
            return code
        print(f"archwright: {hide_passwords(line)}", file=sys.stderr)
        return code


def ends_unheard(error: BaseException) -> bool:
    """Whether the first of several launched processes says this, or the like: then the launcher ends this one soon."""
    if isinstance(error, KeyboardInterrupt):
        return True
    try:
        time.sleep(PATIENCE_SECONDS)
    except KeyboardInterrupt:
        return True
    return False


def was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind the error: libraries turn it into others when it comes while they are loaded."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


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
