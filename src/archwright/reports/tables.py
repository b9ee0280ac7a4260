"""One table for the terminal and for pages: `Console.print` shows it, and so does the template of a page."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from archwright.reports.numbers import join_few

if TYPE_CHECKING:
    from markupsafe import Markup
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

FILTER_FROM = 10
"""A page lets its reader filter a sortable table with more rows."""


@dataclass(frozen=True)
class Cell:
    """A text, the value by which it sorts (its text if that is words) and, below it, its interval."""

    text: str
    value: float | None = None
    words: bool = False
    interval: str = ""
    bold: bool = False
    math: Markup | None = None
    """The text as mathematics, which a page shows instead."""
    link: str = ""
    """Where the text leads on a served page."""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    head: str
    cells: Sequence[str | Cell]
    left: bool = False
    """Text rather than numbers."""
    note: str = ""
    """What the numbers mean, shown when the mouse rests on the heading."""
    wide: bool = False
    """Long text, which needs room on a page."""
    drop: int = 0
    """Columns with small numbers get room in a narrow terminal first; 0 is always shown."""
    fold: bool = False
    """Whether long text may break in the terminal."""

    @property
    def texts(self) -> list[str]:
        return [cell if isinstance(cell, str) else cell.text for cell in self.cells]

    @property
    def width(self) -> int:
        return max(map(len, (self.head, *self.texts)))


@dataclass(frozen=True)
class ReportTable:
    """Columns of equal length.

    In a terminal it leaves out columns rather than break its lines. A page calls it by its caption; if it is
    `sortable`, a click on a heading sorts it, and rows with a style stand back.
    """

    kind: ClassVar[str] = "table"

    columns: Sequence[Column]
    title: str = ""
    """Above the table; on a page its heading, or its name if it is sortable."""
    captions: Sequence[str] = ()
    """Lines below it in the terminal."""
    styles: Mapping[int, str] = field(default_factory=dict)
    """Row -> its style in the terminal: dim or bold."""
    sortable: bool = False
    gap: int = 1
    """Spaces between columns in the terminal."""

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        cells = [[Cell(cell) if isinstance(cell, str) else cell for cell in column.cells] for column in self.columns]
        return list(zip(*cells, strict=True))

    @property
    def has_filter(self) -> bool:
        return self.sortable and len(self.rows) > FILTER_FROM

    @property
    def label(self) -> str:
        """What somebody who cannot see it hears."""
        return self.title or ", ".join(column.head for column in self.columns)

    def fitting_columns(self, width: int) -> list[Column]:
        """The columns shown on a console of this width, in their order."""
        shown: list[Column] = []
        room = width + self.gap
        for column in sorted(self.columns, key=lambda column: column.drop):
            if column.drop == 0 or column.width + self.gap <= room:
                shown.append(column)
                room -= column.width + self.gap
        return [column for column in self.columns if any(column is other for other in shown)]

    def rich_table(self, columns: Sequence[Column]) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, self.gap, 0, 0))
        for column in columns:
            look = {"overflow": "fold"} if column.fold else {"no_wrap": True}
            justify = "left" if column.left else "right"
            table.add_column(Text(column.head), justify=justify, **look)  # type: ignore[arg-type]
        for place, texts in enumerate(zip(*(column.texts for column in columns), strict=True)):
            cells = (
                Text(text, overflow="fold" if column.fold else "ellipsis")
                for column, text in zip(columns, texts, strict=True)
            )
            table.add_row(*cells, style=self.styles.get(place, ""))
        return table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        width = options.max_width
        shown = self.fitting_columns(width)
        left_out = [column.head for column in self.columns if column not in shown]
        more = [f"Not shown for lack of room: {join_few(left_out)}."] if left_out else []
        if self.title:
            yield Text("\n".join(textwrap.wrap(self.title, width)), style="bold")
        yield self.rich_table(shown)
        for words in (*self.captions, *more):
            yield Text("\n".join(textwrap.wrap(words, width)), style="dim")


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    bold: Collection[tuple[int, int]] = (),
    left: Collection[int] = (0,),
    fold: Collection[int] = (),
    captions: Sequence[str] = (),
    styles: Mapping[int, str] | None = None,
    gap: int = 2,
) -> ReportTable:
    """A table from its rows: cells in `bold` (row, column) stand out on a page, columns in `left` are not numbers."""
    columns = [
        Column(name, [Cell(row[x], bold=(y, x) in bold) for y, row in enumerate(rows)], left=x in left, fold=x in fold)
        for x, name in enumerate(head)
    ]
    return ReportTable(columns, title, captions, styles or {}, gap=gap)
