"""Libraries that talk while they work, kept from doing so."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled


@contextmanager
def silenced() -> Iterator[None]:
    """No log lines below critical, no warnings and no progress bars of other libraries inside."""
    level, bars = logging.root.manager.disable, is_progress_bar_enabled()
    logging.disable(logging.ERROR)
    disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        if bars:
            enable_progress_bar()
