"""The page as text: everything in one file, nothing a name can break."""

import json
import math
import re
from typing import Any

import pytest

from archwright.reports.compress.page import render_compress_page
from archwright.reports.compress.preview import render_preview_page
from archwright.reports.compress.summary import half_size_member, headline, member_commands
from archwright.reports.numbers import DASH, count
from archwright.reports.page import embed
from tests.reports.pages import page_data

HOSTILE = '<script>alert(1)</script> {{ data }} </title> "quoted" \u2028 \udc80 [bold]'


def test_page_holds_everything_and_loads_nothing(result: dict[str, Any]) -> None:
    page = render_compress_page(result)
    ours = page[: page.index("plotly.js v")]
    assert 4_000_000 < len(page) < 6_000_000
    assert not re.search(r"<(script|img|iframe)[^>]+src=|<link[^>]+href=\"(?!data:)|@import|url\(", ours)
    assert "{{ " not in ours
    assert page_data(page)["result"]["front"] == result["front"]


def test_preview_is_small_and_complete(preview: dict[str, Any]) -> None:
    page = render_preview_page(preview)
    assert len(page) < 200_000
    assert "{{ " not in page
    assert page_data(page)["preview"] == preview


def test_hostile_names_stay_text(result: dict[str, Any], preview: dict[str, Any]) -> None:
    for page in (
        render_compress_page(result | dict.fromkeys(("model", "task", "run"), HOSTILE)),
        render_preview_page(preview | {"model": HOSTILE}),
    ):
        assert "<script>alert" not in page
        assert page[: page.index("<style>")].count("</title>") == 1
        page.encode("utf-8")
        assert HOSTILE in json.dumps(page_data(page), ensure_ascii=False).replace('\\"', '"')


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_json_does_not_know_become_null(value: float) -> None:
    assert json.loads(embed({"a": [value, 1.5], "b": (value,)})) == {"a": [None, 1.5], "b": [None]}


def test_headline_speaks_of_the_best_at_half_size(result: dict[str, Any]) -> None:
    member = half_size_member(result)
    small = [entry for entry in result["front"] if entry["nonembedding_share"] <= 0.52]
    assert member is not None
    assert member["validation_error"] == min(entry["validation_error"] for entry in small)
    result["original"]["test_error"] = member["test_error"] - 0.01
    assert "stays within 2 points" in headline(result)
    result["original"]["test_error"] = member["test_error"] + 0.01
    assert "no worse than the original" in headline(result)


def test_three_of_six_layers_are_about_half(result: dict[str, Any]) -> None:
    for entry, share in zip(result["front"], [0.507, *[0.53] * len(result["front"])], strict=False):
        entry["nonembedding_share"] = share
    assert half_size_member(result) == result["front"][0]


def test_an_original_that_knows_nothing_is_not_praised(result: dict[str, Any]) -> None:
    result["original"]["test_error"] = 0.5
    result["constant"] = {"answer": "good", "validation_error": 0.5, "test_error": 0.48}
    words = headline(result).replace("\u00a0", " ")
    assert words.startswith("The original does not beat always answering 'good' (test error 50.0 %, 48.0 %")
    result["constant"]["test_error"] = 0.52
    assert "does not beat" not in headline(result)


def test_headline_says_when_nothing_is_near(result: dict[str, Any]) -> None:
    result["original"]["test_error"] = 0.01
    assert "The pick of half the size or less loses more than 2 points" in headline(result)


def test_headline_without_test_set_uses_validation(result: dict[str, Any]) -> None:
    result["original"]["test_error"] = None
    assert "validation error" in headline(result)


def test_headline_of_empty_and_of_large_fronts(result: dict[str, Any]) -> None:
    assert "no sub-network" in headline(result | {"front": []})
    large = [member for member in result["front"] if member["nonembedding_share"] > 0.52]
    assert "No sub-network on the front has about half" in headline(result | {"front": large})


def test_commands_are_quoted_and_pick_the_member(result: dict[str, Any]) -> None:
    member = result["front"][3]
    lines = member_commands(result | {"run": "my run; rm -rf"}, member)
    assert lines["export"] == f"archwright export 'my run; rm -rf' --trial {member['trial']} --to compact"
    budget = float(lines["select"].rsplit(" ", 1)[1].rstrip("%")) / 100
    assert member["nonembedding_share"] <= budget < member["nonembedding_share"] + 1e-4 + 1e-12


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, DASH),
        (0, "0"),
        (999, "999"),
        (999_700, "1.00 M"),
        (22_700_000, "22.7 M"),
        (681e6, "681 M"),
        (2.5e12, "2.50 T"),
    ],
)
def test_counts_have_three_digits(value: float | None, shown: str) -> None:
    assert count(value).replace("\u00a0", " ") == shown
