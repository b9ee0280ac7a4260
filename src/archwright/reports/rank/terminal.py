"""The ranking for a terminal: a table that leaves out columns rather than break its lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from archwright.reports.measures import DASH
from archwright.reports.rank.columns import COLUMNS
from archwright.reports.rank.rows import (
    BASELINE,
    Document,
    Row,
    amount,
    decimal,
    headline,
    kind_of,
    known,
    missing_of,
    ranked,
    verdicts,
)
from archwright.reports.rank.tables import ours

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

MARK = "·"
NAME = 26
"""So many characters of a name are shown."""
VERDICTS = {
    "wrong way": "reversed",
    "adds within cells": "adds inside",
    "adds": "adds",
    "restates": "restates",
    "noise": "noise",
    "cannot be judged": DASH,
}
"""Words of a verdict -> what stands for all of it; the first that fits counts."""


@dataclass(frozen=True)
class Cells:
    """One column of text; those with a small `drop` get room first, 0 is always shown."""

    head: str
    cells: Sequence[str]
    drop: int = 0
    left: bool = False

    @property
    def width(self) -> int:
        return max(map(len, (self.head, *self.cells)))


@dataclass(frozen=True)
class Fitting:
    """A rich renderable: the table with as many of its columns as the console has room for."""

    columns: Sequence[Cells]
    title: str = ""
    captions: Sequence[str] = ()
    dim: frozenset[int] = field(default=frozenset())
    """Rows that stand back."""

    def fitting(self, width: int) -> list[Cells]:
        """The columns shown on a console of this width, in their order."""
        shown: list[Cells] = []
        room = width + 1
        for column in sorted(self.columns, key=lambda column: column.drop):
            if column.drop == 0 or column.width + 1 <= room:
                shown.append(column)
                room -= column.width + 1
        return [column for column in self.columns if any(column is kept for kept in shown)]

    def table(self, width: int) -> Table:
        from rich.table import Table
        from rich.text import Text

        columns = self.fitting(width)
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
        for column in columns:
            justify = "left" if column.left else "right"
            table.add_column(Text(column.head), justify=justify, no_wrap=True)  # type: ignore[arg-type]
        for place in range(len(columns[0].cells) if columns else 0):
            style = "dim" if place in self.dim else ""
            table.add_row(*(Text(column.cells[place], overflow="ellipsis") for column in columns), style=style)
        return table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        width = options.max_width
        shown = self.fitting(width)
        left_out = [column.head for column in self.columns if column not in shown]
        more = [f"Not shown for lack of room: {few(left_out)}."] if left_out else []
        if self.title:
            yield Text("\n".join(textwrap.wrap(self.title, width)), style="bold")
        yield self.table(width)
        for words in (*self.captions, *more):
            yield Text("\n".join(textwrap.wrap(words, width)), style="dim")


def few(names: Sequence[str], most: int = 6) -> str:
    """The first of them, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def rank_table(document: Document) -> Fitting:
    """All proxies, the largest Spearman first, for `Console.print`; fits 80 columns with fewer numbers, 120 with all.

    `document` has the schema "archwright/rank/1"; any number may be None.
    """
    rows = ranked(document)
    names = [("" if kind_of(row) != BASELINE else MARK + " ") + str(row.get("proxy")) for row in rows]
    columns = [Cells("proxy", [shortened(name) for name in names], left=True)]
    columns += [
        Cells(column.short, [column.cell(row) for row in rows], column.drop) for column in COLUMNS if column.short
    ]
    columns += [missing] if (missing := missing_column(rows)) else []
    columns.append(Cells("verdict", [verdict(row) for row in rows], left=True))
    dim = frozenset(place for place, row in enumerate(rows) if kind_of(row) == BASELINE)
    return Fitting(columns, headline(document), captions(document, rows), dim)


