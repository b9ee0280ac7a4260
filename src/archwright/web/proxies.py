"""Proxies over all benchmarks that were ranked: one leaderboard with intervals, and found formulas as mathematics."""

from collections.abc import Mapping
from typing import Any

from archwright.reports.discover.formula_tree import formula_svg
from archwright.reports.discover.page import FORMULAS_NOTE, formula_cell
from archwright.reports.figures.panels import Panel, assign_styles, axis_title, figure, group, marker, scatter
from archwright.reports.numbers import DASH, decimal, estimate, interval, number
from archwright.reports.page import Picture, Section, plot, section
from archwright.reports.rank.rows import sort_rows
from archwright.reports.tables import Cell, Column, ReportTable

Document = Mapping[str, Any]
LEADERBOARD = (
    "Spearman's correlation with the trained result on every benchmark, with its 95 % interval over architectures, and "
    "within cells of equal depth and width where it was measured. Sorted by the mean of those that were measured."
)
MOST_DRAWN = 25
"""Proxies in the picture; the table has all."""
MOST_TREES = 6


def proxy_sections(documents: Mapping[str, Document]) -> list[Section | None]:
    ranks = {name: each for name, each in documents.items() if "/rank/" in each["schema"]}
    found = {name: each for name, each in documents.items() if "/discover/" in each["schema"]}
    return [leaderboard_section(ranks) if ranks else None, formulas_section(found) if found else None]


def benchmark_names(documents: Mapping[str, Document]) -> dict[str, str]:
    """A short name for each document: its benchmark, with the file where several have the same."""
    names = {file: str(each.get("benchmark") or file) for file, each in documents.items()}
    several = {name for name in names.values() if list(names.values()).count(name) > 1}
    return {file: f"{name} ({file})" if name in several else name for file, name in names.items()}


def document_titles(documents: Mapping[str, Document]) -> dict[str, str]:
    """What a document is called where it is linked to: rank nas-bert, with the file where several would be the same."""
    words = {
        file: f"{each['schema'].split('/')[1]} {each.get('benchmark') or file}" for file, each in documents.items()
    }
    several = {name for name in words.values() if list(words.values()).count(name) > 1}
    return {file: f"{name} ({file})" if name in several else name for file, name in words.items()}


def leaderboard_section(ranks: Mapping[str, Document]) -> Section:
    names = benchmark_names(ranks)
    rows = {names[file]: {str(row["proxy"]): row for row in sort_rows(document)} for file, document in ranks.items()}
    proxies = sorted(
        {proxy for own in rows.values() for proxy in own}, key=lambda proxy: (-mean_of(rows, proxy), proxy)
    )
    columns = [Column("proxy", [Cell(proxy, words=True) for proxy in proxies], left=True)]
    columns.append(Column("mean", [cell(mean_of(rows, proxy)) for proxy in proxies]))
    for benchmark, own in rows.items():
        columns.append(Column(benchmark, [spearman_cell(own.get(proxy)) for proxy in proxies]))
        columns.append(Column(f"{benchmark}, within cells", [cells_cell(own.get(proxy)) for proxy in proxies]))
    board = ReportTable(columns, "Leaderboard", sortable=True)
    styles, traces = assign_styles(rows), []
    shown = proxies[:MOST_DRAWN][::-1]
    for benchmark, own in rows.items():
        here = [proxy for proxy in shown if number(own.get(proxy) or {}, "spearman") is not None]
        values = [number(own[proxy], "spearman") or 0.0 for proxy in here]
        low = [value - (number(own[p], "spearman_low") or value) for value, p in zip(values, here, strict=True)]
        high = [(number(own[p], "spearman_high") or value) - value for value, p in zip(values, here, strict=True)]
        spread = {"type": "data", "symmetric": False, "array": high, "arrayminus": low, "thickness": 1.2, "width": 3}
        look: dict[str, Any] = {
            "marker": marker(styles[benchmark], 8),
            "error_x": {**spread, "color": styles[benchmark].colour},
        }
        hover = {"hovertemplate": "%{y}: %{x:.3f}<extra>%{fullData.name}</extra>"}
        traces.append(scatter(values, here, **look, **hover, **group(benchmark)))
    panel = Panel(
        "",
        traces,
        "Spearman, higher is better",
        axis_title("", automargin=True, categoryorder="array", categoryarray=shown),
    )
    drawing = plot(figure([panel], columns=1, height=90 + 24 * len(shown)))
    return section("leaderboard", "Leaderboard", LEADERBOARD, drawing, board)


def mean_of(rows: Mapping[str, Mapping[str, Document]], proxy: str) -> float:
    values = [value for own in rows.values() if (value := number(own.get(proxy) or {}, "spearman")) is not None]
    return sum(values) / len(values) if values else -2.0


def cell(value: float) -> Cell:
    return Cell(decimal(value, 3), value=value) if value >= -1 else Cell(DASH)


def spearman_cell(row: Document | None) -> Cell:
    value, low, high = (number(row or {}, f"spearman{end}") for end in ("", "_low", "_high"))
    return Cell(interval(value, low, high, digits=3), value=value)


def cells_cell(row: Document | None) -> Cell:
    value, low, high = (number(row or {}, f"within_cells{end}") for end in ("", "_low", "_high"))
    return Cell(interval(value, low, high, digits=3), value=value)


def formulas_section(found: Mapping[str, Document]) -> Section:
    names = benchmark_names(found)
    best = [(names[file], each) for file, document in found.items() for each in (document.get("best") or ())[:5]]
    columns = [
        Column("found on", [name for name, _ in best], left=True),
        Column("formula", [formula_cell(each) for _, each in best], left=True),
        Column("LaTeX", [str(each.get("latex") or DASH) for _, each in best], left=True),
        Column("size", [str(each.get("size", DASH)) for _, each in best]),
        Column("held out, Spearman", [estimate(each.get("held_out")) for _, each in best]),
        Column("verdict", [str(each.get("verdict") or DASH) for _, each in best], left=True),
    ]
    trees = [
        Picture(formula_svg(each["json"], str(each.get("formula"))), str(each.get("formula")))
        for _, each in best[:MOST_TREES]
        if formula_cell(each).math  # its tree can be read
    ]
    note = (
        "The best formulas that archwright discover found, by size; numbers are of rows that took no part. "
        f"{FORMULAS_NOTE} Below the first of them as trees: inputs at the bottom, what is done with them above."
    )
    return section("formulas", "Found formulas", note, ReportTable(columns), *trees)
