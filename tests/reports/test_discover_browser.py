"""The page of `archwright discover` in a real browser, opened from disk; `show` fails on any complaint of the page."""

from collections.abc import Callable
from typing import Any

from archwright.reports.discover.page import render_discover_page
from tests.reports.test_discover_page import document

__all__ = ["document"]


def test_the_whole_space_with_published_proxies_marked(show: Callable[..., Any], document: dict[str, Any]) -> None:
    names = {"snip": 0.4, "w_pca": -0.2, "parameters": 0.7}
    document["published"] = [
        {"proxy": name, "origin": "published", "fitness": fitness, "percentile": 50.0}
        for name, fitness in names.items()
    ]
    page = show(render_discover_page(document))
    assert page.evaluate("[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))")
    assert page.locator("#space .barlayer path").count() == len(document["histogram"]["counts"])
    assert page.locator("#space .scatterlayer path.point").count() == len(names)
    shown = page.locator("#space").inner_text()
    assert all(name in shown for name in names) and "50.0" in shown


def test_transfer_says_what_is_missing(show: Callable[..., Any], document: dict[str, Any]) -> None:
    page = show(render_discover_page(document))
    cells = page.locator("#transfer tbody tr").first.locator("td, th").all_inner_texts()
    assert cells[0] == "sum(S)" and cells[2] == "0.910 (0.700)*" and "no layer has S" in cells[3]


def test_a_document_without_numbers_is_a_page(show: Callable[..., Any]) -> None:
    page = show(render_discover_page({"schema": "archwright/discover/1", "benchmark": "nas-bert"}))
    assert "none is usable" in page.locator("body").inner_text()
