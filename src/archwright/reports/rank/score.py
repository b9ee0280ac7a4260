"""The scores of a few architectures (`archwright score`): proxies down, architectures across, and a small page."""

from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.panels import COLOURS, SYMBOLS
from archwright.reports.numbers import DASH, count, join_few, number, plural, shorten, significant
from archwright.reports.page import Interactive, Section, facts, render_page, section
from archwright.reports.rank.axes import Axis, score_axis
from archwright.reports.rank.page import PAIR
from archwright.reports.rank.tables import word_cell
from archwright.reports.tables import Cell, Column, ReportTable, table

Document = Mapping[str, Any]
ScoreRow = Mapping[str, Any]
SCORES = "Higher is better for every proxy. A heading sorts. A dash is a value that could not be computed."
FEW = 3
"""Architectures from which on two scores are worth a picture."""
MOST_CONFIGS = 12


def score_table(document: Document) -> ReportTable:
    """Counts and scores, a line for each, for `Console.print`; as many architectures across as there is room for.

    `document` has the schema "archwright/score/1".
    """
    rows: Sequence[ScoreRow] = document.get("rows") or ()
    names = [*field_names(rows, "counts"), *field_names(rows, "scores"), "seconds"]
    columns = [Column("", [shorten(name) for name in names], left=True)]
    columns += [
        Column(shorten(str(row.get("id")), 14), score_cells(row, rows), drop=place) for place, row in enumerate(rows)
    ]
    dim = dict.fromkeys(range(len(field_names(rows, "counts"))), "dim")
    captions = [f"Missing: {what}: {reason}" for what, reason in missing_reasons(rows)]
    return ReportTable(columns, score_title(document), captions, dim)


def field_names(rows: Sequence[ScoreRow], field: str) -> list[str]:
    """All names under a field, in the order of their first appearance."""
    return list(dict.fromkeys(str(name) for row in rows for name in row.get(field) or {}))


def score_cells(row: ScoreRow, rows: Sequence[ScoreRow]) -> list[Cell]:
    """Counts, scores and seconds of an architecture, with a cell for every name that any of the rows has."""
    counts = [number(row, "counts", name) for name in field_names(rows, "counts")]
    scores = [number(row, "scores", name) for name in field_names(rows, "scores")]
    seconds = number(row, "seconds")
    return [
        *(Cell(count(value), value) for value in counts),
        *(Cell(significant(value), value) for value in scores),
        Cell(significant(seconds, 2), seconds),
    ]


def score_title(document: Document) -> str:
    rows, variant = document.get("rows") or (), document.get("variant")
    where = f"{document.get('space') or DASH}{f', variant {variant}' if variant else ''}"
    names = plural(len(field_names(rows, "scores")), "proxy", "proxies")
    return f"{where}: {plural(len(rows), 'architecture', 'architectures')}, {names}"


def missing_reasons(rows: Sequence[ScoreRow]) -> list[tuple[str, str]]:
    """Which proxy of which architectures is missing and why, each reason once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for name, reason in (row.get("missing") or {}).items():
            reasons.setdefault((str(name), str(reason)), []).append(str(row.get("id")))
    return [(f"{name} of {join_few(ids)}", reason) for (name, reason), ids in reasons.items()]


def render_score_page(document: Document) -> str:
    """A page that opens from disk: the table of all scores, any two against each other, and the architectures."""
    rows: Sequence[ScoreRow] = document.get("rows") or ()
    gaps = sum(len(row.get("missing") or {}) for row in rows)
    missing = f"{plural(gaps, 'score is', 'scores are')} missing; the reasons stand below the table."
    everything = {"name": "architecture", "colour": COLOURS[0], "symbol": SYMBOLS[0], "members": list(range(len(rows)))}
    hover = [f"architecture {row.get('id')}" for row in rows]
    axes = score_axes(rows)
    return render_page(
        score_title(document),
        score_sections(document, axes),
        command="archwright score",
        lead="No architecture was scored." if not rows else missing if gaps else "No score is missing.",
        schema=str(document.get("schema", DASH)),
        data={"axes": axes, "points": {"hover": hover, "cells": [], "groups": [everything]}},
        explore=True,
    )


def score_axes(rows: Sequence[ScoreRow]) -> list[Axis]:
    """Scores and counts that any architecture has."""
    fields = {"scores": "proxies", "counts": "counts"}
    axes = [
        score_axis(name, group, [(row.get(field) or {}).get(name) for row in rows])
        for field, group in fields.items()
        for name in field_names(rows, field)
    ]
    return [axis for axis in axes if axis["known"]]


def score_sections(document: Document, axes: Sequence[Axis]) -> list[Section | None]:
    rows: Sequence[ScoreRow] = document.get("rows") or ()
    missing = missing_reasons(rows)
    gaps = [table(("what", "reason"), missing, title="Missing values", left=(0, 1))] if missing else []
    pair = Interactive("pair", {"x": 0, "y": 1})
    heading = "Score against score, rank against rank"
    configs = {f"Architecture {row.get('id')}": row.get("config") or {} for row in rows[:MOST_CONFIGS]}
    note = "" if len(rows) <= MOST_CONFIGS else f"The first {MOST_CONFIGS} of {len(rows)}."
    made = facts({**configs, "Environment": document.get("environment") or {}})
    return [
        section("table", "Scores", SCORES, all_scores_table(rows), *gaps),
        section("pair", heading, PAIR, pair, short="Two scores") if len(axes) > 1 and len(rows) >= FEW else None,
        section("made", "The architectures", note, made),
    ]


def all_scores_table(rows: Sequence[ScoreRow]) -> ReportTable:
    """An architecture a line, which the headings of a page sort."""
    heads = [*field_names(rows, "counts"), *field_names(rows, "scores"), "seconds"]
    cells = [score_cells(row, rows) for row in rows]
    columns = [Column("architecture", [word_cell(row.get("id")) for row in rows], left=True)]
    columns += [Column(head, [line[place] for line in cells]) for place, head in enumerate(heads)]
    return ReportTable(columns, "All scores", sortable=True)
