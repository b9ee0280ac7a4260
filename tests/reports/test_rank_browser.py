"""The page of a ranking in a real browser, opened from disk; `show` fails on any console message or request."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from archwright.reports.numbers import DASH
from archwright.reports.rank.page import render_rank_page
from archwright.reports.rank.score import render_score_page
from tests.reports.conftest import check_width, wait_until, watched
from tests.reports.rank_documents import rank_document, score_document
from tests.reports.test_report_browser import nulled

Show = Callable[..., Any]
_RANKED = rank_document()
SCATTER, CELLS, SIDES, PAIR, BOXES = (
    f"#{name}-0-plot" for name in ("scatter", "cells", "normalised", "pair", "ablation")
)


@pytest.fixture
def ranking() -> dict[str, Any]:
    return copy.deepcopy(_RANKED)


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page of the whole ranking, opened once; a test finds it as others left it."""
    with watched(browser, tmp_path_factory.mktemp("rank")) as open_page:
        yield open_page(render_rank_page(_RANKED))


def axis(page: Any, plot: str, name: str = "xaxis") -> str:
    return str(page.evaluate(f"document.querySelector('{plot}').layout.{name}.title.text"))


def points(page: Any, plot: str) -> int:
    return int(page.locator(f"{plot} .scatterlayer path.point").count())


def choose(page: Any, section: str, label: str, words: str) -> None:
    page.locator(f"#{section}").get_by_label(label, exact=True).select_option(label=words)


def test_all_plots_are_drawn(opened: Any) -> None:
    page = opened
    assert page.locator(".plot .main-svg").count() > 0
    assert page.evaluate("[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))")
    assert page.locator("#contents a").count() == page.locator("section").count() == 15
    assert page.locator("#bars-0-plot .barlayer .point").count() == 45


def test_the_menu_changes_the_scatter_plot(opened: Any) -> None:
    page = opened
    assert axis(page, SCATTER) == "w_pca" and points(page, SCATTER) == 300
    choose(page, "scatter", "Proxy", "attention_confidence")
    assert axis(page, SCATTER) == "attention_confidence" and points(page, SCATTER) == 273
    says = page.locator("#scatter .says").inner_text()
    assert "273 architectures" in says and page.locator(SCATTER).get_attribute("aria-label") == says
    page.locator("#scatter .thumbs button").nth(2).click()
    assert axis(page, SCATTER) == page.locator("#scatter .thumbs button").nth(2).get_attribute("title")
    page.locator("#scatter .names input").first.uncheck(force=True)
    assert 0 < points(page, SCATTER) < 273


def test_correlations_drawn_agree_with_those_measured(opened: Any, ranking: dict[str, Any]) -> None:
    page = opened
    for row in ranking["rows"]:
        shown = page.locator(f"#scatter .thumbs button[title={row['proxy']}] span").nth(1).inner_text()
        assert float(shown.split()[-1].replace("\u2212", "-")) == pytest.approx(row["spearman"], abs=0.0051)
    cells = page.evaluate(f"document.querySelector('{CELLS}').layout.annotations.map((note) => note.text)")
    values = [float(text.split(",")[0].split()[-1].replace("\u2212", "-")) for text in cells]
    within = next(row["within_cells"] for row in ranking["rows"] if row["proxy"] == "w_pca")
    assert sum(values) / len(values) == pytest.approx(within, abs=0.0051) and len(values) == 4


def test_two_menus_choose_both_axes(opened: Any, ranking: dict[str, Any]) -> None:
    page = opened
    choose(page, "pair", "Across", "snip")
    choose(page, "pair", "Upwards", "parameters")
    assert (axis(page, PAIR), axis(page, PAIR, "yaxis")) == ("snip", "parameters")
    assert (axis(page, PAIR, "xaxis2"), axis(page, PAIR, "yaxis2")) == ("rank of snip", "rank of parameters")
    expected = next(row["correlation_with_parameters"] for row in ranking["rows"] if row["proxy"] == "snip")
    assert f"Spearman {expected:.2f} over 300" in page.locator("#pair .says").inner_text()


def test_raw_and_normalised_stand_side_by_side(opened: Any) -> None:
    page = opened
    choose(page, "normalised", "Proxy", "synaptic_diversity")
    assert (axis(page, SIDES), axis(page, SIDES, "xaxis2")) == ("synaptic_diversity", "synaptic_diversity_normalised")


def test_ablations_and_bars_follow_their_choosers(opened: Any) -> None:
    page = opened
    assert page.locator(f"{BOXES} .boxlayer path.box").count() == 20
    choose(page, "ablation", "Proxy", "w_pca")
    assert page.locator(f"{BOXES} .boxlayer path.box").count() == 10
    page.locator("input[name=bars-0-0][value='within cells']").check(force=True)
    assert axis(page, "#bars-0-plot") == "within cells"


