"""The browser that tests of pages drive."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 120_000
"""Milliseconds until a browser, a page or what it should show is given up."""


@contextmanager
def open_chromium() -> Iterator[Any]:
    """A browser, or the test is skipped; playwright allows one at a time in a process."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"the browser tests need {CHROMIUM}; install it with: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS), timeout=PATIENCE)
        yield chromium
        chromium.close()
