"""The rows of a ranking: which are baselines, which is best, and the sentence that says so."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from archwright.reports.measures import DASH, MINUS
from archwright.reports.notes import listed

Row = Mapping[str, Any]
Document = Mapping[str, Any]

ORIGINS = {
    "count": "baseline",
    "baseline": "baseline",
    "published": "published",
    "own": "own",
    "discovered": "discovered",
}
"""Origin of a row -> what pages and tables call it."""
BASELINE = ORIGINS["count"]
PARAMETERS = ("parameters", "parameters_total", "total_parameters")
DEPTH_WIDTH = ("depth_width", "depth_and_width", "(depth, width)")
"""The rows every proxy is compared with, under the names they may have."""


def known(row: Row, key: str) -> float | None:
    """The number under a key; None when it is missing, no number or not finite."""
    value = row.get(key)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if usable and value is not None else None


def kind_of(row: Row) -> str:
    """What a row is called by its origin."""
    origin = str(row.get("origin") or DASH)
    return ORIGINS.get(origin, origin)


def ranked(document: Document, key: str = "spearman") -> list[Row]:
    """All rows, the largest first, those without a number last."""
    rows: list[Row] = list(document.get("rows") or ())
    return sorted(rows, key=lambda row: -math.inf if (value := known(row, key)) is None else value, reverse=True)


def proxies(rows: Iterable[Row]) -> list[Row]:
    """The rows that are no baselines."""
    return [row for row in rows if kind_of(row) != BASELINE]


def reference(document: Document, names: Sequence[str]) -> Row:
    """The row with one of these names; empty when there is none."""
    rows = {str(row.get("proxy")): row for row in document.get("rows") or ()}
    return next((rows[name] for name in names if name in rows), {})


def decimal(value: float | None, digits: int = 2) -> str:
    """With a real minus sign; a dash for what is missing."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{abs(value):.{digits}f}"
    return f"{MINUS}{text}" if value < 0 and float(text) else text


def bounds(row: Row, key: str, digits: int = 2) -> str:
    """The interval around a number, empty when either end is missing."""
    low, high = known(row, f"{key}_low"), known(row, f"{key}_high")
    return "" if low is None or high is None else f"{decimal(low, digits)} to {decimal(high, digits)}"


def with_bounds(row: Row, key: str) -> str:
    interval = bounds(row, key)
    return decimal(known(row, key)) + (f" ({interval})" if interval else "")


def missing_of(row: Row) -> tuple[int, str]:
    """On how many architectures the proxy has no value, and why."""
    missing = row.get("missing") or {}
    return int(known(missing, "count") or 0), str(missing.get("reason") or "")


def equal_in(document: Document) -> str:
    """What the networks of one cell have in common."""
    return str(document.get("known") or "depth and width")


def headline(document: Document) -> str:
    """The findings, spoken plainly: the best proxy, what counting alone gives, and who adds something to it."""
    rows = [row for row in proxies(ranked(document)) if known(row, "spearman") is not None]
    if not rows:
        return f"No proxy has a rank correlation on {document.get('benchmark') or 'this benchmark'} yet."
    best = f"{rows[0]['proxy']} ranks best of {amount(len(rows), 'proxy', 'proxies')}: Spearman "
    sentences = [
        best + with_bounds(rows[0], "spearman"),
        counted(document),
        beaten(rows),
        inside(rows, equal_in(document)),
        doubt(document),
    ]
    return " ".join(f"{words}." for words in sentences if words)


def amount(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def counted(document: Document) -> str:
    """What the baselines reach."""
    names = {"parameters alone": PARAMETERS, "depth and width": DEPTH_WIDTH}
    found = {words: known(reference(document, name), "spearman") for words, name in names.items()}
    parts = [f"{words} reach {decimal(value)}" for words, value in found.items() if value is not None]
    return listed(parts).capitalize()


def beaten(rows: Sequence[Row]) -> str:
    """How many proxies rank better than depth and width, judged by the interval of the difference."""
    judged = [low for row in rows if (low := known(row, "minus_depth_width_low")) is not None]
    if not judged:
        return ""
    better = sum(low > 0 for low in judged)
    verb = "rank" if better > 1 else "ranks"
    return f"{better or 'None'} of the {len(judged)} reliably {verb} better than depth and width"


def inside(rows: Sequence[Row], alike: str) -> str:
    """The best proxy among networks that are alike."""
    found = [row for row in rows if known(row, "within_cells") is not None]
    if not found:
        return ""
    best = max(found, key=lambda row: known(row, "within_cells") or 0.0)
    return f"Among networks of equal {alike} {best['proxy']} is best with {with_bounds(best, 'within_cells')}"


def doubt(document: Document) -> str:
    """The noise ceiling, in words."""
    ceiling = document.get("noise_ceiling") or {}
    value, within = known(ceiling, "value"), known(ceiling, "within_cells")
    if value is None:
        return ""
    cells = "" if within is None else f", within cells {decimal(within)}"
    return f"A perfect predictor would reach about {decimal(value)}{cells}, because training itself is noisy"


def verdicts(rows: Iterable[Row]) -> Counter[str]:
    """How often each verdict was given."""
    return Counter(str(row["verdict"]) for row in rows if row.get("verdict"))
