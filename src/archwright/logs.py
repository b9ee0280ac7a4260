"""Log lines of archwright (logger "archwright"), and the silence of other libraries: always a scope, never for good."""

import logging
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

logger = logging.getLogger("archwright")
LIBRARIES = ("transformers", "huggingface_hub", "optuna")
"""Their warnings (a new head, an address that does not answer, a new study) are told in our own lines, or no news."""
FORMAT = "%(asctime)s %(levelname)s %(message)s"

DATABASES = "postgres|mysql|mariadb|mssql|oracle|cockroachdb|redis|mongodb"


def hide_passwords(text: str) -> str:
    """A line that may tell what a user typed, without the passwords of databases: of an address at the wrong place."""
    text = re.sub(r"(?i)(password=)[^&\s]*", r"\1***", text)
    return re.sub(rf"(?i)((?:{DATABASES})[\w+]*:/+).*@", r"\1***@", text)


class PublicFormatter(logging.Formatter):
    """Lines and tracebacks without passwords."""

    def format(self, record: logging.LogRecord) -> str:
        return hide_passwords(super().format(record))


@contextmanager
def write_logs(*, verbose: bool = False, quiet: bool = False, file: Path | None = None) -> Iterator[None]:
    """Log lines inside go to stderr (from INFO with `verbose`, none with `quiet`) and, all of them, to the file.

    An error that ends the block is in the file with its traceback; on stderr the command line tells it in one line.
    """
    stderr = logging.StreamHandler(sys.stderr)
    stderr.setLevel(logging.CRITICAL if quiet else logging.INFO if verbose else logging.WARNING)
    stderr.setFormatter(PublicFormatter("%(message)s"))
    handlers: list[logging.Handler] = [stderr]
    if file is not None:
        handlers.append(logging.FileHandler(file, encoding="utf-8"))
        handlers[1].setFormatter(PublicFormatter(FORMAT))
    level, propagate = logger.level, logger.propagate
    logger.setLevel(logging.INFO if verbose or file is not None else logging.WARNING)
    logger.propagate = False  # libraries give the root logger a handler, which would show each line once more
    for handler in handlers:
        logger.addHandler(handler)
    try:
        yield
    except BaseException as error:
        if file is not None:  # without any handler logging itself would show it on stderr
            logger.removeHandler(stderr)
            logger.error("%s", error or type(error).__name__, exc_info=error)
        raise
    finally:
        logger.setLevel(level)
        logger.propagate = propagate
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Inside, libraries that are loaded already log errors only and draw no bars; as before afterwards."""
    with ExitStack() as undo:
        for name in LIBRARIES:
            if name in sys.modules:
                library = logging.getLogger(name)
                if library.level != logging.ERROR:  # setting it costs a walk over all loggers there are
                    undo.callback(library.setLevel, library.level)
                    library.setLevel(logging.ERROR)
        if "transformers" in sys.modules:
            from transformers.utils import logging as bars

            if bars.is_progress_bar_enabled():
                bars.disable_progress_bar()
                undo.callback(bars.enable_progress_bar)
        yield


@contextmanager
def silence_libraries() -> Iterator[None]:
    """No log lines below critical, no warnings and no bars inside: for exporters, which comment on every layer."""
    disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with quiet_libraries(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
