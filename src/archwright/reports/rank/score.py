"""The scores of a few architectures (`archwright score`): proxies down, architectures across, and a small page."""

from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.measures import DASH
from archwright.reports.page import panels_page
from archwright.reports.panels import Section, facts, section, table
from archwright.reports.rank import notes
from archwright.reports.rank.axes import Axis, axis
from archwright.reports.rank.page import SCRIPTS, STYLES, plain
from archwright.reports.rank.rows import amount, known
from archwright.reports.rank.tables import sortable
from archwright.reports.rank.terminal import Cells, Fitting, few, shortened
from archwright.reports.words import count

Document = Mapping[str, Any]
Scored = Mapping[str, Any]
FEW = 3
"""Architectures from which on two scores are worth a picture."""


def score_table(document: Document) -> Fitting:
    """Counts and scores, a line for each, for `Console.print`; as many architectures across as there is room for.

    `document` has the schema "archwright/score/1".
    """
    rows: Sequence[Scored] = document.get("rows") or ()
    counts, names = keys(rows, "counts"), keys(rows, "scores")
    first = Cells("", [*map(shortened, counts), *map(shortened, names), "seconds"], left=True)
    across = [
        Cells(shortened(str(row.get("id")), 14), column(row, counts, names), drop=place)
        for place, row in enumerate(rows)
    ]
    return Fitting([first, *across], title(document), reasons(rows), frozenset(range(len(counts))))


def keys(rows: Sequence[Scored], field: str) -> list[str]:
    """All names under a field, in the order of their first appearance."""
    return list(dict.fromkeys(str(name) for row in rows for name in row.get(field) or {}))


def column(row: Scored, counts: Sequence[str], names: Sequence[str]) -> list[str]:
    sizes = [count(known(row.get("counts") or {}, name)) for name in counts]
    return [*sizes, *(digits(known(row.get("scores") or {}, name)) for name in names), digits(known(row, "seconds"), 2)]


def digits(value: float | None, number: int = 4) -> str:
    return DASH if value is None else f"{value:.{number}g}"


def title(document: Document) -> str:
    rows, variant = document.get("rows") or (), document.get("variant")
    where = f"{document.get('space') or DASH}{f', variant {variant}' if variant else ''}"
    names = amount(len(keys(rows, "scores")), "proxy", "proxies")
    return f"{where}: {amount(len(rows), 'architecture', 'architectures')}, {names}"


def reasons(rows: Sequence[Scored]) -> list[str]:
    """Why scores are missing, each reason once."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for name, reason in (row.get("missing") or {}).items():
            found.setdefault((str(name), str(reason)), []).append(str(row.get("id")))
    return [f"Missing: {name} of {few(ids)}: {reason}" for (name, reason), ids in found.items()]


def score_html(document: Document) -> str:
    """A page that opens from disk: the table of all scores, any two against each other, and the architectures."""
    rows: Sequence[Scored] = document.get("rows") or ()
    axes = score_axes(rows)
    missing = [line.removeprefix("Missing: ").partition(": ")[::2] for line in reasons(rows)]
    gaps = [table(("what", "reason"), missing, caption="Missing values", left=(0, 1))] if missing else []
    sections = [section("table", "Scores", notes.SCORES, scores_block(rows), *gaps), *pair(axes, rows), made(document)]
    head = {"eyebrow": "archwright score", "title": title(document), "lead": lead(rows), "cards": []}
    points = {"hover": [f"architecture {row.get('id')}" for row in rows], "cells": [], "groups": [everything(rows)]}
    foot = f"{document.get('schema', DASH)}. This file needs no network."
    view = {**head, "axes": axes, "points": points, "sections": sections, "footer": foot}
    return panels_page(view, title(document), styles=STYLES, scripts=SCRIPTS)


def lead(rows: Sequence[Scored]) -> str:
    gaps = sum(len(row.get("missing") or {}) for row in rows)
    if not rows:
        return "No architecture was scored."
    return (
        f"{amount(gaps, 'score is', 'scores are')} missing; the reasons stand below the table."
        if gaps
        else "No score is missing."
    )


def everything(rows: Sequence[Scored]) -> dict[str, Any]:
    return {"name": "architecture", "colour": "#1f8fb3", "symbol": "circle", "members": list(range(len(rows)))}


def score_axes(rows: Sequence[Scored]) -> list[Axis]:
    """Scores and counts that any architecture has."""
    fields = {"scores": "proxies", "counts": "counts"}
    found = [
        axis(name, group, [(row.get(field) or {}).get(name) for row in rows])
        for field, group in fields.items()
        for name in keys(rows, field)
    ]
    return [one for one in found if one["known"]]


def pair(axes: Sequence[Axis], rows: Sequence[Scored]) -> list[Section]:
    if len(axes) < 2 or len(rows) < FEW:
        return []
    block = {"kind": "pair", "x": 0, "y": 1}
    return [section("pair", "Score against score, rank against rank", notes.PAIR, block, short="Two scores")]


def scores_block(rows: Sequence[Scored]) -> dict[str, Any]:
    counts, names = keys(rows, "counts"), keys(rows, "scores")
    heads = [
        {"text": words, "left": place == 0} for place, words in enumerate(("architecture", *counts, *names, "seconds"))
    ]
    lines = [
        {
            "cells": [
                {"text": str(row.get("id")), "value": str(row.get("id"))},
                *(
                    {"text": words, "value": value}
                    for words, value in zip(column(row, counts, names), values(row, counts, names), strict=True)
                ),
            ]
        }
        for row in rows
    ]
    return sortable(heads, lines, "All scores")


def values(row: Scored, counts: Sequence[str], names: Sequence[str]) -> list[float | None]:
    sizes = [known(row.get("counts") or {}, name) for name in counts]
    return [*sizes, *(known(row.get("scores") or {}, name) for name in names), known(row, "seconds")]


def made(document: Document) -> Section:
    rows: Sequence[Scored] = document.get("rows") or ()
    shown = {f"Architecture {row.get('id')}": plain(row.get("config") or {}) for row in rows[:12]}
    note = "" if len(rows) <= 12 else f"The first 12 of {len(rows)}."
    return section(
        "made", "The architectures", note, facts({**shown, "Environment": plain(document.get("environment") or {})})
    )
