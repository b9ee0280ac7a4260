"""How a command ends: an exit code, and at most one line that says why."""

import errno
import os
import sys
import traceback
from collections.abc import Callable

from archwright.errors import BadInput, Failed

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


def ending(work: Callable[[], int]) -> int:
    """The exit code; what a user can understand becomes one line on stderr, a defect keeps its traceback."""
    try:
        return work()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads; keeps the final flush silent
        return FAILED
    except (BadInput, RuntimeError, OSError, MemoryError, KeyboardInterrupt) as error:
        if isinstance(error, RuntimeError) and not (isinstance(error, Failed) or lacks_memory(error)):
            raise
        if os.environ.get("ARCHWRIGHT_TRACEBACK"):
            traceback.print_exc()
        print(f"archwright: {line_of(error)}", file=sys.stderr)
        return code_of(error)


def lacks_memory(error: BaseException) -> bool:
    """Torch says so in a RuntimeError, in the words of the device."""
    return any(words in str(error).lower() for words in ("can't allocate memory", "out of memory"))


def code_of(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    users_path = isinstance(error, OSError) and error.errno in ABOUT_A_PATH
    return BAD_INPUT if users_path or isinstance(error, BadInput) else FAILED


def line_of(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; the same command again goes on from here."
    if isinstance(error, MemoryError) or lacks_memory(error):
        return "out of memory; choose a smaller batch size or model, or close other programs."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__
