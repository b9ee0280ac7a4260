"""Formulas and published proxies on several benchmarks: the table of `discover --transfer`."""

from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.parts import COLOURS, Figure, Panel, Trace, figure, group, plain_text, title
from archwright.reports.measures import DASH
from archwright.reports.panels import Section, plot, section, table
from archwright.reports.rank.rows import decimal
from archwright.reports.rank.terminal import Cells, Fitting, shortened

MOST_KNOWN = 15
"""Published proxies on the page; all are in --json."""
NOTE = (
    "Each formula was found on one benchmark, by its whole search, and is judged on the others, whose rows took no "
    "part: Spearman, in brackets Kendall's tau-b. Where it was found its number (*) is cross-fitted. Dashes say what "
    "the networks there do not have."
)


def transfer_table(document: Mapping[str, Any]) -> Fitting:
    """Found formulas on every benchmark, for `Console.print`."""
    rows = [row for row in document["transfer"] if row.get("found_on")]
    names = list(rows[0]["on"])
    columns = [
        Cells("formula", [shortened(str(row["formula"]), 50) for row in rows], left=True),
        Cells("found on", [str(row["found_on"]) for row in rows], left=True),
        *(Cells(name, [short(row["on"][name]) for row in rows]) for name in names),
    ]
    return Fitting(columns, "Spearman (Kendall's tau-b) of each on all benchmarks; * cross-fitted, where it was found.")


def short(entry: Mapping[str, Any]) -> str:
    return DASH if entry.get("missing") else cell(entry)


def transfer_section(document: Mapping[str, Any]) -> Section | None:
    rows: Sequence[Mapping[str, Any]] = document.get("transfer") or ()
    if not rows:
        return None
    names = list(rows[0]["on"])
    found = [row for row in rows if row.get("found_on")]
    known = best_known([row for row in rows if row.get("proxy")], names[0])
    blocks = [
        plot(figure_of(found, names)),
        table(("formula", "found on", *names), [cells(row) for row in found], left=(0, 1)),
    ]
    blocks += [table(("proxy", "origin", *names), [cells(row) for row in known], left=(0, 1))] if known else []
    return section("transfer", "Transfer between benchmarks", NOTE, *blocks, short="Transfer")


def best_known(rows: Sequence[Mapping[str, Any]], on: str) -> list[Mapping[str, Any]]:
    """Those with the highest Spearman on this benchmark."""
    there = [row for row in rows if value(row["on"][on]) is not None]
    return sorted(there, key=lambda row: -(value(row["on"][on]) or 0.0))[:MOST_KNOWN]


def value(entry: Mapping[str, Any], key: str = "held_out") -> float | None:
    found = (entry.get(key) or {}).get("value")
    return None if found is None else float(found)


def cells(row: Mapping[str, Any]) -> list[str]:
    head = (row["formula"], row["found_on"]) if row.get("found_on") else (row["proxy"], row["origin"])
    return [*head, *(cell(entry) for entry in row["on"].values())]


def cell(entry: Mapping[str, Any]) -> str:
    """0.91 (0.74)*, or why there is none."""
    if entry.get("missing"):
        return f"{DASH} {entry['missing']}"
    star = "*" if entry.get("cross_fitted") else ""
    return f"{decimal(value(entry), 3)} ({decimal(value(entry, 'kendall_b'), 3)}){star}"


def figure_of(found: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Figure:
    traces: list[Trace] = []
    for place, name in enumerate(names):
        there = [row for row in found if value(row["on"][name]) is not None]
        traces.append({
            "type": "scatter", "mode": "markers", "x": [value(row["on"][name]) for row in there],
            "y": [plain_text(f"{row['formula']} [{row['found_on']}]") for row in there],
            "marker": {"color": COLOURS[place], "size": 9}, "hovertemplate": "%{y}: %{x:.3f}<extra></extra>",
            **group(f"on {name}"),
        })  # fmt: skip
    side = {**title(""), "automargin": True}
    height = 140 + 26 * len(found)
    return figure([Panel("", traces, title("Spearman"), side)], columns=1, height=height)