def test_headings_sort_and_the_filter_hides(opened: Any, ranking: dict[str, Any]) -> None:
    page = opened
    first = page.locator("#table .sorted tbody tr:first-child td:first-child")
    smallest, *_, largest = sorted(ranking["rows"], key=lambda row: float(row["correlation_with_parameters"]))
    heading = page.get_by_role("button", name="With parameters")
    heading.click()
    assert first.inner_text() == largest["proxy"]
    heading.click()
    assert first.inner_text() == smallest["proxy"]
    assert page.locator("#table th[aria-sort=ascending]").inner_text() == "With parameters"
    page.get_by_role("button", name="Within cells").click()
    page.get_by_role("button", name="Within cells").click()
    last = page.locator("#table .sorted tbody tr:last-child td:first-child").inner_text()
    assert last in ("depth", "depth_width")  # constant within cells: missing stays last, however sorted
    page.get_by_label("Filter: All proxies with all numbers").fill("W_PCA")
    assert page.locator("#table .sorted tbody tr:visible").count() == 2


def test_a_plot_is_saved_as_png(opened: Any, tmp_path: Path) -> None:
    page = opened
    with page.expect_download() as waiting:
        page.locator("#eta .save").click()
    waiting.value.save_as(tmp_path / "eta.png")
    assert (tmp_path / "eta.png").read_bytes().startswith(
        b"\x89PNG"
    ) and waiting.value.suggested_filename == "eta-0-plot.png"


def test_many_depths_share_a_scale_of_colours(show: Show, ranking: dict[str, Any]) -> None:
    for place, one in enumerate(ranking["architectures"]):
        one |= {"depth": 2 + place % 15, "cell": None}
    page = show(render_rank_page(ranking))
    assert page.locator(f"{SCATTER} .colorbar").count() == 1 and points(page, SCATTER) == 300
    assert page.locator("#cells").count() == 0


def test_hostile_names_are_shown_as_text(show: Show, ranking: dict[str, Any]) -> None:
    name = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    best = next(row for row in ranking["rows"] if row["proxy"] == "w_pca")
    best |= {"proxy": name, "verdict": name, "missing": {"count": 1, "reason": name}}
    for one in ranking["architectures"]:
        one |= {"id": name, "cell": f"{one['cell']}<b>"}
        one["scores"][name] = one["scores"].pop("w_pca")
    page = show(render_rank_page(ranking | {"benchmark": name, "target": name, "notes": [name]}))
    assert page.locator("h1").inner_text().startswith(name)
    assert page.locator("#scatter select option:checked").inner_text() == name
    assert page.locator(f"{SCATTER} .xtitle").text_content() == name
    assert page.locator("img").count() == 0
    document = score_document() | {"space": name}
    document["rows"][0]["id"] = name
    assert name in show(render_score_page(document)).locator("#table").inner_text()


def test_every_number_may_be_missing(show: Show, ranking: dict[str, Any]) -> None:
    for document in (nulled(ranking), {"benchmark": "nas-bert", "rows": []}):
        body = show(render_rank_page(document)).locator("body").inner_text()
        assert not {"NaN", "null", "undefined"} & set(body.split())
    nothing = nulled(score_document())
    assert "NaN" not in show(render_score_page(nothing)).locator("body").inner_text()


def test_half_of_the_scores_may_be_missing(show: Show, ranking: dict[str, Any]) -> None:
    for place, one in enumerate(ranking["architectures"]):
        one["scores"] = {name: None if place > 1 else value for name, value in one["scores"].items()}
    page = show(render_rank_page(ranking))
    assert points(page, SCATTER) == 2 and DASH in page.locator("#scatter .thumbs").inner_text()


def test_windows_do_not_scroll_sideways(show: Show, ranking: dict[str, Any]) -> None:
    ranking["benchmark"] = "m" * 120
    for html in (render_rank_page(ranking), render_score_page(score_document())):
        page = show(html)
        for width in (1280, 390):
            check_width(page, width)


def test_dark_and_light_differ(show: Show, ranking: dict[str, Any]) -> None:
    page = show(render_rank_page(ranking), color_scheme="dark")
    grid = f"document.querySelector('{SCATTER}').layout.xaxis.gridcolor"
    dark = page.evaluate(grid)
    page.emulate_media(color_scheme="light")
    wait_until(page, f"{grid} !== '{dark}'")


def test_scores_against_each_other(show: Show) -> None:
    page = show(render_score_page(score_document(8)))
    assert points(page, PAIR) == 2 * 7  # one score is missing
    choose(page, "pair", "Across", "flops")
    assert axis(page, PAIR) == "flops"
    page.get_by_role("button", name="v_pca").click()
    assert page.locator("#table .sorted tbody tr:first-child td:first-child").inner_text() == "7"
