"""Sections that a page has only when its result has the study: honesty of the super-network, quantization."""

from collections.abc import Mapping
from typing import Any

from archwright.reports import notes
from archwright.reports.figures.checks import honesty_figure, quantized_figure
from archwright.reports.figures.parts import number
from archwright.reports.measures import DASH, measure_of, percent
from archwright.reports.panels import Section, plot, section, table
from archwright.reports.words import count

COEFFICIENTS = {"kendall": "Kendall's tau-b", "spearman": "Spearman's rho"}


def study_sections(result: Mapping[str, Any]) -> list[Section]:
    """The sections for what this result has."""
    return [make(result) for key, make in STUDIES.items() if result.get(key)]


def honesty_section(result: Mapping[str, Any]) -> Section:
    honesty = result["honesty"]
    rows = [[name, *interval(honesty.get(key) or {})] for key, name in COEFFICIENTS.items()]
    note = notes.HONESTY.format(k=honesty.get("k", len(honesty["pairs"])))
    figure = honesty_figure(honesty, measure_of(result))
    return section(
        "honesty",
        "Does the super-network tell the truth?",
        note,
        plot(figure),
        table(("", "correlation", "interval"), rows),
    )


def interval(found: Mapping[str, Any]) -> tuple[str, str]:
    """A correlation and its interval as text."""
    value, low, high = (number(found, key) for key in ("value", "low", "high"))
    shown = DASH if value is None else f"{value:.2f}"
    return shown, DASH if low is None or high is None else f"{low:.2f} to {high:.2f}"


def quantized_section(result: Mapping[str, Any]) -> Section:
    points, measure = result["quantized"]["points"], measure_of(result)
    rows = [
        [
            str(point.get("name") or DASH),
            str(point.get("bits") or DASH),
            str(point.get("runtime") or DASH),
            percent(number(point, "nonembedding_share")),
            f"{count(number(point, 'bytes'))}B",
            latency_words(point),
            measure.show(number(point, "validation_error"), 1),
            measure.show(number(point, "test_error"), 1),
        ]
        for point in points
    ]
    head = (
        "network",
        "bits",
        "runtime",
        "share",
        "weights",
        "latency",
        f"validation {measure.word}",
        f"test {measure.word}",
    )
    note = notes.QUANTIZED
    return section(
        "quantized",
        "Pruning and quantization",
        note,
        plot(quantized_figure(result["quantized"], measure)),
        table(head, rows, left=(0, 2)),
    )


def latency_words(network: Mapping[str, Any]) -> str:
    """Median and interval."""
    median, low, high = (number(network, "latency_ms", key) for key in ("median", "low", "high"))
    if median is None:
        return DASH
    return f"{median:.2f} ms" + ("" if low is None or high is None else f" ({low:.2f} to {high:.2f})")


STUDIES = {"honesty": honesty_section, "quantized": quantized_section}
