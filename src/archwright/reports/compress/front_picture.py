"""The front as a small SVG, for notebooks that run no script: error against share, and the original."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.fronts import ERRORS, Point, pareto_front, plot_points
from archwright.reports.figures.panels import COLOURS, ORIGINAL
from archwright.reports.numbers import ErrorFormat, error_format, percent

WIDTH, HEIGHT = 520, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 40
"""Room around the plot, in pixels."""
TICKS = 4
ACROSS = "share of the non-embedding parameters"


def front_svg(result: Mapping[str, Any], error: str) -> str:
    """An SVG element; empty where no member has an error and a size."""
    errors, members = error_format(result), plot_points(result["front"], error)
    whole = list(plot_points([{"nonembedding_share": 1.0, **result["original"]}], error).values())
    points = list(members.values())
    if not points:
        return ""
    place = Placing([y for _, y in (*points, *whole)], errors)
    stairs = place.stairs(pareto_front(points))
    trials = [result["front"][at].get("trial") for at in members]
    dots = [
        f'<circle cx="{place.x(x):.1f}" cy="{place.y(y):.1f}" r="4.5" fill="{COLOURS[0]}"><title>trial '
        f"{html.escape(str(trial))}: {percent(x, 1)} kept, {errors.word} {errors.show(y, 2)}</title></circle>"
        for (x, y), trial in zip(points, trials, strict=True)
    ]
    diamonds = [
        f'<path d="M{place.x(x):.1f} {place.y(y):.1f}m0-6l6 6l-6 6l-6-6z" fill="{ORIGINAL}"><title>original: '
        f"{errors.show(y, 2)}</title></path>"
        for x, y in whole
    ]
    name = f"Pareto front: {ERRORS[error]} {errors.word} against the share of the non-embedding parameters"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{name}" '
        f'style="font:11px sans-serif;fill:currentColor">{place.axes(f"{ERRORS[error]} {errors.word}")}'
        f'<path d="{stairs}" fill="none" stroke="{COLOURS[0]}" stroke-width="1.6"/>{"".join(diamonds + dots)}</svg>'
    )


class Placing:
    """Where shares and errors stand in the picture."""

    def __init__(self, values: Sequence[float], errors: ErrorFormat) -> None:
        self.errors, self.logarithmic = errors, errors.scale == "log"
        low, high = self.scaled(min(values)), self.scaled(max(values))
        room = max((high - low) * 0.12, 0.005)
        self.low, self.high = low - room, high + room

    def scaled(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value

    def x(self, share: float) -> float:
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return TOP + (self.high - self.scaled(value)) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)

    def stairs(self, corners: Sequence[Point]) -> str:
        """A path from the smallest corner to the right edge."""
        parts = [f"M{self.x(corners[0][0]):.1f} {self.y(corners[0][1]):.1f}"]
        parts += [f"H{self.x(x):.1f}V{self.y(y):.1f}" for x, y in corners[1:]]
        return "".join([*parts, f"H{WIDTH - RIGHT}"])

    def axes(self, title: str) -> str:
        right, bottom, middle = WIDTH - RIGHT, HEIGHT - BOTTOM, (TOP + HEIGHT - BOTTOM) / 2
        parts = [
            f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="currentColor" opacity=".4"/>',
            f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{ACROSS}</text>',
            f'<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">{html.escape(title)}</text>',
        ]
        for part in range(TICKS + 1):
            share = part / TICKS
            at = self.low + share * (self.high - self.low)
            words = self.errors.show(10**at if self.logarithmic else at, 1)
            parts.append(f'<text x="{self.x(share)}" y="{bottom + 15}" text-anchor="middle">{percent(share)}</text>')
            height = bottom - share * (bottom - TOP)
            parts.append(f'<text x="{LEFT - 5}" y="{height + 4:.1f}" text-anchor="end">{words}</text>')
        return "".join(parts)
