"""Comparison and protocol pages in a real browser, opened from disk."""

from collections.abc import Callable
from typing import Any

from archwright.compression.studies.protocol import compare_runs
from archwright.reports.compress.compare import render_compare_page
from archwright.reports.compress.page import render_compress_page
from archwright.reports.compress.protocol import render_protocol_page
from archwright.reports.figures.paper import FIGURES
from tests.reports.conftest import check_width, synthetic_studies, wait_until
from tests.reports.test_compare import as_perplexities
from tests.reports.test_report_browser import nulled

Show = Callable[..., Any]
FRONTS = "#fronts-0-plot"


def compare_page(compared: dict[str, Any]) -> str:
    return render_compare_page(compared, compare_runs([compared]))


def pick(page: Any, name: str, value: str) -> None:
    page.locator(f"input[name={name}][value='{value}']").check(force=True)


def points(page: Any, plot: str) -> int:
    return int(page.locator(f"{plot} .scatterlayer path.point").count())


def test_compare_shows_one_point_per_front_member(show: Show, compared: dict[str, Any]) -> None:
    page = show(compare_page(compared))
    members = sum(len(method["front"]) for method in compared["methods"].values())
    assert points(page, FRONTS) == members + 1  # and the original
    assert page.locator("h1").inner_text() == "all-MiniLM-L6-v2 on glue/SST-2: 7 methods"
    assert page.locator("#volumes tbody tr").count() == len(compared["methods"])
    assert page.locator("#volumes tbody td.bold").first.inner_text() == "weight-sharing"
    assert page.locator("#bins-0-plot .scatterlayer .trace").count() == len(compared["methods"])
    assert page.locator("#progress-0-plot .scatterlayer .trace").count() == len(compared["methods"])


def test_names_hide_and_show_methods(show: Show, compared: dict[str, Any]) -> None:
    page = show(compare_page(compared))
    before = points(page, FRONTS)
    page.locator("#fronts .names input").nth(1).uncheck(force=True)
    assert points(page, FRONTS) == before - len(compared["methods"]["standard"]["front"])
    pick(page, "fronts-0-1", "test")
    assert points(page, FRONTS) == before - len(compared["methods"]["standard"]["front"])
    page.locator("#fronts .names input").nth(1).check(force=True)
    assert points(page, FRONTS) == before


def test_axes_are_chosen_apart_and_hover_says_which_network(show: Show, compared: dict[str, Any]) -> None:
    page = show(compare_page(compared))
    titles = "['xaxis', 'yaxis'].map((key) => document.querySelector('#fronts-0-plot').layout[key].title.text)"
    assert page.evaluate(titles) == ["share of the non-embedding parameters", "validation error"]
    pick(page, "fronts-0-0", "latency")
    pick(page, "fronts-0-1", "test")
    assert page.evaluate(titles) == ["measured latency, median", "test error"]
    pick(page, "progress-0-0", "trials")
    assert page.evaluate("document.querySelector('#progress-0-plot').layout.xaxis.title.text") == "trials"

    member = compared["methods"]["weight-sharing"]["front"][-1]
    page.locator(FRONTS).scroll_into_view_if_needed()
    box = page.locator(f"{FRONTS} .trace").nth(1).locator("path.point").last.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator(f"{FRONTS} .hovertext").wait_for()
    assert f"weight-sharing, trial {member['trial']}" in page.locator(f"{FRONTS} .hovertext").first.text_content()


def test_studies_have_a_panel_in_both_pages(show: Show, compared: dict[str, Any], result: dict[str, Any]) -> None:
    studies = synthetic_studies()
    for html in (compare_page(compared | studies), render_compress_page(result | studies)):
        page = show(html)
        assert points(page, "#honesty-0-plot") == len(studies["honesty"]["pairs"])
        assert points(page, "#quantized-0-plot") == 2 * len(studies["quantized"]["points"])
        assert "0.70" in page.locator("#honesty table").inner_text()
        assert page.locator("#quantized tbody tr").count() == len(studies["quantized"]["points"])


