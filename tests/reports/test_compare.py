"""Several methods in the terminal and as text of a page; perplexities as numbers everywhere."""

import re
from typing import Any

import pytest

from archwright.compression.studies.protocol import compare_runs
from archwright.reports.compress.compare import compare_headline, compare_table, draw_fronts, render_compare_page
from archwright.reports.compress.page import render_compress_page
from archwright.reports.compress.summary import draw_front, front_table, headline
from archwright.reports.numbers import DASH, PERPLEXITY, SHARE, error_format
from tests.reports.pages import page_data, page_text, section_ids
from tests.reports.test_report_terminal import printed


def test_the_best_comes_first(compared: dict[str, Any]) -> None:
    shown = printed(compare_table(compared), 140)
    volumes = {name: method["hypervolume"] for name, method in compared["methods"].items()}
    order = sorted(volumes, key=lambda name: -volumes[name])
    rows = [line.split()[0] for line in shown.splitlines() if line.split() and line.split()[0] in volumes]
    assert rows[-len(order) :] == order
    assert compare_headline(compared).startswith(f"{order[0]} has the largest hypervolume ({volumes[order[0]]:.3f})")


def test_headlines_of_one_method_and_of_none(compared: dict[str, Any]) -> None:
    one = {"random": compared["methods"]["random"]}
    assert "is the only method" in compare_headline(compared | {"methods": one})
    assert compare_headline(compared | {"methods": {}}) == "No method has a front yet."
    assert "Nothing to plot" in draw_fronts(compared | {"methods": {}})


def test_half_size_is_chosen_on_validation_data(compared: dict[str, Any]) -> None:
    method = compared["methods"]["standard"]
    small = [member for member in method["front"] if member["nonembedding_share"] <= 0.5]
    best = min(small, key=lambda member: float(member["validation_error"]))
    row = next(line for line in printed(compare_table(compared), 140).splitlines() if line.startswith("standard "))
    assert f"{best['validation_error'] * 100:.1f} %" in row and f"{best['test_error'] * 100:.1f} %" in row


@pytest.mark.parametrize("width", [40, 72, 120])
def test_plot_fits_and_names_every_method(compared: dict[str, Any], width: int) -> None:
    shown = draw_fronts(compared, width)
    assert max(map(len, shown.splitlines())) <= width
    assert all(name in shown for name in compared["methods"])
    assert {"●", "■", "◇"} <= set(shown)


def test_a_method_without_anything_has_a_row_of_dashes(compared: dict[str, Any]) -> None:
    compared["methods"]["empty"] = {"front": [], "trials": [], "hypervolume": None, "note": "no network fits"}
    shown = printed(compare_table(compared), 140)
    assert DASH in next(line for line in shown.splitlines() if line.startswith("empty"))
    assert "no network fits" in render_compare_page(compared, compare_runs([compared]))


def test_page_holds_everything_and_loads_nothing(compared: dict[str, Any]) -> None:
    page = render_compare_page(compared, compare_runs([compared]))
    ours = page[: page.index("plotly.js v")]
    assert not re.search(r"<(script|img|iframe)[^>]+src=|<link[^>]+href=\"(?!data:)|@import|url\(", ours)
    assert "{{ " not in ours
    assert section_ids(page) == ["fronts", "volumes", "bins", "progress", "made"]
    assert len(page_data(page)["blocks"]["fronts-0"]["figures"]) == 8


def test_without_protocol_or_test_errors_a_sentence_stands_in(compared: dict[str, Any]) -> None:
    assert "There are no test errors, so no scores within sizes." in page_text(render_compare_page(compared))
    for method in compared["methods"].values():
        for member in method["front"]:
            member["test_error"] = None
    page = render_compare_page(compared, compare_runs([compared]))
    assert "There are no test errors" in page_text(page)
    assert [words for words, _ in page_data(page)["blocks"]["fronts-0"]["figures"]][1] == ["parameters", "validation"]


def test_every_measure_shows_losses_and_missing_numbers() -> None:
    for measure in (SHARE, PERPLEXITY):
        assert measure.show(None, 1) == DASH and measure.loss_words(None) == DASH
        assert measure.lost(0.5, 0.5) == 0 and measure.lost(0.6, 0.5) > 0


@pytest.mark.parametrize(
    ("value", "shown"), [(23.456, "23.5"), (5.1234, "5.12"), (123.4, "123"), (45678.9, "45,679"), (float("inf"), DASH)]
)
def test_perplexities_have_three_digits(value: float, shown: str) -> None:
    assert PERPLEXITY.show(value, 2) == shown


def as_perplexities(result: dict[str, Any]) -> dict[str, Any]:
    """The same result of a language model: errors of 0.1 become perplexities of 20."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: 10 + 100 * item if key.endswith("_error") and isinstance(item, float) else turned(item)
                for key, item in value.items()
            }
        return [turned(item) for item in value] if isinstance(value, list) else value

    return dict(turned(result)) | {"metric": "perplexity", "task": "lm"}


def test_perplexities_are_numbers_in_tables_plots_and_words(result: dict[str, Any], compared: dict[str, Any]) -> None:
    assert error_format(as_perplexities(result)) is PERPLEXITY
    for words in (headline(as_perplexities(result)), draw_front(as_perplexities(result))):
        assert "perplexity" in words and "error" not in words
    table = printed(front_table(as_perplexities(result)), 130)
    assert f"{10 + 100 * result['original']['test_error']:.1f}" in table
    small = [m for m in compared["methods"]["random"]["front"] if m["nonembedding_share"] <= 0.5]
    best = min(float(member["validation_error"]) for member in small)
    assert f"{10 + 100 * best:.1f} " in printed(compare_table(as_perplexities(compared)), 140)
    assert draw_fronts(as_perplexities(compared)).startswith("  perplexity")
    fronts = page_data(render_compare_page(as_perplexities(compared)))["blocks"]["fronts-0"]
    assert fronts["figures"][0][1]["layout"]["yaxis"]["type"] == "log"
    assert page_data(render_compress_page(as_perplexities(result)))["error"]["key"] == PERPLEXITY.key


def test_a_loss_of_perplexity_is_relative(result: dict[str, Any]) -> None:
    front = [{"trial": 1, "nonembedding_share": 0.4, "validation_error": 21.0, "test_error": 20.6}]
    document = result | {"metric": "perplexity", "front": front, "original": {"test_error": 20.0}}
    assert "stays within 5\u00a0% of the original: it loses 3.0 %" in headline(document)
    front[0]["test_error"] = 30.0
    assert "loses more than 5" in headline(document) and "loses 50.0 %" in headline(document)
