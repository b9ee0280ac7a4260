"""The live page in a real browser, served by a real server."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from archwright.commands import COMMANDS
from archwright.proxies.formulas.formula import parse
from archwright.store import RunFolder
from archwright.web.models import ModelProcess
from tests.chromium import PATIENCE
from tests.compression.runs import ROOT
from tests.reports.conftest import check_width, synthetic, wait_until
from tests.web.conftest import HOSTILE
from tests.web.served import serving, tell, write_finished, write_search

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
SIDES = ("original", "subnetwork")
DESIGN = {
    "schema": "archwright/design/1", "space": "nlu-tiny", "sampler": "genetic", "score": 7.0, "parameters": 9_900_000,
    "proxies": ["w_pca"], "scores": {"w_pca": 7.0}, "evaluations": 30, "distinct": 28, "seconds": 3.0,
    "layers": [{"kind": "base", "width": 132, "label": "base 132"}, {"kind": "wide", "width": 792, "label": "wide"}],
}  # fmt: skip
PAGES = (
    *("/", "/run/one", "/run/search", "/network/TRIAL/one", "/compare?run=one&run=two&network=TRIAL:one", "/proxies"),
    *("/architectures", "/architecture/design.json", "/start"),
)
TRIAL = str(synthetic(60)["front"][2]["trial"])
AXE = "https://registry.npmjs.org/axe-core/-/axe-core-4.10.2.tgz"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served")
    write_finished(root / "one", synthetic(60))
    write_finished(root / "two", synthetic(30) | {"model": "another"}, seed=4)
    write_finished(root / HOSTILE.replace("/", ""), synthetic(20) | {"model": HOSTILE, "task": HOSTILE})
    write_search(root / "search", trials=9)
    formulas = ("mean(square(inverse(H)) + frobenius(A))", "sum(W) * n_depth")
    best = [{"formula": text, "json": parse(text).as_json(), "size": 3} for text in formulas]
    broken = {"formula": "sum(nothing)", "json": {"left": 3}}
    document = {"schema": "archwright/discover/1", "benchmark": "nas-bert", "best": [*best, broken]}
    (root / "found.json").write_text(json.dumps(document))
    (root / "design.json").write_text(json.dumps(DESIGN))
    (root / "broken").mkdir()
    (root / "broken" / "run.json").write_text('{"id": "x", "opt')
    return root


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    with serving(root, start_options=COMMANDS["compress"].first) as server:
        yield server.address.rstrip("/")


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Open]:
    """Opens a page; the test fails on whatever it complains about, and on any request to elsewhere."""
    complaints: list[str] = []
    contexts = []

    def visit(path: str, **options: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": 1200, "height": 900}, **options))
        contexts[-1].set_default_timeout(PATIENCE)
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append("dialog"), dialog.dismiss()))
        ours = (f"{address}/", "data:", "blob:")
        page.on("request", lambda request: request.url.startswith(ours) or complaints.append(request.url))
        page.goto(address + path.replace("TRIAL", TRIAL))
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


def names(page: Any) -> list[str]:
    return [row.get_attribute("data-run") for row in page.locator("#list [data-run]").all()]


def test_runs_are_searched_sorted_and_ticked(visit: Open) -> None:
    page = visit("/")
    assert len(names(page)) == 5
    page.get_by_role("button", name="Run", exact=True).click()
    assert names(page) == sorted(names(page), key=str.lower)
    page.fill("#search", "another")
    assert names(page) == ["two"]
    page.fill("#search", "")
    page.get_by_label("Compare one").check()
    assert page.locator("#compare").is_disabled()
    page.get_by_label("Compare two").check()
    page.click("#compare")
    page.wait_for_url("**/compare?run=one&run=two")
    assert page.locator("#fronts-0-plot .main-svg").first.is_visible()


def test_states_are_words_not_only_colours(visit: Open) -> None:
    page = visit("/")
    states = {row.get_attribute("data-run"): row.inner_text() for row in page.locator("#list [data-run]").all()}
    assert "damaged" in states["broken"] and "stopped" in states["search"] and "finished" in states["one"]
    assert "archwright compress --options" in states["search"]


def test_the_budget_of_the_list_gives_another_network(visit: Open) -> None:
    page = visit("/")
    best = page.locator("[data-run=one] td").nth(5)
    before = best.inner_text()
    page.focus("#within")
    page.keyboard.press("Home")
    assert best.inner_text() != before


def test_hostile_names_are_text(visit: Open) -> None:
    page = visit("/")
    page.get_by_role("link", name=HOSTILE.replace("/", "")).click()
    assert HOSTILE in page.locator("h1").inner_text()
    page.locator("#chosen a.button").click()
    assert HOSTILE.replace("/", "") in page.locator(".contents").inner_text()


def test_the_sliders_agree_with_select(visit: Open, address: str) -> None:
    """What the page answers is what the command answers for the line that it shows."""
    page = visit("/run/one")
    for place in (100, 300, 450, 700, 900):
        page.evaluate(
            "(place) => { const slider = document.getElementById('limit-share');"
            " slider.value = place; slider.dispatchEvent(new Event('input')); }",
            place,
        )
        line = page.locator("#budget-command code").inner_text()
        params = re.search(r"--params (\S+)", line)
        assert params
        answer = page.request.get(f"{address}/api/select/one", params={"params": params[1]}).json()
        if "error" in answer:
            assert "No sub-network" in page.locator("#budget-answer").inner_text()
        else:
            assert page.locator("#chosen h3").inner_text() == f"Sub-network of trial {answer['selected']['trial']}"


def test_a_running_search_updates_without_a_reload(visit: Open, root: Path) -> None:
    run = write_search(root / "growing", trials=5)
    with run.lock():
        page = visit("/run/growing")
        assert "running" in page.locator("#status").inner_text()
        page.evaluate("window.kept = true")
        tell(run, 4)
        wait_until(page, "document.getElementById('status').dataset.trials === '9'")
        wait_until(page, "document.getElementById('progress-plot').data[0].y.length === 9")
        lines = "document.getElementById('front-plot').data"
        wait_until(page, f"{lines}[0].x.length + {lines}[2].x.length === 9")
        assert page.evaluate("window.kept") is True
    wait_until(page, "document.getElementById('status').textContent.startsWith('stopped')")  # killed, or ended badly
    assert "archwright compress --options" in page.locator("#status").inner_text()
    with page.expect_navigation():
        finish(run)
    page.locator("#numbers tbody tr").nth(2).wait_for()
    assert page.evaluate("window.kept") is None


def test_layers_are_drawn_while_the_search_runs(visit: Open, root: Path) -> None:
    run = write_search(root / "drawn")
    tell(run, 2, kept=True)
    with run.lock():
        page = visit("/run/drawn")
        before = page.locator("#layers .member").count()
        assert before and page.locator("#chosen svg.stack").count() == 1
        tell(run, 12, kept=True)
        wait_until(page, "document.getElementById('status').dataset.trials === '14'")
        wait_until(page, f"document.querySelectorAll('#layers .member').length > {before}")
        bars = "document.getElementById('kept-plot').data"
        wait_until(page, f"{bars} && {bars}[0].y.length === 6 && {bars}[0].y[3] === 0")  # a layer that is gone
        members = page.locator("#layers .member")
        assert all(member.locator("svg.stack").count() == 1 for member in members.all())


SEARCH = """
import sys, time
from pathlib import Path
from archwright.store import RunFolder
from tests.web.served import tell
run = RunFolder(Path(sys.argv[1]))
with run.lock():
    while True:
        tell(run, 1, kept=True)
        time.sleep(0.2)
