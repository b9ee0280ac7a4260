"""Numbers as people read them, the same in tables, pages and sentences; a dash stands for what is missing."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DASH = "\u2013"
SPACE = "\u00a0"
"""Between a number and its unit, so that no line breaks there."""
MINUS = "\u2212"


def number(document: Mapping[str, Any], *keys: str) -> float | None:
    """What lies at the end of the keys; None when it is missing, no number or not finite."""
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if usable else None


def percent(value: float | None, digits: int = 0) -> str:
    return DASH if value is None else f"{value * 100:.{digits}f}{SPACE}%"


def decimal(value: float | None, digits: int = 2) -> str:
    """With a real minus sign."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{abs(value):.{digits}f}"
    return f"{MINUS}{text}" if value < 0 and float(text) else text


def compact_decimal(value: float | None) -> str:
    """Two digits without the leading zero, for a terminal: .87"""
    text = decimal(value)
    return text.replace("0.", ".", 1) if text.lstrip(MINUS).startswith("0.") else text


def signed(value: float, digits: int = 1) -> str:
    text = f"{abs(value):.{digits}f}"
    return text if not float(text) else ("+" if value > 0 else MINUS) + text


def significant(value: float | None, digits: int = 4) -> str:
    return DASH if value is None else f"{value:.{digits}g}"


def three_digits(value: float | None, digits: int = 0) -> str:
    """Without exponent: 5.12, 23.5, 45,679; takes `digits`, as `percent` does, and ignores it."""
    if value is None or not math.isfinite(value):
        return DASH
    return f"{value:,.{max(0, 3 - len(str(int(abs(value)))))}f}"


def count(value: float | None, unit: str = "") -> str:
    """With a unit prefix and three digits: 22.7 M; 45.1 MB for bytes ("B")."""
    if value is None:
        return DASH
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 0.9995:
            return f"{value / size:#.3g}".rstrip(".") + SPACE + prefix + unit
    return f"{value:.3g}{SPACE + unit if unit else ''}"


def millions(value: float | None) -> str:
    return DASH if value is None else f"{value / 1e6:.2f}M"


def milliseconds(median: float | None, low: float | None = None, high: float | None = None) -> str:
    """A latency and, in brackets, its interval."""
    if median is None:
        return DASH
    ends = f" ({low:.2f} to {high:.2f})" if low is not None and high is not None else ""
    return f"{median:.{2 if median < 10 else 1}f}{SPACE}ms{ends}"


def duration(seconds: float | None) -> str:
    """In seconds, minutes or hours."""
    if seconds is None:
        return DASH
    if seconds < 90:
        return f"{seconds:.{1 if seconds < 10 else 0}f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def interval(value: float | None, low: float | None, high: float | None, *, digits: int = 2, ends: int = 2) -> str:
    """A value with so many digits and the ends of its interval: 0.900 (0.80 to 0.95)."""
    around = bounds(low, high, ends)
    return DASH if value is None else decimal(value, digits) + (f" ({around})" if around else "")


def estimate(entry: Mapping[str, Any] | None, *, digits: int = 3, ends: int = 2) -> str:
    """The interval of an entry with `value`, `low` and `high`."""
    value, low, high = (number(entry or {}, key) for key in ("value", "low", "high"))
    return interval(value, low, high, digits=digits, ends=ends)


def bounds(low: float | None, high: float | None, digits: int = 2) -> str:
    """0.80 to 0.95; empty when either end is missing."""
    return "" if low is None or high is None else f"{decimal(low, digits)} to {decimal(high, digits)}"


def plural(amount: int, singular: str, many: str) -> str:
    return f"{amount:,} {singular if amount == 1 else many}"


def join_words(words: Iterable[str]) -> str:
    """a, b and c."""
    *first, last = list(words) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def join_few(names: Sequence[str], most: int = 6) -> str:
    """The first of them, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def shorten(name: str, most: int = 26) -> str:
    """A name whose middle is left out when it is long: both of its ends tell variants apart."""
    half = most // 2
    return name if len(name) <= most else f"{name[: most - half - 1]}…{name[-half:]}"


def fact(value: Any) -> str:
    """Any value of a JSON document as text: lists without brackets, numbers as one reads them."""
    if value is None or value == "":
        return DASH
    if isinstance(value, list | tuple):
        return ", ".join(map(fact, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}" if isinstance(value, int) else f"{value:.5g}"
    return json.dumps(value, default=str) if isinstance(value, Mapping) else str(value)


@dataclass(frozen=True)
class ErrorFormat:
    """What the error of one kind of metric is called and how it is shown; larger is worse for all of them."""

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
    explanation: str
    """What the error is, with the metric's name put in."""
    ticks: str
    """Plotly's format of an axis."""
    scale: str
    """Of an axis: linear or log."""
    against: str
    """What a raw hypervolume is taken of, beside the share of the parameters."""

    def loss_words(self, lost: float | None) -> str:
        """A loss with sign and unit."""
        return DASH if lost is None else f"{signed(lost * 100)}{SPACE}{self.unit}"

    @property
    def axis(self) -> dict[str, str]:
        """Of a plot."""
        return {"tickformat": self.ticks, "type": self.scale}


SHARE = ErrorFormat(
    key="share",
    word="error",
    show=percent,
    lost=lambda error, original: error - original,
    unit="points",
    loss_heading="loss",
    near=0.02,
    near_words="2 points",
    explanation="Error is 1 \u2212 {metric}.",
    ticks=".1~%",
    scale="linear",
    against="error",
)
PERPLEXITY = ErrorFormat(
    key="number",
    word="perplexity",
    show=three_digits,
    lost=lambda error, original: error / original - 1 if original else 0.0,
    unit="%",
    loss_heading="loss, %",
    near=0.05,
    near_words=f"5{SPACE}%",
    explanation="Perplexity is the exponential of the mean loss of a token; smaller is better.",
    ticks=",.4~g",
    scale="log",
    against="perplexity on a logarithmic scale that ends at guessing",
)


def error_format(document: Mapping[str, Any]) -> ErrorFormat:
    """How to write the errors of a result: perplexities as numbers, all others as shares of 1."""
    return PERPLEXITY if document.get("metric") == "perplexity" else SHARE
