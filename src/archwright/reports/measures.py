"""How errors are written: most are shares of 1 and shown in percent, a perplexity is a number of its own."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

DASH = "\u2013"
SPACE = "\u00a0"
"""Between a number and its unit, so that no line breaks there."""
MINUS = "\u2212"


def percent(value: float | None, digits: int = 0) -> str:
    return DASH if value is None else f"{value * 100:.{digits}f}{SPACE}%"


def plain(value: float | None, digits: int = 0) -> str:
    """Three digits and no exponent, whatever `digits` a percentage would have."""
    if value is None or not math.isfinite(value):
        return DASH
    return f"{value:,.{max(0, 3 - len(str(int(abs(value)))))}f}"


def signed(value: float, digits: int = 1) -> str:
    text = f"{abs(value):.{digits}f}"
    return text if not float(text) else ("+" if value > 0 else MINUS) + text


@dataclass(frozen=True)
class Measure:
    """What an error of one kind of metric is called and how it is shown; larger is worse for all of them."""

    key: str
    word: str
    show: Callable[[float | None, int], str]
    """An error, with so many digits."""
    lost: Callable[[float, float], float]
    """Error and the original's error -> what was lost; positive is worse."""
    unit: str
    """Of a loss, after it was multiplied by 100."""
    loss_heading: str
    near: float
    """A loss up to here counts as near the original."""
    near_words: str
    explained: str
    """What the error is, with the metric's name put in."""
    ticks: str
    """Plotly's format of an axis."""
    scale: str
    against: str
    """What a raw hypervolume is taken of, beside the share of the parameters."""

    def loss_words(self, lost: float | None) -> str:
        """A loss with sign and unit."""
        return DASH if lost is None else f"{signed(lost * 100)}{SPACE}{self.unit}"


SHARE = Measure(
    key="share",
    word="error",
    show=percent,
    lost=lambda error, original: error - original,
    unit="points",
    loss_heading="loss",
    near=0.02,
    near_words="2 points",
    explained="Error is 1 \u2212 {metric}.",
    ticks=".1~%",
    scale="linear",
    against="error",
)
NUMBER = Measure(
    key="number",
    word="perplexity",
    show=plain,
    lost=lambda error, original: error / original - 1 if original else 0.0,
    unit="%",
    loss_heading="loss, %",
    near=0.05,
    near_words=f"5{SPACE}%",
    explained="Perplexity is the exponential of the mean loss of a token; smaller is better.",
    ticks=",.4~g",
    scale="log",
    against="perplexity on a logarithmic scale that ends at guessing",
)

MEASURES: dict[str, Measure] = {"perplexity": NUMBER}
"""Metrics whose error is not a share of 1."""


def measure_of(document: Mapping[str, Any]) -> Measure:
    """How to write the errors of a result."""
    return MEASURES.get(str(document.get("metric")), SHARE)
