"""The page and the table of `archwright discover`: sections that have their data, numbers that may be missing."""

from typing import Any

import pytest
from rich.console import Console

from archwright.reports.discover.page import discover_table, render_discover_page, transfer_table
from archwright.reports.numbers import DASH, estimate

HOSTILE = "</script><img src=x onerror=alert(1)>"
NOTHING = {"value": None, "low": None, "high": None}


def entry(formula: str, size: int) -> dict[str, Any]:
    held = {"value": 0.9, "low": 0.8, "high": 0.95}
    return {
        "formula": formula, "size": size, "fitness": 0.93, "train": {"spearman": 0.93}, "held_out": held,
        "within_cells": NOTHING, "kendall_b": {"value": 0.7, "low": None, "high": None}, "verdict": "noise",
    }  # fmt: skip


def transfer() -> list[dict[str, Any]]:
    held = {"held_out": {"value": 0.91, "low": 0.8, "high": 0.95}, "kendall_b": {"value": 0.7}, "n": 30}
    lacking = {"missing": "no layer has S"}
    return [
        {"found_on": "nas-bert", "formula": "sum(S)", "size": 1,
         "on": {"nas-bert": {**held, "cross_fitted": True}, "nas-bench-nlp": lacking}},
        {"proxy": "snip", "origin": "published", "on": {"nas-bert": held, "nas-bench-nlp": held}},
    ]  # fmt: skip


@pytest.fixture
def document() -> dict[str, Any]:
    run = {
        "winning_rate": 0.1, "scored": 9, "rejected": 2, "stopped": 1, "invalid": 0, "best": [], "copies": 0,
        "looks": 90, "seconds": 0.5, "evaluations": [1, 2, 3],
    }  # fmt: skip
    return {
        "schema": "archwright/discover/1", "benchmark": "nas-bert", "formulas_total": 26460,
        "formulas_canonical": 13546, "formulas_valid": 9000, "best": [entry("sum(A * S)", 3), entry("sum(A)", 1)],
        "histogram": {"edges": [-1, 0, 1], "counts": [3, 5], "of": "spearman"},
        "published": [{"proxy": HOSTILE, "origin": "published", "fitness": 0.4, "percentile": 61.0}],
        "evolution": {"random search": [{**run, "curve": [None, 0.1, 0.2]}, {**run, "curve": [0.0, 0.1, 0.1]}]},
        "transfer": transfer(),
        "front": [{"formula": "sum(A)", "size": 1, "spearman": 0.9, "within_cells": 0.1}],
    }  # fmt: skip


SECTIONS = {
    "histogram": "The whole space",
    "evolution": "What the searches took",
    "front": "Pareto front",
    "transfer": "no layer has S",
}


@pytest.mark.parametrize(("key", "words"), SECTIONS.items())
def test_a_section_is_there_when_its_data_is(document: dict[str, Any], key: str, words: str) -> None:
    assert words in render_discover_page(document)
    assert words not in render_discover_page({**document, key: None})


def test_names_stay_text(document: dict[str, Any]) -> None:
    assert HOSTILE not in render_discover_page(document)


def test_numbers_with_their_intervals() -> None:
    assert estimate({"value": 0.9, "low": 0.8, "high": 0.95}) == "0.900 (0.80 to 0.95)"
    assert estimate({"value": 0.7, "low": None, "high": None}) == "0.700"
    assert estimate(NOTHING) == estimate(None) == DASH


def test_the_terminal_has_every_formula_with_its_held_out_number(document: dict[str, Any]) -> None:
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(discover_table(document))
    shown = console.export_text()
    assert "13,546 different formulas of 26,460" in shown and "sum(A * S)" in shown and "0.900 (0.80 to 0.95)" in shown


def test_the_terminal_has_what_is_found_on_every_benchmark(document: dict[str, Any]) -> None:
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(transfer_table(document))
    (row,) = [line for line in console.export_text().splitlines() if line.startswith("sum(S)")]
    assert row.split() == ["sum(S)", "nas-bert", "0.910", "(0.700)*", DASH]


def test_nothing_found_is_said() -> None:
    assert "none is usable" in render_discover_page({"schema": "archwright/discover/1"})
