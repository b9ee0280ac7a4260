"""The columns of a ranking: what each number is called, how it is written, and what it means."""

from collections.abc import Callable
from dataclasses import dataclass

from archwright.reports.measures import DASH, MINUS
from archwright.reports.rank.rows import Row, bounds, decimal, known
from archwright.reports.words import count

Show = Callable[[float | None], str]


def compact(value: float | None) -> str:
    """Two digits without the leading zero, for a terminal: .87"""
    text = decimal(value)
    return text.replace("0.", ".", 1) if text.lstrip(MINUS).startswith("0.") else text


def duration(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def three(value: float | None) -> str:
    return decimal(value, 3)


def thousand(value: float | None) -> str:
    """Seconds per architecture, as time for a thousand of them."""
    if value is None:
        return DASH
    seconds = value * 1000
    return (
        f"{seconds:.0f} s"
        if seconds < 100
        else f"{seconds / 60:.1f} min"
        if seconds < 6000
        else f"{seconds / 3600:.1f} h"
    )


@dataclass(frozen=True)
class Column:
    """One number of every row."""

    key: str
    head: str
    note: str = ""
    """What the number means, shown when the mouse rests on the heading."""
    show: Show = three
    short: str = ""
    """Heading in the terminal; empty: not shown there."""
    drop: int = 0
    """Columns with small numbers get room in a narrow terminal first; 0 is always shown."""

    wide: bool = True
    """Whether the terminal shows the interval too."""

    def cell(self, row: Row) -> str:
        """For the terminal: the number and, where there is one, its interval."""
        ends = [known(row, f"{self.key}_{end}") if self.wide else None for end in ("low", "high")]
        value = known(row, self.key)
        show = compact if self.show is three else self.show
        return show(value) + ("" if value is None or None in ends else f" [{' '.join(compact(end) for end in ends)}]")

    def entry(self, row: Row) -> dict[str, object]:
        """For the page: text, interval below it, and the value to sort by."""
        value = known(row, self.key)
        interval = "" if value is None else bounds(row, self.key)
        return {"text": self.show(value), "range": interval, "value": value}


COLUMNS = (
    Column("spearman", "Spearman's rho", "Rank correlation with the trained score, 1 is the same order", short="rho"),
    Column(
        "kendall_b", "Kendall's tau-b", "Pairs in the same order, ties taken out", short="tau-b", drop=5, wide=False
    ),
    Column(
        "within_cells",
        "Within cells",
        "Mean rank correlation among networks of equal depth and width",
        short="within cells",
    ),
    Column(
        "minus_depth_width",
        "Minus depth, width",
        "Spearman of the proxy minus that of (depth, width)",
        short="minus d+w",
        drop=2,
    ),
    Column("minus_parameters", "Minus parameters", "Spearman of the proxy minus that of the parameter count"),
    Column(
        "correlation_with_parameters",
        "With parameters",
        "Rank correlation of the proxy with the parameter count",
        short="par.",
        drop=4,
    ),
    Column("partial_given_parameters", "Given parameters", "Partial rank correlation, parameter count held fixed"),
    Column("precision_at_10pct", "Precision at 10 %", "Share of its top 10 % that is in the true top 10 %"),
    Column("regret_at_10", "Regret at 10", "Trained score lost by training only its ten best"),
    Column("top10_spearman", "Rho in the top 10 %", "Rank correlation among the best tenth"),
    Column("icc_seeds", "ICC seeds", "Share of the variance that is not the seed's", short="ICC", drop=6),
    Column("icc_batches", "ICC batches", "Share of the variance that is not the batch's"),
    Column("seconds_per_architecture", "Seconds each", "Core-seconds per architecture", duration, "s/arch", drop=7),
    Column("seconds_per_architecture", "Per 1,000", "Time to score a thousand architectures", thousand),
    Column("peak_memory_mb", "Peak MB", "Peak memory while it was scored", count),
    Column("kendall_a", "Kendall's tau-a", "Pairs in the same order, a tie counts as none"),
    Column("weighted_tau", "Weighted tau", "Kendall's tau in which good architectures count more"),
)
