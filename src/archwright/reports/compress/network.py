"""One sub-network beside the original, for a page: every number, what it is of the original's, and intervals."""

from collections.abc import Mapping
from typing import Any

from archwright.reports.compress.summary import GENERATION, Member, loss, loss_interval
from archwright.reports.figures.fronts import ERRORS
from archwright.reports.numbers import DASH, bounds, count, error_format, milliseconds, number, percent
from archwright.reports.tables import Cell, Column, ReportTable

AMOUNTS = {
    "nonembedding_parameters": ("non-embedding parameters", ""),
    "parameters": ("parameters in all", ""),
    "flops": ("FLOPs", ""),
    "int8_bytes": ("size with 8-bit weights", "B"),
}
"""Where a network has its size, what a page calls it, and its unit."""
Row = tuple[str, Cell, Cell, Cell]


def network_table(result: Mapping[str, Any], member: Member) -> ReportTable:
    """A row per number; intervals stand below the numbers."""
    original = result["original"]
    rows = [amount_row(member, original, key) for key in AMOUNTS]
    rows.append(time_row("latency", member, original, "latency_ms"))
    if number(member, *GENERATION) is not None:
        rows.append(time_row("per written token", member, original, "generation_ms"))
    rows += [error_row(result, member, key) for key in ERRORS]
    names, ours, theirs, against = zip(*rows, strict=True)
    head = {"": names, "here": ours, "original": theirs, "against it": against}
    return ReportTable([Column(name, cells, left=not name) for name, cells in head.items()])


def amount_row(member: Member, original: Member, key: str) -> Row:
    name, unit = AMOUNTS[key]
    ours, theirs = number(member, key), number(original, key)
    return name, Cell(count(ours, unit)), Cell(count(theirs, unit)), Cell(share_of(ours, theirs))


def time_row(name: str, member: Member, original: Member, key: str) -> Row:
    medians = [number(network, key, "median") for network in (member, original)]
    ends = [(number(network, key, "low"), number(network, key, "high")) for network in (member, original)]
    ours, theirs = (
        Cell(milliseconds(median), interval=bounds(*span)) for median, span in zip(medians, ends, strict=True)
    )
    return name, ours, theirs, Cell(share_of(*medians))


def error_row(result: Mapping[str, Any], member: Member, key: str) -> Row:
    errors = error_format(result)
    ours, theirs = (Cell(errors.show(number(network, key), 2)) for network in (member, result["original"]))
    lost, around = loss_parts(result, member, key)
    return f"{ERRORS[key]} {errors.word}", ours, theirs, Cell(lost, interval=around)


def share_of(value: float | None, whole: float | None) -> str:
    return DASH if value is None or not whole else percent(value / whole)


def loss_parts(result: Mapping[str, Any], member: Member, key: str) -> tuple[str, str]:
    """A loss such as -3.7 points, and its interval, -12.2 to 4.7, 160 rows; empty where none was measured."""
    interval = loss_interval(member, key)
    around = "" if interval is None else f"{bounds(100 * interval[0], 100 * interval[1], 1)}, {interval[2]:,} rows"
    return error_format(result).loss_words(loss(result, member, key)), around
