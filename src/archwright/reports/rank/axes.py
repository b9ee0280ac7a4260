"""The architectures as columns of numbers, once for all pictures of a page; rank.js draws them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.parts import COLOURS, SYMBOLS
from archwright.reports.measures import DASH
from archwright.reports.rank.rows import Document, decimal, kind_of, known, ranked, with_bounds
from archwright.reports.words import count

Axis = dict[str, Any]
"""`name`, `group` (heading in a menu), `values` in the order of the architectures, and a sentence of `facts`."""
Architecture = Mapping[str, Any]
DIGITS = 6
SHAPES = {"depth": "depth", "width": "width", "parameters": "parameters"}


def rounded(value: Any, digits: int = DIGITS) -> float | int | None:
    """So many significant digits, which keep a page small; integers stay, what is no finite number is None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.{digits}g}")


def axes_of(document: Document) -> list[Axis]:
    """The trained score first, then every proxy, the largest Spearman first; what no architecture has is left out."""
    found: Sequence[Architecture] = document.get("architectures") or ()
    trained = axis(
        f"trained score ({document.get('target') or DASH})", "trained", [one.get("trained") for one in found]
    )
    rows = {str(row.get("proxy")): row for row in ranked(document)}
    names = dict.fromkeys([*rows, *(str(name) for one in found for name in one.get("scores") or {})])
    scored = [scores(found, name, rows.get(name, {})) for name in names]
    shapes = [
        axis(words, "size", [one.get(key) for one in found]) for key, words in SHAPES.items() if words not in names
    ]
    return [one for one in (trained, *scored, *shapes) if one["known"]]


def scores(found: Sequence[Architecture], name: str, row: Mapping[str, Any]) -> Axis:
    values = [(one.get("scores") or {}).get(name) for one in found]
    return axis(name, kind_of(row) if row else "other", values, facts(row))


def axis(name: str, group: str, values: Sequence[Any], words: str = "") -> Axis:
    numbers = [rounded(value) for value in values]
    return {
        "name": name,
        "group": group,
        "values": numbers,
        "facts": words,
        "known": sum(v is not None for v in numbers),
    }


def facts(row: Mapping[str, Any]) -> str:
    """What the table says about a proxy, as one line below its picture."""
    parts = {"Spearman": "spearman", "Kendall tau-b": "kendall_b", "within cells": "within_cells"}
    shown = [f"{words} {with_bounds(row, key)}" for words, key in parts.items() if known(row, key) is not None]
    return "; ".join([*shown, *([str(row["verdict"])] if row.get("verdict") else [])])


def points_of(document: Document) -> dict[str, Any]:
    """What is said when the mouse rests on an architecture, its cell, and the groups that share a colour."""
    found: Sequence[Architecture] = document.get("architectures") or ()
    return {"hover": [hover(one) for one in found], "cells": cells_of(found), "groups": groups_of(found)}


def hover(one: Architecture) -> str:
    trained = known(one, "trained")
    parts = [
        f"architecture {one.get('id')}",
        *([f"trained {decimal(trained)}"] if trained is not None else []),
        *([f"cell {one['cell']}"] if one.get("cell") is not None else []),
        f"{count(known(one, 'parameters'))} parameters",
    ]
    return ", ".join(parts)


def cells_of(found: Sequence[Architecture], most: int = 9, least: int = 5) -> list[dict[str, Any]]:
    """The largest cells with their architectures, in the order of their names; cells of one or two tell nothing."""
    cells: dict[str, list[int]] = {}
    for place, one in enumerate(found):
        if one.get("cell") is not None:
            cells.setdefault(str(one["cell"]), []).append(place)
    large = sorted((name for name in cells if len(cells[name]) >= least), key=lambda name: -len(cells[name]))[:most]
    order = sorted(
        large, key=lambda name: ([known(found[cells[name][0]], key) or 0.0 for key in ("depth", "width")], name)
    )
    return [{"name": name, "members": cells[name]} for name in order]


def groups_of(found: Sequence[Architecture]) -> list[dict[str, Any]]:
    """Architectures of equal depth under one colour and mark; more depths than marks share one scale of colours."""
    depths: dict[float | None, list[int]] = {}
    for place, one in enumerate(found):
        depths.setdefault(known(one, "depth"), []).append(place)
    if len(depths) > len(COLOURS):
        shade = [known(one, "depth") for one in found]
        return [
            {
                "name": "depth",
                "colour": COLOURS[0],
                "symbol": SYMBOLS[0],
                "members": list(range(len(found))),
                "shade": shade,
            }
        ]
    order = sorted(depths, key=lambda depth: -1.0 if depth is None else depth)
    looks = zip(order, COLOURS, SYMBOLS, strict=False)
    return [{"name": depth_words(depth), "colour": c, "symbol": s, "members": depths[depth]} for depth, c, s in looks]


def depth_words(depth: float | None) -> str:
    return "depth unknown" if depth is None else f"depth {depth:g}"
