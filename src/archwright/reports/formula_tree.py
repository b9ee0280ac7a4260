"""Formulas as trees, and how two of them became a third (LPZero, Figures 2 and 4); SVG images."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.parts import COLOURS, GREY

Formula = Mapping[str, Any]
"""As `Formula.as_json` writes it."""
Nodes = dict[str, str]
"""Place in the tree to what stands there."""

WIDE, TALL, APART, ROW, MARGIN = 104, 26, 116, 42, 14
"""Size of a node, distance of the branches, of rows, and room around, in pixels."""
SIDES = ("left", "right")
STYLE = (
    "text{font:12.5px system-ui,sans-serif;fill:#fff;text-anchor:middle}.words{fill:#7d8691}"
    "line{stroke:#7d8691;stroke-width:1.5}.new{stroke:#c9494f;stroke-width:3}"
)
FIRST, SECOND, BOTH, NEW = COLOURS[0], COLOURS[1], GREY, COLOURS[6]
KINDS = {"reduction": COLOURS[5], "binary": COLOURS[5], "factor": COLOURS[3], "input": COLOURS[1], "chain": COLOURS[0]}
SYMBOLS = {
    "add": "+",
    "sub": "\N{MINUS SIGN}",
    "mul": "\N{MULTIPLICATION SIGN}",
    "hadamard": "\N{CIRCLED DOT OPERATOR}",
}


def nodes_of(formula: Formula) -> Nodes:
    """Everything a formula chooses, by place."""
    found = {"reduction": f"{formula['reduction']} over layers", "binary": SYMBOLS[formula["binary"]]}
    for side in SIDES:
        branch = formula[side]
        found |= {f"{side} {place}": name for place, name in enumerate(branch["chain"])}
        found[f"{side} input"] = branch["input"]
    factor = formula.get("factor")
    return (
        {**found, "factor": "\N{MULTIPLICATION SIGN} " + " of ".join([*reversed(factor["chain"]), factor["input"]])}
        if factor
        else found
    )


def shown(formula: Formula) -> Nodes:
    """Without a branch that is pruned, and without what would join it."""
    nodes, gone = nodes_of(formula), [side for side in SIDES if "prune" in formula[side]["chain"]]
    hidden = {place for place in nodes for side in gone if place.startswith(side)} | ({"binary"} if gone else set())
    return {place: name for place, name in nodes.items() if place not in hidden}


def height(formula: Formula, nodes: Nodes) -> float:
    return max(spot(formula, nodes, place, 0.0)[1] for place in nodes) + TALL / 2 + MARGIN


def width() -> float:
    return WIDE + APART + 2 * MARGIN


def formula_svg(formula: Formula, name: str) -> str:
    """The tree of a formula, its inputs at the bottom."""
    nodes = shown(formula)
    colours = {place: KINDS[kind(place)] for place in nodes}
    return image(tree(formula, nodes, colours, 0.0), width(), height(formula, nodes), name)


def kind(place: str) -> str:
    last = place.split()[-1]
    return "chain" if last.isdigit() else last


def image(parts: Sequence[str], wide: float, tall: float, name: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{tall:.0f}" '
        f'viewBox="0 0 {wide:.0f} {tall:.0f}" role="img"><title>{html.escape(name)}</title>'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>"
    )


def tree(
    formula: Formula, nodes: Nodes, colours: Mapping[str, str], x: float, new: frozenset[str] = frozenset()
) -> list[str]:
    """Lines, then boxes, of one tree whose picture begins at x."""
    at = {place: spot(formula, nodes, place, x) for place in nodes}
    lines = [line(at[place], at[above]) for place in nodes if (above := parent(formula, nodes, place))]
    return [*lines, *(box(at[place], nodes[place], colours[place], place in new) for place in nodes)]


def spot(formula: Formula, nodes: Nodes, place: str, x: float) -> tuple[float, float]:
    """Middle of a node."""
    middle, top = x + width() / 2, MARGIN + TALL / 2 + ROW * ("factor" in nodes)
    rows = {"factor": -1, "reduction": 0, "binary": 1}
    if place in rows:
        return middle, top + rows[place] * ROW
    side, step = place.split()
    chain = formula[side]["chain"]
    row = 2 + (len(chain) if not step.isdigit() else len(chain) - 1 - int(step))
    alone = "binary" not in nodes
    return middle + (0 if alone else (-1, 1)[SIDES.index(side)] * APART / 2), top + (row - alone) * ROW


def parent(formula: Formula, nodes: Nodes, place: str) -> str | None:
    """The node above."""
    if place in ("factor", "reduction"):
        return {"reduction": "factor" if "factor" in nodes else None}.get(place)
    if place in ("binary",):
        return "reduction"
    side, step = place.split()
    above = f"{side} {int(step) + 1 if step.isdigit() else 0}"
    return above if above in nodes else ("binary" if "binary" in nodes else "reduction")


def line(one: tuple[float, float], other: tuple[float, float]) -> str:
    return f'<line x1="{one[0]:.1f}" y1="{one[1]:.1f}" x2="{other[0]:.1f}" y2="{other[1]:.1f}"/>'


def box(at: tuple[float, float], name: str, colour: str, new: bool) -> str:
    x, y = at
    mark = ' class="new"' if new else ""
    return (
        f'<rect{mark} x="{x - WIDE / 2:.1f}" y="{y - TALL / 2:.1f}" width="{WIDE}" height="{TALL}" rx="7" '
        f'fill="{colour}"/><text x="{x:.1f}" y="{y + 4.5:.1f}">{html.escape(name)}</text>'
    )


def family_svg(parents: Sequence[Formula], crossed: Formula | None, child: Formula, name: str) -> str:
    """Parents, what they gave together, and the child: coloured by where each part comes from."""
    before = crossed or parents[0]
    new = frozenset(place for place, what in nodes_of(child).items() if nodes_of(before).get(place) != what)
    stages: list[tuple[Formula, str, frozenset[str]]]
    stages = [(parents[0], "one parent", frozenset()), (parents[1], "the other parent", frozenset())]
    stages += [(crossed, "crossover", frozenset())] if crossed else []
    stages += [(child, "mutation", new)] if new else ([] if crossed else [(child, "copy", frozenset())])
    step, top = width() + 12, 22.0
    parts = []
    for place, (formula, words, fresh) in enumerate(stages):
        nodes = nodes_of(formula)
        colours = origins(formula, parents, place) | dict.fromkeys(fresh, NEW)
        drawn = tree(formula, nodes, {one: colours[one] for one in nodes}, place * step, fresh)
        parts.append(f'<g transform="translate(0 {top})">{"".join(drawn)}</g>')
        parts.append(f'<text class="words" x="{place * step + width() / 2:.1f}" y="15">{words}</text>')
    return image(parts, len(stages) * step, max(height(one, nodes_of(one)) for one, _, _ in stages) + top, name)


def origins(formula: Formula, parents: Sequence[Formula], place: int) -> dict[str, str]:
    """A colour for every part: the first parent's, the second's, or that of both."""
    if place < len(parents):
        return dict.fromkeys(nodes_of(formula), (FIRST, SECOND)[place])
    found = {one: origin([parent[one] == formula[one] for parent in parents]) for one in ("reduction", "binary")}
    found["factor"] = origin([parent.get("factor") == formula.get("factor") for parent in parents])
    for side in SIDES:
        inputs = [formula[side]["input"] in (parent[one]["input"] for one in SIDES) for parent in parents]
        chains = [formula[side]["chain"] in [parent[one]["chain"] for one in SIDES] for parent in parents]
        found[f"{side} input"] = origin(inputs)
        found |= {f"{side} {step}": origin(chains) for step in range(len(formula[side]["chain"]))}
    return found


def origin(of: Sequence[bool]) -> str:
    return {(True, False): FIRST, (False, True): SECOND}.get((of[0], of[1]), BOTH)
