"""The picture of an architecture: a box per layer, as wide as its FFN, coloured by what it is (W-PCA, Figure 5)."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.parts import COLOURS

Layer = Mapping[str, Any]
"""`kind`, `width` and `label`."""

BOX, GAP, LEAST, MOST, MARGIN = 26, 7, 90, 320, 46
"""Height of a box, room between two, narrowest and widest box, and room at the sides, in pixels."""
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#fff;text-anchor:middle}.side{fill:#7d8691;font-size:11px}"
    ".flow{stroke:#7d8691;stroke-width:1.5}"
)
BARS = "█▓▒░▚▞▙▟"
"""Looks of kinds where there is no colour."""
COLUMNS = 36


def kinds_of(layers: Sequence[Layer]) -> list[str]:
    return sorted({str(layer["kind"]) for layer in layers})


def share_of(layer: Layer, layers: Sequence[Layer]) -> float:
    return float(layer["width"]) / max(1.0, *(float(one["width"]) for one in layers))


def architecture_svg(layers: Sequence[Layer], *, name: str) -> str:
    """An SVG image, the first layer at the bottom; the name is what somebody who cannot see it reads."""
    colours = dict(zip(kinds_of(layers), COLOURS * len(layers), strict=False))
    tall, wide = (len(layers) + 2) * (BOX + GAP) + GAP, MOST + 2 * MARGIN
    parts = [box(layer, place, layers, colours[str(layer["kind"])], tall) for place, layer in enumerate(layers)]
    ends = [(-1, "embeddings"), (len(layers), "hidden state")]
    texts = [f'<text class="side" x="{wide / 2}" y="{top(at, tall) + 17}">{words}</text>' for at, words in ends]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{tall}" viewBox="0 0 {wide} {tall}" '
        f'role="img"><title>{html.escape(name)}</title><style>{STYLE}</style>{"".join(parts)}{"".join(texts)}</svg>'
    )


def top(place: int, tall: float) -> float:
    """Where the box of a layer begins; embeddings are below the first."""
    return tall - (place + 2) * (BOX + GAP)


def box(layer: Layer, place: int, layers: Sequence[Layer], colour: str, tall: float) -> str:
    middle = MOST / 2 + MARGIN
    width = LEAST + (MOST - LEAST) * share_of(layer, layers)
    y = top(place, tall)
    return (
        f'<line class="flow" x1="{middle}" x2="{middle}" y1="{y + BOX}" y2="{y + BOX + GAP}"/>'
        f'<rect x="{middle - width / 2:.1f}" y="{y}" width="{width:.1f}" height="{BOX}" rx="5" fill="{colour}"/>'
        f'<text x="{middle}" y="{y + 17.5}">{html.escape(str(layer["label"]))}</text>'
        f'<text class="side" x="{MARGIN / 2}" y="{y + 17}">{place + 1}</text>'
    )


def architecture_text(layers: Sequence[Layer]) -> str:
    """A line per layer for the terminal, the last layer on top; equal kinds look alike."""
    marks = dict(zip(kinds_of(layers), BARS * len(layers), strict=False))
    lines = []
    for place, layer in reversed(list(enumerate(layers, 1))):
        bar = marks[str(layer["kind"])] * max(2, round(COLUMNS * share_of(layer, layers)))
        lines.append(f"{place:>3} {bar:<{COLUMNS}} {layer['label']}")
    return "\n".join(lines)
