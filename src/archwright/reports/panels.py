"""Pages made of sections, each with plots, tables, facts or text; the script panels.js draws them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from archwright.reports.figures.parts import Figure
from archwright.reports.measures import SPACE

Block = dict[str, Any]
Section = dict[str, Any]
Card = tuple[str, str, str]
"""Label, number, detail."""


def section(name: str, title: str, note: str, *blocks: Block, short: str = "") -> Section:
    """A part of a page below its heading; `short` is what the table of contents calls it."""
    return {"id": name, "title": title, "short": short or title, "note": unbroken(note), "blocks": list(blocks)}


def unbroken(words: str) -> str:
    """Text in which no line ends between a number and its percent sign."""
    return words.replace(" %", f"{SPACE}%")


def plots(figures: Mapping[tuple[str, ...], Figure], *labels: str) -> Block:
    """One plot; the reader chooses one of several figures by its words, one for each label."""
    return {"kind": "plots", "figures": [[list(words), figure] for words, figure in figures.items()], "labels": labels}


def plot(figure: Figure) -> Block:
    return plots({(): figure})


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str = "",
    bold: Collection[tuple[int, int]] = (),
    left: Collection[int] = (0,),
) -> Block:
    """Rows of text; cells in `bold` (row, column) stand out, columns in `left` are not numbers."""
    cells = [
        [{"text": cell, "bold": (y, x) in bold, "left": x in left} for x, cell in enumerate(row)]
        for y, row in enumerate(rows)
    ]
    heads = [{"text": name, "left": x in left} for x, name in enumerate(head)]
    return {"kind": "table", "caption": caption, "head": heads, "rows": cells}


def facts(panels: Mapping[str, Mapping[str, Any]]) -> Block:
    """Small panels of terms and values."""
    return {"kind": "facts", "panels": [[name, [[k, v] for k, v in pairs.items()]] for name, pairs in panels.items()]}


def text(*paragraphs: str) -> Block:
    return {"kind": "text", "paragraphs": [unbroken(words) for words in paragraphs]}


def picture(svg: str, words: str) -> Block:
    """An SVG image, and what it shows in words."""
    return {"kind": "picture", "source": svg, "words": words}


def notice(*paragraphs: str) -> Block:
    """What is missing, and what to do about it."""
    return {"kind": "notice", "paragraphs": [unbroken(words) for words in paragraphs]}
