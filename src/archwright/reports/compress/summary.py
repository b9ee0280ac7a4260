"""The front in plain sentences, in the terminal and in commands: what page, comparison and terminal share."""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.fronts import ERRORS, plot_points
from archwright.reports.numbers import DASH, count, error_format, milliseconds, number, percent, signed
from archwright.reports.tables import ReportTable, table
from archwright.reports.text_plot import Canvas, Point

HALF = 0.5
HEIGHT = 14
"""Rows of the plot in the terminal."""


def half_size_member(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The front member with the lowest validation error among those of at most half the non-embedding parameters.

    Chosen on validation data only; its test error is reported, never used to choose.
    """
    points = plot_points(result["front"], "validation_error")
    small = [(error, place) for place, (share, error) in points.items() if share <= HALF]
    return result["front"][min(small)[1]] if small else None


def shared_error(result: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    """The error both networks have: test when there is a test set, validation otherwise."""
    both = None not in (number(member, "test_error"), number(result["original"], "test_error"))
    return "test_error" if both else "validation_error"


def loss(result: Mapping[str, Any], member: Mapping[str, Any]) -> float | None:
    """What is lost against the original, as the metric measures it (0.01: a point, or 1 %); positive is worse."""
    key = shared_error(result, member)
    error, original = number(member, key), number(result["original"], key)
    return None if error is None or original is None else error_format(result).lost(error, original)


def error_words(result: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    """The member's error beside the original's."""
    key, errors = shared_error(result, member), error_format(result)
    here, original = (errors.show(number(network, key), 1) for network in (member, result["original"]))
    return f"{ERRORS[key]} {errors.word} {here} instead of {original}"


def headline(result: Mapping[str, Any]) -> str:
    """The best sub-network of at most half the size, spoken plainly."""
    if not result["front"]:
        return "The search found no sub-network on the front yet."
    member = half_size_member(result)
    if member is None:
        return "No sub-network on the front has half of the non-embedding parameters or fewer."
    size = f"{percent(member['nonembedding_share'])} of the non-embedding parameters"
    lost, errors = loss(result, member), error_format(result)
    if lost is None:
        return f"The best sub-network of half the size or less keeps {size}; the original has no error to compare with."
    amount, both = f"{abs(lost) * 100:.1f} {errors.unit}", error_words(result, member)
    if lost > errors.near:
        best = f"the best keeps {size} and loses {amount}, {both}"
        return f"At half the size or less no sub-network stays within {errors.near_words}: {best}."
    if lost <= 0:
        return f"A sub-network with {size} is no worse than the original: {both}."
    return f"A sub-network with {size} stays within {errors.near_words} of the original: it loses {amount}, {both}."


def member_commands(result: Mapping[str, Any], member: Mapping[str, Any]) -> dict[str, str]:
    """The command lines that pick and export this member, quoted for a shell."""
    run = shlex.quote(str(result.get("folder") or result.get("run", "RUN")))
    export = f"archwright export {run} --trial {shlex.quote(str(member.get('trial')))} --to compact"
    share = number(member, "nonembedding_share")
    if share is None:
        return {"export": export}
    budget = math.ceil(share * 10_000) / 100  # rounded up, so that this member still fits
    return {"select": f"archwright select {run} --params {budget:g}%", "export": export}


def front_table(result: Mapping[str, Any]) -> ReportTable:
    """The front against the original, smallest first; a tick marks members near the original (`ErrorFormat.near`)."""
    errors = error_format(result)
    head = ("trial", "share", "parameters", "FLOPs", "latency", "int8", "validation", "test", errors.loss_heading)
    rows: list[list[str]] = []
    for network in ({"trial": "original", "nonembedding_share": 1.0, **result["original"]}, *result["front"]):
        lost = loss(result, network)
        change = DASH if lost is None else f"{signed(lost * 100)} {'✓' if lost <= errors.near else ' '}"
        rows.append(
            [
                str(network.get("trial")),
                percent(number(network, "nonembedding_share")),
                count(number(network, "parameters")),
                count(number(network, "flops")),
                milliseconds(number(network, "latency_ms", "median")),
                count(number(network, "int8_bytes"), "B"),
                *(errors.show(number(network, error), 1) for error in ERRORS),
                change if rows else "",
            ]
        )
    return table(head, rows, title=headline(result), left=(), styles={0: "bold"})


def draw_front(result: Mapping[str, Any], width: int = 72) -> str:
    """Validation error over the share of non-embedding parameters, drawn with characters, at most `width` wide."""
    front, tried = share_points(result["front"]), share_points(result.get("trials", ()))
    original = share_points([{"nonembedding_share": 1.0, **result["original"]}])
    supernet = share_points([{"nonembedding_share": 1.0, **(result.get("supernet") or {})}])
    if not front + original + supernet:
        return "Nothing to plot: no network has a validation error.\n"
    everything = front + tried + original + supernet
    canvas = Canvas.around(everything, columns=max(width - 9, 20), rows=HEIGHT, errors=error_format(result))
    canvas.draw_steps(sorted(front))
    for points, mark in ((tried, "·"), (front, "●"), (supernet, "□"), (original, "◆")):
        canvas.draw_marks(points, mark)
    key = ["● front", "· tried", "◆ original", *(["□ super-network"] if supernet else [])]
    return canvas.text(below="share of the non-embedding parameters", key=key)


def share_points(networks: Sequence[Mapping[str, Any]]) -> list[Point]:
    return list(plot_points(networks, "validation_error").values())
