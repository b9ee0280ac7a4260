"""Formulas as trees, and how two of them became a third (LPZero, Figures 2 and 4); SVG images."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.panels import COLOURS, GREY, ink_on

Formula = Mapping[str, Any]
"""As `Formula.as_json` writes it."""
Nodes = dict[str, str]
"""Place in the tree to what stands there."""

WIDE, TALL, APART, ROW, MARGIN = 114, 26, 122, 42, 14
"""Size of a node, distance of the branches, of rows, and room around, in pixels."""
TREE_WIDTH = WIDE + APART + 2 * MARGIN
SIDES = ("left", "right")
STYLE = (
    "text{font:12.5px system-ui,sans-serif;text-anchor:middle}.words{fill:#7d8691}"
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


def formula_nodes(formula: Formula) -> Nodes:
    """Everything a formula chooses, by place."""
    nodes = {"reduction": f"{formula['reduction']} over layers", "binary": SYMBOLS[formula["binary"]]}
    for side in SIDES:
        branch = formula[side]
        nodes |= {f"{side} {place}": name for place, name in enumerate(branch["chain"])}
        nodes[f"{side} input"] = branch["input"]
    if factor := formula.get("factor"):
        nodes["factor"] = "\N{MULTIPLICATION SIGN} " + " of ".join([*reversed(factor["chain"]), factor["input"]])
    return nodes


def formula_svg(formula: Formula, name: str) -> str:
    """The tree of a formula, its inputs at the bottom; a branch that is pruned, and what would join it, is left out."""
    pruned = tuple(side for side in SIDES if "prune" in formula[side]["chain"])
    nodes = {
        place: words
        for place, words in formula_nodes(formula).items()
        if not (pruned and (place == "binary" or place.startswith(pruned)))
    }
    colours = {}
    for place in nodes:
        part = place.split()[-1]
        colours[place] = KINDS["chain" if part.isdigit() else part]
    return image(tree(formula, nodes, colours, 0.0), TREE_WIDTH, tree_height(formula, nodes), name)


def tree_height(formula: Formula, nodes: Nodes) -> float:
    return max(node_middle(formula, nodes, place, 0.0)[1] for place in nodes) + TALL / 2 + MARGIN


def image(parts: Sequence[str], wide: float, tall: float, name: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{tall:.0f}" '
        f'viewBox="0 0 {wide:.0f} {tall:.0f}" role="img"><title>{html.escape(name)}</title>'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>"
    )


def tree(
    formula: Formula, nodes: Nodes, colours: Mapping[str, str], x: float, new: frozenset[str] = frozenset()
) -> list[str]:
    """Lines, then boxes, of one tree whose picture begins at x; boxes in `new` have a frame."""
    middles = {place: node_middle(formula, nodes, place, x) for place in nodes}
    lines, boxes = [], []
    for place, (middle, height) in middles.items():
        if above := node_above(nodes, place):
            (x2, y2) = middles[above]
            lines.append(f'<line x1="{middle:.1f}" y1="{height:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
        mark, ink = ' class="new"' if place in new else "", ink_on(colours[place])
        boxes.append(
            f'<rect{mark} x="{middle - WIDE / 2:.1f}" y="{height - TALL / 2:.1f}" width="{WIDE}" height="{TALL}" '
            f'rx="7" fill="{colours[place]}"/>'
            f'<text x="{middle:.1f}" y="{height + 4.5:.1f}" fill="{ink}">{html.escape(nodes[place])}</text>'
        )
    return lines + boxes


def node_middle(formula: Formula, nodes: Nodes, place: str, x: float) -> tuple[float, float]:
    middle, top = x + TREE_WIDTH / 2, MARGIN + TALL / 2 + ROW * ("factor" in nodes)
    rows = {"factor": -1, "reduction": 0, "binary": 1}
    if place in rows:
        return middle, top + rows[place] * ROW
    side, step = place.split()
    chain = formula[side]["chain"]
    row = 2 + (len(chain) if not step.isdigit() else len(chain) - 1 - int(step))
    alone = "binary" not in nodes
    return middle + (0 if alone else (-1, 1)[SIDES.index(side)] * APART / 2), top + (row - alone) * ROW


def node_above(nodes: Nodes, place: str) -> str | None:
    """The node that a node is joined to."""
    if place == "factor":
        return None
    if place == "reduction":
        return "factor" if "factor" in nodes else None
    if place == "binary":
        return "reduction"
    side, step = place.split()
    above = f"{side} {int(step) + 1 if step.isdigit() else 0}"
    return above if above in nodes else ("binary" if "binary" in nodes else "reduction")


def family_svg(parents: Sequence[Formula], crossing: Formula | None, child: Formula, name: str) -> str:
    """Parents, what they gave together, and the child: coloured by where each part comes from."""
    before = formula_nodes(crossing or parents[0])
    new = frozenset(place for place, words in formula_nodes(child).items() if before.get(place) != words)
    stages = [(parents[0], "one parent"), (parents[1], "the other parent")]
    stages += [(crossing, "crossover")] if crossing else []
    stages += [(child, "mutation")] if new else ([] if crossing else [(child, "copy")])
    step, top = TREE_WIDTH + 12, 22.0
    parts = []
    for place, (formula, words) in enumerate(stages):
        fresh = new if words == "mutation" else frozenset()
        colours = part_origins(formula, parents, place) | dict.fromkeys(fresh, NEW)
        drawing = tree(formula, formula_nodes(formula), colours, place * step, fresh)
        parts.append(f'<g transform="translate(0 {top})">{"".join(drawing)}</g>')
        parts.append(f'<text class="words" x="{place * step + TREE_WIDTH / 2:.1f}" y="15">{words}</text>')
    tall = max(tree_height(formula, formula_nodes(formula)) for formula, _ in stages) + top
    return image(parts, len(stages) * step, tall, name)


def part_origins(formula: Formula, parents: Sequence[Formula], stage: int) -> dict[str, str]:
    """A colour for every part: the first parent's, the second's, or that of both."""
    if stage < len(parents):
        return dict.fromkeys(formula_nodes(formula), (FIRST, SECOND)[stage])
    origins = {
        part: origin(*(parent.get(part) == formula.get(part) for parent in parents))
        for part in ("reduction", "binary", "factor")
    }
    for side in SIDES:
        branch = formula[side]
        origins[f"{side} input"] = origin(
            *(branch["input"] in [parent[other]["input"] for other in SIDES] for parent in parents)
        )
        chain = origin(*(branch["chain"] in [parent[other]["chain"] for other in SIDES] for parent in parents))
        origins |= {f"{side} {step}": chain for step in range(len(branch["chain"]))}
    return origins


def origin(first: bool, second: bool) -> str:
    """The colour of a part that the parents may have given."""
    return BOTH if first == second else FIRST if first else SECOND
