"""The rows of a ranking: which are baselines, which is best, the sentence that says so, and what their numbers mean."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archwright.reports.numbers import (
    DASH,
    bounds,
    compact_decimal,
    count,
    decimal,
    duration,
    interval,
    join_words,
    number,
    plural,
)
from archwright.reports.tables import Cell

Row = Mapping[str, Any]
Document = Mapping[str, Any]

BASELINE = "baseline"
BASELINE_ORIGINS = ("count", "training")
PARAMETERS = ("parameters", "parameters_total", "total_parameters")
DEPTH_WIDTH = ("depth_width", "depth_and_width", "(depth, width)")
"""The rows every proxy is compared with, under the names they may have."""


def origin(row: Row) -> str:
    """Where a row comes from, as pages and tables call it: counts and short trainings are baselines."""
    name = str(row.get("origin") or DASH)
    return BASELINE if name in BASELINE_ORIGINS else name


def sort_rows(document: Document, key: str = "spearman") -> list[Row]:
    """All rows, the largest first, those without a number last."""
    rows: list[Row] = list(document.get("rows") or ())
    return sorted(rows, key=lambda row: -math.inf if (value := number(row, key)) is None else value, reverse=True)


def proxies(rows: Iterable[Row]) -> list[Row]:
    """The rows that are no baselines."""
    return [row for row in rows if origin(row) != BASELINE]


def baseline_row(document: Document, names: Sequence[str]) -> Row:
    """The row with one of these names; empty when there is none."""
    rows = {str(row.get("proxy")): row for row in document.get("rows") or ()}
    return next((rows[name] for name in names if name in rows), {})


def row_bounds(row: Row, key: str) -> str:
    """The interval around a number, empty when either end is missing."""
    return bounds(number(row, f"{key}_low"), number(row, f"{key}_high"))


def row_interval(row: Row, key: str, digits: int = 2) -> str:
    """A number with its interval in brackets."""
    return interval(number(row, key), number(row, f"{key}_low"), number(row, f"{key}_high"), digits=digits)


def missing_values(row: Row) -> tuple[int, str]:
    """On how many architectures the proxy has no value, and why."""
    missing = row.get("missing") or {}
    return int(number(missing, "count") or 0), str(missing.get("reason") or "")


def cell_definition(document: Document) -> str:
    """What the networks of one cell have in common."""
    return str(document.get("known") or "depth and width")


def verdict_counts(rows: Iterable[Row]) -> Counter[str]:
    return Counter(str(row["verdict"]) for row in rows if row.get("verdict"))


def rank_headline(document: Document) -> str:
    """The findings, spoken plainly: the best proxy, what counting alone gives, and who adds something to it."""
    rows = [row for row in proxies(sort_rows(document)) if number(row, "spearman") is not None]
    if not rows:
        return f"No proxy has a rank correlation on {document.get('benchmark') or 'this benchmark'} yet."
    best = f"{rows[0]['proxy']} ranks best of {plural(len(rows), 'proxy', 'proxies')}: Spearman "
    sentences = [best + row_interval(rows[0], "spearman")]
    names = {"parameters alone": PARAMETERS, "depth and width": DEPTH_WIDTH}
    baselines = {words: number(baseline_row(document, name), "spearman") for words, name in names.items()}
    parts = [f"{words} reach {decimal(value)}" for words, value in baselines.items() if value is not None]
    sentences.append(join_words(parts).capitalize())
    sentences += short_training(document)
    lows = [low for row in rows if (low := number(row, "minus_depth_width_low")) is not None]
    if lows:
        better = sum(low > 0 for low in lows)
        verb = "rank" if better > 1 else "ranks"
        sentences.append(f"{better or 'None'} of the {len(lows)} reliably {verb} better than depth and width")
    inside = [row for row in rows if number(row, "within_cells") is not None]
    if inside:
        row = max(inside, key=lambda row: number(row, "within_cells") or 0.0)
        alike, shown = cell_definition(document), row_interval(row, "within_cells")
        sentences.append(f"Among networks of equal {alike} {row['proxy']} is best with {shown}")
    if ceiling := ceiling_numbers(document):
        sentences.append(f"A perfect predictor would reach about {ceiling}, because training itself is noisy")
    if document.get("caution"):
        sentences.insert(0, str(document["caution"])[0].upper() + str(document["caution"])[1:])
    return " ".join(f"{words}." for words in sentences if words)


def short_training(document: Document) -> list[str]:
    """What the longest short training reaches at which price; nothing where the benchmark has none."""
    rows = [row for row in document.get("rows") or () if row.get("origin") == "training"]
    if not rows:
        return []
    dearest = max(rows, key=lambda row: number(row, "seconds_per_architecture") or 0.0)
    seconds = seconds_each(number(dearest, "seconds_per_architecture"))
    return [f"{dearest['proxy']}, for {seconds} core-seconds a network, reaches {row_interval(dearest, 'spearman')}"]


def ceiling_numbers(document: Document) -> str:
    """The noise ceiling and that within cells; empty when it is not known."""
    ceiling = document.get("noise_ceiling") or {}
    value, within = number(ceiling, "value"), number(ceiling, "within_cells")
    ends = [
        interval(v, number(ceiling, f"{key}low"), number(ceiling, f"{key}high"))
        for v, key in ((value, ""), (within, "within_cells_"))
    ]
    cells = "" if within is None else f", within cells {ends[1]}"
    return "" if value is None else f"{ends[0]}{cells}"


def setting_sentence(document: Document) -> str:
    """Benchmark, number of architectures, variant and target, and the noise ceiling."""
    amount = plural(int(number(document, "n") or 0), "architecture", "architectures")
    parts = [f"{document.get('benchmark') or DASH}: {amount}"]
    scored = int(number(document, "scored") or 0)
    parts += [f"{scored} of them scored"] if scored and scored < (number(document, "n") or 0) else []
    parts += [str(document["caution"]).partition(":")[0]] if document.get("caution") else []
    parts += [f"{key} {document[key]}" for key in ("variant", "target", "seed") if document.get(key) is not None]
    numbers, ceiling = ceiling_numbers(document), document.get("noise_ceiling") or {}
    pairs = number(ceiling, "n_pairs") or number(ceiling, "pairs")
    sources = [str(ceiling.get("kind") or ""), f"{pairs:,.0f} pairs" if pairs else ""]
    source = ", ".join(words for words in sources if words)
    return f"{', '.join(parts)}." + (f" Noise ceiling {numbers} (from {source or DASH})." if numbers else "")


def three_decimals(value: float | None) -> str:
    return decimal(value, 3)


def seconds_each(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def time_per_thousand(value: float | None) -> str:
    """Seconds per architecture, as time for a thousand of them."""
    return DASH if value is None else duration(value * 1000)


@dataclass(frozen=True)
class Statistic:
    """One number of every row: what it is called, how it is written, and what it means."""

    key: str
    head: str
    note: str = ""
    """Shown when the mouse rests on the heading."""
    show: Callable[[float | None], str] = three_decimals
    short: str = ""
    """Heading in the terminal; empty: not shown there."""
    drop: int = 0
    """Columns with small numbers get room in a narrow terminal first; 0 is always shown."""
    wide: bool = True
    """Whether the terminal shows the interval too."""
    bar: str = ""
    """What a figure of bars calls it; empty: there is none."""
    ceiling: str = ""
    """Its key in the noise ceiling."""

    def terminal_text(self, row: Row) -> str:
        """The number and, where there is one, its interval."""
        ends = [number(row, f"{self.key}_{end}") if self.wide else None for end in ("low", "high")]
        value = number(row, self.key)
        show = compact_decimal if self.show is three_decimals else self.show
        around = "" if value is None or None in ends else f" [{' '.join(compact_decimal(end) for end in ends)}]"
        return show(value) + around

    def cell(self, row: Row) -> Cell:
        """For the page: text, interval below it, and the value to sort by."""
        value = number(row, self.key)
        return Cell(self.show(value), value, interval="" if value is None else row_bounds(row, self.key))


STATISTICS = (
    Statistic(
        "spearman",
        "Spearman's rho",
        "Rank correlation with the trained score, 1 is the same order",
        short="rho",
        bar="Spearman",
        ceiling="value",
    ),
    Statistic(
        "kendall_b",
        "Kendall's tau-b",
        "Pairs in the same order, ties taken out",
        short="tau-b",
        drop=5,
        wide=False,
        bar="Kendall tau-b",
    ),
    Statistic(
        "within_cells",
        "Within cells",
        "Mean rank correlation among networks of equal depth and width",
        short="within cells",
        bar="within cells",
        ceiling="within_cells",
    ),
    Statistic(
        "minus_depth_width",
        "Minus depth, width",
        "Spearman of the proxy minus that of (depth, width)",
        short="minus d+w",
        drop=2,
        bar="minus depth, width",
    ),
    Statistic(
        "within_given_parameters",
        "In cells, given parameters",
        "The same with the parameter count held fixed: what it adds to a count",
    ),
    Statistic(
        "minus_parameters_within",
        "In cells, minus parameters",
        "Spearman inside cells minus that of the parameter count there, on the same resamples",
    ),
    Statistic(
        "q_adds",
        "False discovery rate",
        "Chance that it adds nothing to the parameter count inside cells, among all proxies (Benjamini-Hochberg)",
    ),
    Statistic(
        "minus_parameters",
        "Minus parameters",
        "Spearman of the proxy minus that of the parameter count",
        bar="minus parameters",
    ),
    Statistic(
        "correlation_with_parameters",
        "With parameters",
        "Rank correlation of the proxy with the parameter count",
        short="par.",
        drop=4,
    ),
    Statistic("partial_given_parameters", "Given parameters", "Partial rank correlation, parameter count held fixed"),
    Statistic("precision_at_10pct", "Precision at 10 %", "Share of its top 10 % that is in the true top 10 %"),
    Statistic("regret_at_10", "Regret at 10", "Trained score lost by training only its ten best"),
    Statistic("top10_spearman", "Rho in the top 10 %", "Rank correlation among the best tenth"),
    Statistic("icc_seeds", "ICC seeds", "Share of the variance that is not the seed's", short="ICC", drop=6),
    Statistic("icc_within_cells", "ICC inside cells", "Share of the variance inside cells that is not the seed's"),
    Statistic("icc_batches", "ICC batches", "Share of the variance that is not the batch's"),
    Statistic(
        "seconds_per_architecture", "Seconds each", "Core-seconds per architecture", seconds_each, "s/arch", drop=7
    ),
    Statistic("seconds_per_architecture", "Per 1,000", "Time to score a thousand architectures", time_per_thousand),
    Statistic("peak_memory_mb", "Peak MB", "Peak memory while it was scored", count),
    Statistic("kendall_a", "Kendall's tau-a", "Pairs in the same order, a tie counts as none"),
    Statistic("weighted_tau", "Weighted tau", "Kendall's tau in which good architectures count more"),
)