"""


def test_a_search_of_another_process_is_followed_until_it_is_killed(visit: Open, root: Path) -> None:
    run = write_search(root / "killed", trials=1)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with subprocess.Popen([sys.executable, "-c", SEARCH, str(run.path)], env=environment) as search:
        try:
            page = visit("/run/killed")
            wait_until(page, "Number(document.getElementById('status').dataset.trials) > 3")
            assert "running" in page.locator("#status").inner_text()
        finally:
            search.kill()
    wait_until(page, "document.getElementById('status').textContent.startsWith('stopped')")
    assert "archwright compress --options" in page.locator("#status").inner_text()


def test_the_front_is_shown_as_it_grew(visit: Open) -> None:
    page = visit("/run/one")
    lines = "document.getElementById('front-plot').data"
    wait_until(page, lines)
    page.get_by_role("radio", name="by time").check(force=True)
    grown = f"{lines}.filter((trace) => (trace.name || '').startsWith('after'))"
    wait_until(page, f"{grown}.length === 3")
    lowest = page.evaluate(f"{grown}.map((trace) => Math.min(...trace.y))")
    assert lowest == sorted(lowest, reverse=True)  # it only gets better


def test_found_formulas_are_set_as_mathematics(visit: Open) -> None:
    page = visit("/proxies")
    formula = page.locator("math").first
    formula.wait_for()
    box, fraction = formula.bounding_box(), page.locator("math mfrac").first.bounding_box()
    assert box["height"] > fraction["height"] > 1.2 * page.locator("math mi").first.bounding_box()["height"]
    top, bottom = (page.locator("math mfrac > *").nth(place).bounding_box() for place in (0, 1))
    assert top["y"] + top["height"] <= bottom["y"] + 1  # one above the other
    assert page.locator("math").count() == 2 and page.locator("img[alt='sum(nothing)']").count() == 0


def finish(run: RunFolder) -> None:
    run.note("result", synthetic(9) | {"run": "growing"})
    run.note("finished", {"trials": 9})


def test_the_list_shows_a_new_run_by_itself(visit: Open, root: Path) -> None:
    page = visit("/")
    assert "late" not in names(page)
    write_search(root / "late", trials=3)
    page.locator("[data-run=late]").wait_for()


def test_progress_is_shown_while_it_lasts(visit: Open, root: Path) -> None:
    from archwright.progress import progress, record_progress

    run = write_search(root / "working", trials=2)
    with run.lock(), record_progress(run.progress), progress("training the super-network", 8, "steps") as bar:
        bar.advance(2)
        page = visit("/run/working")
        wait_until(page, "document.getElementById('status').textContent.includes('training the super-network')")
        assert page.locator("#status progress").count() == 1
    assert not run.progress.exists()


def test_a_damaged_run_says_so(visit: Open) -> None:
    page = visit("/run/broken")
    assert "This run is damaged" in page.locator("main").inner_text()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the networks answer to each question, in place of a process with torch."""
    given: dict[str, Any] = {}

    def ask(process: ModelProcess, question: str, run: Path, trial: int, **more: Any) -> Any:
        return {"schema": "archwright/answers/1", "trial": trial, **more, **given[question]}

    monkeypatch.setattr(ModelProcess, "ask", ask)
    return given


