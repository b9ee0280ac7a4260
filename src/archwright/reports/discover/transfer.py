"""Formulas and published proxies on several benchmarks: the table of `discover --transfer`."""

from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.panels import COLOURS, Panel, axis_title, figure, group, plotly_text, scatter
from archwright.reports.numbers import DASH, decimal, number, shorten
from archwright.reports.page import Section, plot, section
from archwright.reports.tables import Column, ReportTable, table

MOST_PUBLISHED = 15
"""Published proxies on the page; all are in --json."""
NOTE = (
    "Each formula was found on one benchmark, by its whole search, and is judged on the others, whose rows took no "
    "part: Spearman, in brackets Kendall's tau-b. Where it was found its number (*) is cross-fitted. Dashes say what "
    "the networks there do not have."
)


def transfer_table(document: Mapping[str, Any]) -> ReportTable:
    """Found formulas on every benchmark, for `Console.print`."""
    rows = [row for row in document["transfer"] if row.get("found_on")]
    columns = [
        Column("formula", [shorten(str(row["formula"]), 50) for row in rows], left=True),
        Column("found on", [str(row["found_on"]) for row in rows], left=True),
    ]
    for name in rows[0]["on"]:
        entries = [row["on"][name] for row in rows]
        columns.append(Column(name, [DASH if entry.get("missing") else entry_text(entry) for entry in entries]))
    return ReportTable(
        columns, "Spearman (Kendall's tau-b) of each on all benchmarks; * cross-fitted, where it was found."
    )


def entry_text(entry: Mapping[str, Any]) -> str:
    """0.91 (0.74)*, or why there is none."""
    if entry.get("missing"):
        return f"{DASH} {entry['missing']}"
    rho, tau = (decimal(number(entry, key, "value"), 3) for key in ("held_out", "kendall_b"))
    return f"{rho} ({tau}){'*' if entry.get('cross_fitted') else ''}"


def transfer_section(document: Mapping[str, Any]) -> Section | None:
    rows: Sequence[Mapping[str, Any]] = document.get("transfer") or ()
    if not rows:
        return None
    names = list(rows[0]["on"])
    formulas = [row for row in rows if row.get("found_on")]
    published = [row for row in rows if row.get("proxy") and spearman(row, names[0]) is not None]
    published = sorted(published, key=lambda row: -(spearman(row, names[0]) or 0.0))[:MOST_PUBLISHED]
    tables = []
    for first, second, chosen in (("formula", "found_on", formulas), ("proxy", "origin", published)):
        cells = [[row[first], row[second], *map(entry_text, row["on"].values())] for row in chosen]
        if cells or first == "formula":
            tables.append(table((first, second.replace("_", " "), *names), cells, left=(0, 1)))
    traces = []
    for place, name in enumerate(names):
        known = [row for row in formulas if spearman(row, name) is not None]
        trace = scatter(
            [spearman(row, name) for row in known],
            [plotly_text(f"{row['formula']} [{row['found_on']}]") for row in known],
            marker={"color": COLOURS[place], "size": 9},
            hovertemplate="%{y}: %{x:.3f}<extra></extra>",
            **group(f"on {name}"),
        )
        traces.append(trace)
    panel = Panel("", traces, "Spearman", axis_title("", automargin=True))
    dots = plot(figure([panel], columns=1, height=140 + 26 * len(formulas)))
    return section("transfer", "Transfer between benchmarks", NOTE, dots, *tables, short="Transfer")


def spearman(row: Mapping[str, Any], benchmark: str) -> float | None:
    return number(row["on"][benchmark], "held_out", "value")
