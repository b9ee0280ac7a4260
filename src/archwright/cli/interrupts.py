"""Ctrl-C while libraries are loaded, and SIGTERM."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

INTERRUPTED = 130
"""Exit code."""


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Inside, Ctrl-C ends the process at once with one line: an import that is interrupted ends in all sorts of errors.

    For code that has written nothing yet. Where Ctrl-C is switched off, or somebody else's, it stays as it is.
    """
    usual = signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    signal.signal(signal.SIGINT, end_at_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def end_at_once(*_: Any) -> NoReturn:
    os.write(2, b"archwright: interrupted before anything was done.\n")
    os._exit(INTERRUPTED)


@contextmanager
def interrupt_on_sigterm() -> Iterator[None]:
    """Inside, SIGTERM is as Ctrl-C: what was begun is put in order, trials are given back, workers end."""
    if threading.current_thread() is not threading.main_thread():  # Python leaves signals to the main thread
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def interrupt(number: int, *_: Any) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # putting things in order is not interrupted by a second one
    raise KeyboardInterrupt
