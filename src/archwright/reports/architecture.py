"""The picture of an architecture: a box per layer, as wide as its FFN, coloured by what it is (W-PCA, Figure 5)."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.panels import COLOURS, ink_on

Layer = Mapping[str, Any]
"""`kind`, `width` and `label`."""

BOX, GAP, LEAST, MOST, MARGIN = 26, 7, 90, 320, 46
"""Height of a box, room between two, narrowest and widest box, and room at the sides, in pixels."""
STYLE = (
    "text{font:13px system-ui,sans-serif;text-anchor:middle}.side{fill:#7d8691;font-size:11px}"
    ".flow{stroke:#7d8691;stroke-width:1.5}"
)
BARS = "█▓▒░▚▞▙▟"
"""Looks of kinds where there is no colour."""
COLUMNS = 36


def architecture_svg(layers: Sequence[Layer], *, name: str) -> str:
    """An SVG image, the first layer at the bottom; the name is what somebody who cannot see it reads."""
    colours, widths = kind_looks(layers, COLOURS), relative_widths(layers)
    wide, middle = MOST + 2 * MARGIN, MOST / 2 + MARGIN
    tall = (len(layers) + 2) * (BOX + GAP) + GAP
    parts = []
    for place, layer in enumerate(layers):
        y = tall - (place + 2) * (BOX + GAP)  # top of the box
        width, ink = LEAST + (MOST - LEAST) * widths[place], ink_on(colours[place])
        parts += [
            f'<line class="flow" x1="{middle}" x2="{middle}" y1="{y + BOX}" y2="{y + BOX + GAP}"/>',
            f'<rect x="{middle - width / 2:.1f}" y="{y}" width="{width:.1f}" height="{BOX}" rx="5" '
            f'fill="{colours[place]}"/>',
            f'<text x="{middle}" y="{y + 17.5}" fill="{ink}">{html.escape(str(layer["label"]))}</text>',
            f'<text class="side" x="{MARGIN / 2}" y="{y + 17}">{place + 1}</text>',
        ]
    for place, words in ((-1, "embeddings"), (len(layers), "hidden state")):
        y = tall - (place + 2) * (BOX + GAP) + 17
        parts.append(f'<text class="side" x="{wide / 2}" y="{y}">{words}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{tall}" viewBox="0 0 {wide} {tall}" '
        f'role="img"><title>{html.escape(name)}</title><style>{STYLE}</style>{"".join(parts)}</svg>'
    )


def draw_architecture(layers: Sequence[Layer]) -> str:
    """A line per layer for the terminal, the last layer on top; equal kinds look alike."""
    marks, widths = kind_looks(layers, BARS), relative_widths(layers)
    lines = []
    for place, layer in reversed(list(enumerate(layers))):
        bar = marks[place] * max(2, round(COLUMNS * widths[place]))
        lines.append(f"{place + 1:>3} {bar:<{COLUMNS}} {layer['label']}")
    return "\n".join(lines)


def kind_looks(layers: Sequence[Layer], looks: Sequence[str]) -> list[str]:
    """A look for every layer, the same for equal kinds."""
    kinds = sorted({str(layer["kind"]) for layer in layers})
    return [looks[kinds.index(str(layer["kind"])) % len(looks)] for layer in layers]


def relative_widths(layers: Sequence[Layer]) -> list[float]:
    widest = max([1.0, *(float(layer["width"]) for layer in layers)])
    return [float(layer["width"]) / widest for layer in layers]