def test_a_layer_tells_its_counts(visit: Open) -> None:
    page = visit("/run/one")
    layer = page.locator("#chosen svg.stack g").first
    layer.hover()
    assert re.fullmatch(r"layer 1: \d+ of 12 heads, \d+ of 1536 units", layer.locator("title").text_content())


ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "classes": ({"labels": {"good": 0.9, "bad": 0.1}}, "90.0"),
    "several labels": ({"labels": {"old": 0.9, "new": 0.4}, "given": ["old"]}, "old ✓"),
    "a number": ({"value": 3.25}, "3.25"),
    "a question": ({"answer": "in <b>Paris</b>"}, "in <b>Paris</b>"),
    "tags": ({"words": [["Ann", "B-person", 0.9], ["sings", "O", 0.8]]}, "B-person"),
    "text": ({"written": " and <i>then</i>", "tokens": 4, "seconds": 2.0, "ended": True}, "4 tokens in 2 s, then it"),
    "vectors": ({"similarity": 0.5}, "cosine similarity 0.500"),
}


def test_both_answers_of_every_kind_stand_side_by_side(visit: Open, answers: dict[str, Any]) -> None:
    page = visit("/network/TRIAL/one")
    page.fill("#try-text", "a text")
    for kind, (answer, words) in ANSWERS.items():
        answers["try"] = {side: {**answer, "milliseconds": 4.0 / (at + 1)} for at, side in enumerate(SIDES)}
        page.evaluate("document.getElementById('answers').replaceChildren()")
        page.click("#try-button")
        page.locator("#answers .answer").nth(1).wait_for()
        shown = page.locator("#answers .answer").all_inner_texts()
        assert all(words in text.replace("\u00a0", " ") for text in shown), (kind, shown)
        assert "50\u00a0%" in page.locator("#try-says").inner_text()


