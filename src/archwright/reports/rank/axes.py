"""The architectures as columns of numbers, once for all pictures of a page; explore.js draws them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.panels import COLOURS, SYMBOLS
from archwright.reports.numbers import DASH, count, decimal, number
from archwright.reports.rank.rows import Document, origin, row_interval, sort_rows

Axis = dict[str, Any]
"""`name`, `group` (heading in a menu), `values` in the order of the architectures, and a sentence of `facts`."""
Architecture = Mapping[str, Any]
DIGITS = 6
SHAPES = ("depth", "width", "parameters")
FACTS = {"Spearman": "spearman", "Kendall tau-b": "kendall_b", "within cells": "within_cells"}
"""What the table says about a proxy, as one line below its picture."""
CELLS, CELL_SIZE = 9, 5
"""At most so many cells are shown, each with at least so many architectures: fewer tell nothing."""


def round_digits(value: Any, digits: int = DIGITS) -> float | int | None:
    """So many significant digits, which keep a page small; integers stay, what is no finite number is None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.{digits}g}")


def rank_axes(document: Document) -> list[Axis]:
    """The trained score first, then every proxy, the largest Spearman first; what no architecture has is left out."""
    architectures: Sequence[Architecture] = document.get("architectures") or ()
    rows = {str(row.get("proxy")): row for row in sort_rows(document)}
    names = dict.fromkeys([*rows, *(str(name) for each in architectures for name in each.get("scores") or {})])
    trained = f"trained score ({document.get('target') or DASH})"
    axes = [score_axis(trained, "trained", [each.get("trained") for each in architectures])]
    for name in names:
        row, values = rows.get(name, {}), [(each.get("scores") or {}).get(name) for each in architectures]
        facts = [f"{words} {row_interval(row, key)}" for words, key in FACTS.items() if number(row, key) is not None]
        facts += [str(row["verdict"])] if row.get("verdict") else []
        axes.append(score_axis(name, origin(row) if row else "other", values, "; ".join(facts)))
    axes += [
        score_axis(name, "size", [each.get(name) for each in architectures]) for name in SHAPES if name not in names
    ]
    return [axis for axis in axes if axis["known"]]


def score_axis(name: str, group: str, values: Sequence[Any], words: str = "") -> Axis:
    numbers = [round_digits(value) for value in values]
    known = sum(value is not None for value in numbers)
    return {"name": name, "group": group, "values": numbers, "facts": words, "known": known}


def rank_points(document: Document) -> dict[str, Any]:
    """What is said when the mouse rests on an architecture, its cell, and the groups that share a colour."""
    architectures: Sequence[Architecture] = document.get("architectures") or ()
    hover = []
    for each in architectures:
        trained = number(each, "trained")
        parts = [
            f"architecture {each.get('id')}",
            *([f"trained {decimal(trained)}"] if trained is not None else []),
            *([f"cell {each['cell']}"] if each.get("cell") is not None else []),
            f"{count(number(each, 'parameters'))} parameters",
        ]
        hover.append(", ".join(parts))
    return {"hover": hover, "cells": large_cells(architectures), "groups": depth_groups(architectures)}


def large_cells(architectures: Sequence[Architecture]) -> list[dict[str, Any]]:
    """The largest cells with their architectures, in the order of their names."""
    cells: dict[str, list[int]] = {}
    for place, each in enumerate(architectures):
        if each.get("cell") is not None:
            cells.setdefault(str(each["cell"]), []).append(place)
    large = [name for name in cells if len(cells[name]) >= CELL_SIZE]
    largest = sorted(large, key=lambda name: -len(cells[name]))[:CELLS]

    def shape(name: str) -> tuple[list[float], str]:
        return [number(architectures[cells[name][0]], key) or 0.0 for key in ("depth", "width")], name

    return [{"name": name, "members": cells[name]} for name in sorted(largest, key=shape)]


def depth_groups(architectures: Sequence[Architecture]) -> list[dict[str, Any]]:
    """Architectures of equal depth under one colour and mark; more depths than marks share one scale of colours."""
    depths: dict[float | None, list[int]] = {}
    for place, each in enumerate(architectures):
        depths.setdefault(number(each, "depth"), []).append(place)
    if len(depths) > len(COLOURS):
        shade = [number(each, "depth") for each in architectures]
        look = {"colour": COLOURS[0], "symbol": SYMBOLS[0]}
        return [{"name": "depth", **look, "members": list(range(len(architectures))), "shade": shade}]
    order = sorted(depths, key=lambda depth: -1.0 if depth is None else depth)
    names = ["depth unknown" if depth is None else f"depth {depth:g}" for depth in order]
    return [
        {"name": name, "colour": colour, "symbol": symbol, "members": depths[depth]}
        for name, depth, colour, symbol in zip(names, order, COLOURS, SYMBOLS, strict=False)
    ]
