"""Tables and plots in the terminal."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from archwright.reports.compress.page import render_compress_page
from archwright.reports.compress.preview import preview_text
from archwright.reports.compress.summary import draw_front, front_table
from archwright.reports.numbers import DASH


def printed(renderable: Any, width: int = 110) -> str:
    console = Console(file=StringIO(), width=width, color_system=None)
    console.print(renderable)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().replace("\u00a0", " ")


def test_table_has_a_row_per_member_and_the_original(result: dict[str, Any]) -> None:
    table = front_table(result)
    assert len(table.rows) == len(result["front"]) + 1
    shown = printed(table)
    assert "original" in shown and "22.7 M" in shown and "✓" in shown


def test_table_shows_dashes_and_brackets_as_they_are(result: dict[str, Any]) -> None:
    for member in result["front"]:
        member.update(test_error=None, latency_ms=None, int8_bytes=None)
    result["front"][0]["trial"] = "[red]7"
    shown = printed(front_table(result))
    assert DASH in shown and "[red]7" in shown


def test_the_time_of_a_written_token_is_shown_where_it_was_measured(result: dict[str, Any]) -> None:
    assert "per token" not in printed(front_table(result))
    assert "It writes a token" not in render_compress_page(result)
    for network in (result["original"], *result["front"]):
        half = 20.0 if network is result["original"] else 7.25
        network["generation_ms"] = {"median": half, "low": half - 1, "high": half + 1}
    shown = printed(front_table(result), 130)
    assert "per token" in shown and "7.25 ms" in shown and "20.0 ms" in shown
    assert "It writes a token" in render_compress_page(result)


@pytest.mark.parametrize("width", [10, 40, 72, 120])
def test_plot_fits_its_width(result: dict[str, Any], width: int) -> None:
    lines = draw_front(result, width).splitlines()
    assert max(map(len, lines)) <= max(width, 29)
    assert {"●", "◆", "·", "┤"} <= set("".join(lines))


def test_plot_places_points_where_they_belong(result: dict[str, Any]) -> None:
    corners = [
        {"nonembedding_share": 0.0, "validation_error": 0.5},
        {"nonembedding_share": 0.5, "validation_error": 0.1},
    ]
    networks = {"front": corners, "trials": [], "original": {"validation_error": 0.1}, "supernet": None}
    lines = [line[9:] for line in draw_front(result | networks, 72).splitlines() if "┤" in line]
    (top,) = [row for row, line in enumerate(lines) if line.startswith("●")]
    (low,) = [row for row, line in enumerate(lines) if "◆" in line]
    assert top < 2 and low > 11
    assert abs(lines[low].index("●") - 31) <= 1 and lines[low].index("◆") == 62


def test_plot_of_nothing_says_so(result: dict[str, Any]) -> None:
    assert "Nothing to plot" in draw_front(result | {"front": [], "trials": [], "original": {}, "supernet": {}})


def test_preview_names_every_space(preview: dict[str, Any]) -> None:
    shown = printed(preview_text(preview))
    assert all(name in shown for name in preview["spaces"])
    assert "53.1 % of them embeddings" in shown and "█" in shown


def test_preview_without_samples_shows_a_dash(preview: dict[str, Any]) -> None:
    preview["spaces"]["small"].update(shares=[], size_log10=None)
    assert "small" in printed(preview_text(preview))


def test_latency_says_its_length_and_runtime(result: dict[str, Any]) -> None:
    result["latency"] |= {"length": 24, "threads": 1, "runtime": "onnxruntime"}
    assert "(24 tokens, onnxruntime, 1 thread)" in printed(front_table(result))
    page = render_compress_page(result)
    assert "(24 tokens, onnxruntime, 1 thread)" in page and '"latency_setup":"24 tokens, onnxruntime, 1 thread"' in page
    del result["latency"]["runtime"]  # as earlier versions wrote it
    assert "(24 tokens, torch, 1 thread)" in printed(front_table(result))
    assert "latency:" not in printed(front_table({**result, "latency": None}))


def test_the_headline_gives_all_parameters_too(result: dict[str, Any]) -> None:
    shown = printed(front_table(result), 400).replace("\u00a0", " ")
    assert "of the non-embedding parameters (" in shown and " % of all, " in shown and " of 22.7 M)" in shown
