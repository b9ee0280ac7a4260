"""The live page with real networks behind it: a search that it starts, and a sub-network that is tried and exported."""

import os
import re
import signal
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from archwright.commands import COMMANDS
from tests.chromium import PATIENCE
from tests.compression.runs import saved_model, table_file
from tests.reports.conftest import wait_until
from tests.web.served import serving

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TRIALS = "Number(document.getElementById('status').dataset.trials)"


@contextmanager
def quiet_page(browser: Any, address: str) -> Iterator[Any]:
    """A page that must not complain."""
    context, complaints = browser.new_context(viewport={"width": 1200, "height": 900}), list[str]()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: request.url.startswith(address) or complaints.append(request.url))
    yield page
    context.close()
    assert complaints == []


def begin_search(page: Any, address: str, model: Path, rows: Path) -> None:
    """By the form, as a user does; the page of the run is there when its folder is."""
    page.goto(f"{address}start")
    for name, value in {"model": model, "train": rows, "trials": 3000, "threads": 1}.items():
        page.fill(f"#option-{name}", str(value))
    page.fill("#run-name", "tiny")
    wait_until(
        page, "(document.querySelector('#command code') || {textContent: ''}).textContent.includes('--trials=3000')"
    )
    page.click("#start-button")
    page.locator("#jobs [data-run=tiny]").wait_for()
    while page.request.get(f"{address}api/run/tiny").status != 200:
        assert page.locator("#jobs .running").count() == 1, page.locator("#jobs").inner_text()
        page.wait_for_timeout(200)
    page.click("#jobs a")


def test_a_real_search_is_started_followed_stopped_resumed_and_killed(
    browser: Any, minilm: Path, tmp_path: Path
) -> None:
    model, rows = saved_model(tmp_path / "model", minilm), table_file(tmp_path / "rows.csv")
    (tmp_path / "runs").mkdir()
    with (
        serving(tmp_path / "runs", start_options=COMMANDS["compress"].first) as server,
        quiet_page(browser, server.address) as page,
    ):
        begin_search(page, server.address, model, rows)
        wait_until(page, f"{TRIALS} > 3")
        assert "running" in page.locator("#status").inner_text()
        page.get_by_role("button", name="Stop tiny").click()
        resume = page.get_by_role("button", name="Resume tiny")
        resume.wait_for()
        assert "archwright compress --options" in page.locator("#status").inner_text()
        before = page.evaluate(TRIALS)
        resume.click()
        wait_until(page, f"{TRIALS} > {before}")
        app: Any = server.server.config.app
        os.killpg(app.state.api.jobs.all()[0].process.pid, signal.SIGKILL)
        resume.wait_for()
        assert "stopped" in page.locator("#status").inner_text()


def test_a_real_sub_network_is_tried_inspected_exported_and_downloaded(browser: Any, run: Any) -> None:
    trial, name = run.front[0]["trial"], run.folder.path.name
    with serving(run.folder.path.parent) as server, quiet_page(browser, server.address) as page:
        page.goto(f"{server.address}network/{trial}/{name}")
        page.fill("#try-text", "the film is lovely")
        page.click("#try-button")
        page.locator("#answers .answer").nth(1).wait_for()
        assert re.search(r"took \d+.% of the time", page.locator("#try-says").inner_text())
        page.click("#inspect-button")
        page.locator("#confusions table").nth(1).wait_for()
        page.get_by_role("radio", name="compact").check(force=True)
        page.click("#export-button")
        wait_until(page, "document.getElementById('export-says').textContent.startsWith('Written and verified')")
        assert "largest difference" in page.locator("#parity").inner_text()
        with page.expect_download() as downloading:
            page.locator("#exports a").first.click()
        with zipfile.ZipFile(downloading.value.path()) as packed:
            assert any(entry.endswith("model.safetensors") for entry in packed.namelist())