def shortened(name: str, most: int = NAME) -> str:
    """A name whose middle is left out when it is long: both of its ends tell variants apart."""
    half = most // 2
    return name if len(name) <= most else f"{name[: most - half - 1]}…{name[-half:]}"


def missing_column(rows: Sequence[Row]) -> Cells | None:
    """On how many architectures a proxy has no value; nothing when all have all."""
    counts = [missing_of(row)[0] for row in rows]
    return Cells("miss.", [str(number or "") for number in counts], drop=3) if any(counts) else None


def verdict(row: Row) -> str:
    words = str(row.get("verdict") or DASH)
    return next((short for part, short in VERDICTS.items() if part in words), shortened(words, 11))


def captions(document: Document, rows: Sequence[Row]) -> list[str]:
    """What the numbers rest on, and what marks and short words mean."""
    given = [f"{number} x {words}" for words, number in verdicts(rows).most_common()]
    lines = [
        f"{setting(document)}{ceiling_words(document)} In brackets: 95 % intervals.",
        f"{MARK} baseline; minus d+w: against (depth, width); par.: correlation with the parameter count.",
        *([f"Verdicts: {', '.join(given)}."] if given else []),
    ]
    return [*lines, *missing_lines(rows)]


def setting(document: Document) -> str:
    """Benchmark, number of architectures, variant and target as a sentence."""
    number = int(known(document, "n") or 0)
    parts = [f"{document.get('benchmark') or DASH}: {amount(number, 'architecture', 'architectures')}"]
    parts += [f"{key} {document[key]}" for key in ("variant", "target", "seed") if document.get(key) is not None]
    return f"{', '.join(parts)}."


def ceiling_words(document: Document) -> str:
    ceiling = document.get("noise_ceiling") or {}
    value, within = known(ceiling, "value"), known(ceiling, "within_cells")
    pairs = known(ceiling, "n_pairs") or known(ceiling, "pairs")
    if value is None:
        return ""
    source = [str(ceiling.get("kind") or "")] + ([f"{pairs:,.0f} pairs"] if pairs else [])
    cells = "" if within is None else f", within cells {decimal(within)}"
    return f" Noise ceiling {decimal(value)}{cells} (from {', '.join(word for word in source if word) or DASH})."


def missing_lines(rows: Sequence[Row]) -> list[str]:
    """Why values are missing, each reason once."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        number, reason = missing_of(row)
        if number:
            reasons.setdefault(reason or "no reason given", []).append(f"{row.get('proxy')} {number}")
    return [f"Missing: {', '.join(names)} ({reason})." for reason, names in reasons.items()]


def xray_table(document: Document) -> Table:
    """Mean trained result and share of the top tenth, value by value of every choice."""
    from rich.table import Table

    shown = Table(title="what the best have in common", title_justify="left", box=None, pad_edge=False)
    shown.add_column("choice")
    for name in ("value", "architectures", "mean", "share", "of top 10 %"):
        shown.add_column(name, justify="right")
    for entry in document.get("xray") or ():
        numbers = [f"{entry['mean']:.2f}", f"{entry['share']:.0%}", f"{entry['top_share']:.0%}"]
        shown.add_row(str(entry["choice"]), str(entry["value"]), str(entry["n"]), *numbers)
    return shown


def papers_table(document: Document) -> Table:
    """What papers printed beside ours: their table, and their published columns on the same rows."""
    from rich.table import Table

    shown = Table(title="printed in papers, and ours", title_justify="left", box=None, pad_edge=False)
    for name in ("paper", "table", "proxy", "statistic"):
        shown.add_column(name, overflow="fold")
    for name in ("printed", "ours"):
        shown.add_column(name, justify="right")
    for entry in document.get("published") or ():
        where = [str(entry["paper"]), str(entry["table"]), str(entry["proxy"] or entry["printed"])]
        mine = ours(document, str(entry["proxy"]), str(entry["statistic"]))
        shown.add_row(*where, str(entry["statistic"]), f"{entry['value']:.3f}", mine)
    return shown
