"""Pages of `archwright train` and `design` in a real browser, opened from disk; `show` fails on any complaint."""

from collections.abc import Callable
from typing import Any

from archwright.reports.design import render_design_page
from archwright.reports.numbers import DASH
from archwright.reports.train import render_train_page
from tests.reports.test_design_page import document
from tests.reports.test_train_lines import ABLATED, GLUE, TRAINED

__all__ = ["document"]

DRAWN = "[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))"


def test_one_training(show: Callable[..., Any]) -> None:
    page = show(render_train_page(TRAINED))
    assert page.evaluate(DRAWN) and page.locator("#loss .scatterlayer .trace").count() == 1
    assert "accuracy 0.75" in page.locator("body").inner_text()


def test_all_of_glue(show: Callable[..., Any]) -> None:
    page = show(render_train_page(GLUE))
    rows = page.locator("#columns tbody tr").all_inner_texts()
    assert [row.split() for row in rows] == [["RTE", "51.2", DASH], ["MRPC", "70.0", "81.6"]]
    assert "CoLA" in page.locator("#averages").inner_text()


def test_a_line_per_architecture(show: Callable[..., Any]) -> None:
    page = show(render_train_page(ABLATED))
    assert page.evaluate(DRAWN)
    assert page.locator("#scores .scatterlayer .trace").count() == 3
    assert page.locator("#ranking .scatterlayer .trace").count() == 2


def test_a_design(show: Callable[..., Any], document: dict[str, Any]) -> None:
    page = show(render_design_page(document))
    assert page.evaluate(DRAWN) and page.locator("section").count() >= 6