def test_protocol_draws_every_figure_once(show: Show, protocol: dict[str, Any]) -> None:
    page = show(render_protocol_page(protocol))
    shown = [number for number in FIGURES if page.locator(f"#figure-{number} .plot .main-svg").count()]
    assert shown == [number for number in FIGURES if number != "10"]  # two tasks only: the same as Figure 9
    assert "1,000 bootstrap samples" in page.locator("#protocol").inner_text()
    assert page.locator("#numbers .table").count() == 5
    assert page.locator("#contents a").count() == page.locator("section").count()


def test_protocol_of_one_run_says_what_is_missing(show: Show, result: dict[str, Any]) -> None:
    page = show(render_protocol_page(compare_runs([result])))
    missing = page.locator("#missing").inner_text()
    assert "only seed 0" in missing and "Figure 5 (hypervolume of the search spaces) needs" in missing
    assert page.locator("#figure-12 .plot .main-svg").count()
    assert "nothing to compare" in page.locator("#numbers").inner_text()


def test_protocol_of_nothing_opens(show: Show, preview: dict[str, Any]) -> None:
    assert "needs" in show(render_protocol_page(compare_runs([]))).locator("#missing").inner_text()
    page = show(render_protocol_page(compare_runs([preview])))
    assert page.locator("#figure-2 .heatmaplayer .hm").count() == len(preview["spaces"])


def test_perplexities_are_never_percent(show: Show, result: dict[str, Any], compared: dict[str, Any]) -> None:
    page = show(render_compress_page(as_perplexities(result)))
    texts = page.locator("#numbers tbody tr").first.inner_text()
    assert f"{10 + 100 * result['original']['validation_error']:.1f}" in texts
    assert page.evaluate("document.getElementById('front-plot').layout.yaxis.type") == "log"
    assert page.locator("#view input[value=whole]").is_disabled()
    assert "error" not in page.locator("#chosen").inner_text().lower()
    page = show(compare_page(as_perplexities(compared)))
    assert page.evaluate(f"document.querySelector('{FRONTS}').layout.yaxis.type") == "log"
    assert "perplexity" in page.locator("#cards").inner_text()


def test_hostile_names_are_shown_as_text(show: Show, compared: dict[str, Any]) -> None:
    name = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    methods = {name: compared["methods"]["random"], "b": compared["methods"]["standard"]}
    hostile = compared | dict.fromkeys(("model", "task"), name) | {"methods": methods}
    page = show(compare_page(hostile))
    assert page.locator("#fronts .names label").first.inner_text() == name
    assert name in show(render_protocol_page(compare_runs([hostile]))).locator("h1").inner_text()


def test_every_number_may_be_missing(show: Show, compared: dict[str, Any]) -> None:
    nothing = nulled(compared | synthetic_studies())
    page = show(compare_page(nothing))
    body = page.locator("body").inner_text()
    assert "NaN" not in body and "null" not in body and "No method has a network" in body
    assert "NaN" not in show(render_protocol_page(compare_runs([nothing]))).locator("body").inner_text()


def test_narrow_windows_do_not_scroll_sideways(show: Show, compared: dict[str, Any], protocol: dict[str, Any]) -> None:
    for html in (compare_page(compared | {"model": "m" * 120} | synthetic_studies()), render_protocol_page(protocol)):
        page = show(html)
        for width in (768, 360):
            check_width(page, width)


def test_dark_and_light_differ(show: Show, compared: dict[str, Any]) -> None:
    page = show(compare_page(compared), color_scheme="dark")
    grid = f"document.querySelector('{FRONTS}').layout.xaxis.gridcolor"
    dark = page.evaluate(grid)
    page.emulate_media(color_scheme="light")
    wait_until(page, f"{grid} !== '{dark}'")