def test_errors_by_class_and_texts_that_differ(visit: Open, answers: dict[str, Any]) -> None:
    page = visit("/network/TRIAL/one")
    rows = [{"name": HOSTILE, "count": 60, "original": 0.1, "subnetwork": 0.2}]
    different = [{"text": HOSTILE, "target": "bad", "original": "bad", "subnetwork": "good", "change": "lost"}]
    answers["inspect"] = {
        "rows": 60, "note": None, "agreement": 0.9, "labels": ["bad", "good"], "different": different,
        "classes": {"measure": "error", "rows": rows, "format": "share", "lower_is_better": True},
        "confusion": {side: [[20, 10], [5, 25]] for side in SIDES},
    }  # fmt: skip
    page.click("#inspect-button")
    page.locator("#different table").wait_for()
    assert HOSTILE in page.locator("#classes").inner_text() and HOSTILE in page.locator("#different").inner_text()
    assert "+10.0" in page.locator("#classes").inner_text()
    assert page.locator("#confusions table").count() == 2
    assert "90.0" in page.locator("#inspect-says").inner_text()


def test_an_export_of_a_damaged_run_says_why(visit: Open) -> None:
    """Its networks are not there: a job that fails, with the reason of the command."""
    page = visit("/network/TRIAL/one")
    page.get_by_role("radio", name="ONNX", exact=True).check(force=True)
    assert "--to onnx" in page.locator("#export-command").inner_text()
    page.click("#export-button")
    wait_until(page, "!document.getElementById('export-button').disabled")
    said = page.locator("#export-says").inner_text()
    assert said and "Traceback" not in said and "verified" not in said
    assert page.locator("#exports li").count() == 0


def test_brushes_and_the_front_work_under_the_policy_of_the_server(visit: Open) -> None:
    page = visit("/run/one")
    page.locator("[data-axis=share]").focus()
    for _ in range(8):
        page.keyboard.press("ArrowDown")
    wait_until(page, "document.querySelectorAll('#layers [data-outside]').length > 0")
    page.keyboard.press("Escape")
    page.click("#limits-reset")
    wait_until(page, "document.querySelectorAll('#layers [data-outside]').length === 0")


def test_the_page_works_with_the_keyboard_alone(visit: Open, answers: dict[str, Any]) -> None:
    page = visit("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "one":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/run/one")
    page.focus("#limit-share")
    before = page.locator("#chosen h3").inner_text()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#chosen h3").inner_text() != before
    page.locator("#chosen a.button").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/network/*/one")
    answers["try"] = {side: {"labels": {"good": 0.75, "bad": 0.25}, "milliseconds": 2.0} for side in SIDES}
    page.focus("#try-text")
    page.keyboard.type("a fine film")
    for _ in range(3):  # the second text is folded
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "try-button":
            break
    page.keyboard.press("Enter")
    page.locator("#answers .answer").nth(1).wait_for()
    assert "75.0" in page.locator("#answers").inner_text()


def test_dark_mode_is_dark(visit: Open) -> None:
    page = visit("/", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"


@pytest.fixture(scope="session")
def axe() -> str:
    """The accessibility checker, fetched once; the tests are skipped where the package index cannot be reached."""
    kept = Path(tempfile.gettempdir()) / f"archwright-{hashlib.sha256(AXE.encode()).hexdigest()[:12]}.js"
    if not kept.exists():
        try:
            with urllib.request.urlopen(AXE, timeout=30) as answer:
                packed = answer.read()
        except OSError as error:
            pytest.skip(f"the accessibility tests need {AXE}: {error}")
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            member = files.extractfile("package/axe.min.js")
            assert member is not None
            kept.write_bytes(member.read())
    return kept.read_text()


@pytest.mark.parametrize("path", PAGES)
def test_every_page_fits_a_phone_and_has_no_serious_fault_of_axe(
    visit: Open, path: str, request: pytest.FixtureRequest
) -> None:
    """In the light every rule, in the dark those about colours: the rest of the page is the same."""
    page = visit(path, color_scheme="light")
    wait_until(page, "!document.querySelector('.plot') || document.querySelector('.js-plotly-plot') !== null")
    check_width(page, 400)
    page.evaluate(request.getfixturevalue("axe"))
    for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate("(rules) => axe.run(document, { resultTypes: ['violations'], ...rules })", rules)
        serious = [
            (scheme, fault["id"], fault["nodes"][0]["html"][:160], fault["nodes"][0]["failureSummary"][:300])
            for fault in found["violations"]
            if fault["impact"] in ("serious", "critical")
        ]
        assert serious == []
