"""A result in Python and in notebooks: the front as a table of rows, as HTML, as a plotly figure."""

import html
import textwrap
from collections.abc import Mapping
from io import StringIO
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput
from archwright.reports.compress.summary import front_table, headline, keep_words
from archwright.reports.figures.fronts import ERRORS, SIZES, fronts_panel
from archwright.reports.figures.panels import Figure, assign_styles, figure
from archwright.reports.numbers import error_format
from archwright.reports.tables import ReportTable

if TYPE_CHECKING:
    from pandas import DataFrame

FOR_MACHINES = ("config", "keep", "beaten_by", "band")
"""What a member has that is no number of a table; `keep` is told in words."""
MIDDLES = ("median", "value")
"""Where a measurement with an interval has its number."""
WIDTH = 120
"""Characters of a table as text."""
FRONT_HEIGHT, TITLE_WIDTH = 420, 100
"""Pixels of a figure, and characters of a line above it."""


class FrontTable(list[dict[str, Any]]):
    """The members of a front as dictionaries, smallest first, as in out.json; shown as a table."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        super().__init__(result["front"])
        self._result = result

    def to_pandas(self) -> "DataFrame":
        """One row per member, the trial's number as index; intervals are columns with _low and _high."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise BadInput("to_pandas needs the package pandas, which is not installed; pip install pandas.") from None
        return DataFrame([flatten_member(member) for member in self]).set_index("trial")

    def __repr__(self) -> str:
        return text_table(front_table(self._result))

    def _repr_html_(self) -> str:
        return html_table(front_table(self._result))


def flatten_member(member: Mapping[str, Any]) -> dict[str, Any]:
    """A row of plain numbers and texts."""
    row: dict[str, Any] = {}
    for name, value in member.items():
        if isinstance(value, Mapping):
            middle = next((key for key in MIDDLES if key in value), None)
            row |= {name: value[middle]} if middle else {}
            row |= {f"{name}_{end}": value[end] for end in ("low", "high", "rows") if end in value}
        elif name not in FOR_MACHINES:
            row[name] = value
    return row | ({"keeps": keep_words(member)} if "keep" in member else {})


def text_table(table: ReportTable) -> str:
    """As a terminal shows it, without colours."""
    from rich.console import Console

    written = StringIO()
    Console(file=written, width=WIDTH, color_system=None, markup=False, emoji=False).print(table)
    return "\n".join(line.rstrip() for line in written.getvalue().rstrip().splitlines())


def html_table(table: ReportTable) -> str:
    """As a notebook shows it."""
    head = "".join(f"<th>{html.escape(column.head)}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell.text)}</td>' for cell in row)}</tr>" for row in table.rows)
    title = f"<caption>{html.escape(table.title)}</caption>" if table.title else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def front_figure(result: Mapping[str, Any], *, error: str, size: str) -> Figure:
    """Plotly's data and layout: the front and the original, errors against sizes."""
    if error not in ERRORS:
        raise BadInput(f"error must be one of {', '.join(ERRORS)}, got {error!r}.")
    if size not in SIZES:
        raise BadInput(f"size must be one of {', '.join(SIZES)}, got {size!r}.")
    styles = assign_styles(["front"])
    panel = fronts_panel(
        *({"front": result["front"]}, result["original"], error_format(result)),
        styles=styles,
        error=error,
        size=SIZES[size],
    )
    drawn = figure([panel], height=FRONT_HEIGHT)
    words = "<br>".join(textwrap.wrap(html.escape(headline(result), quote=False), TITLE_WIDTH))
    layout = {**drawn["layout"], "title": {"text": words, "font": {"size": 14}}, "height": FRONT_HEIGHT}
    return {"data": drawn["data"], "layout": {**layout, "template": "plotly_white"}}
