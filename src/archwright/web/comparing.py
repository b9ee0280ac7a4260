"""Runs and sub-networks side by side."""

from collections.abc import Mapping
from typing import Any

from archwright.reports.compress.compare import FRONTS, front_figures
from archwright.reports.compress.summary import half_size_member, keep_words, loss_cell
from archwright.reports.figures.fronts import ERRORS
from archwright.reports.figures.panels import Figure
from archwright.reports.figures.paper import volume_curves
from archwright.reports.numbers import (
    DASH,
    count,
    decimal,
    duration,
    error_format,
    fact,
    milliseconds,
    number,
    percent,
)
from archwright.reports.page import Interactive, Section, notice, plots, section
from archwright.reports.tables import table

Result = Mapping[str, Any]
HEAD = ("run", "task", "metric", "original", "test hypervolume", "front", "tried", "time", "about half: share", "loss")
SAME = {"out", "threads", "device", "workers", "ray"}
"""Options that say where a run was made, not what it is."""


def compare_sections(
    results: Mapping[str, Result],
    options: Mapping[str, Mapping[str, Any]],
    networks: Mapping[tuple[int, str], Result],
) -> list[Section | None]:
    """Sections for several runs and several sub-networks."""
    sections: list[Section | None] = []
    if results:
        sections += [fronts_section(results), numbers_section(results), volumes_section(results)]
        sections.append(options_section(options) if len(options) > 1 else None)
    if networks:
        sections += networks_sections(networks)
    return sections


def fronts_section(results: Mapping[str, Result]) -> Section:
    first = next(iter(results.values()))
    drawn = {name: one for name, one in results.items() if is_perplexity(one) == is_perplexity(first)}
    comparison = {"methods": drawn, "original": first["original"], "metric": first.get("metric")}
    figures = front_figures(comparison)
    tasks = {(result["model"], result["task"]) for result in drawn.values()}
    warning = (
        " The runs are about different models or tasks: errors cannot be compared, and the original is the first's."
        if len(tasks) > 1
        else ""
    )
    if others := [name for name in results if name not in drawn]:
        warning += f" Perplexities and shares of errors have no axis in common: {', '.join(others)} is not drawn."
    nothing = notice("None of these runs has a network with a size and an error.")
    blocks = plots(figures, "Size", "Error") if figures else nothing
    return section("fronts", "The fronts", FRONTS.replace("method", "run") + warning, blocks)


def is_perplexity(result: Result) -> bool:
    return bool(result.get("metric") == "perplexity")


def numbers_section(results: Mapping[str, Result]) -> Section:
    rows = []
    for name, result in results.items():
        errors, best = error_format(result), half_size_member(result)
        rows.append(
            [
                *(name, str(result["task"]), str(result.get("metric") or DASH)),
                errors.show(number(result["original"], "test_error"), 1),
                decimal(number(result, "test_hypervolume"), 3),
                *(str(len(result["front"])), str(len(result.get("trials") or ()))),
                duration(number(result, "seconds")),
                percent(number(best or {}, "nonembedding_share")),
                f"{loss_cell(result, best).rstrip(' ✓')} {errors.unit}" if best else DASH,
            ]
        )
    return section("numbers", "The numbers", "", table(HEAD, rows, left=(0, 1, 2)))


def volumes_section(results: Mapping[str, Result]) -> Section | None:
    curves: dict[tuple[str, ...], Figure] = {(over,): curve for over, curve in volume_curves(results).items()}
    note = "The hypervolume of everything tried so far, error and share up to (1, 1), on the rows of the search."
    return section("progress", "How they got there", note, plots(curves, "Over")) if curves else None


def options_section(options: Mapping[str, Mapping[str, Any]]) -> Section:
    """Options that are not the same in all of these runs."""
    names = sorted({name for own in options.values() for name in own} - SAME)
    different = [name for name in names if len({fact(own.get(name)) for own in options.values()}) > 1]
    rows = [[name, *(fact(own.get(name)) for own in options.values())] for name in different]
    note = "Options that differ between these runs; all others are the same."
    block = (
        table(("option", *options), rows, left=range(len(options) + 1)) if rows else notice("All options are equal.")
    )
    return section("options", "Differences of the configurations", note, block)


def networks_sections(networks: Mapping[tuple[int, str], Result]) -> list[Section | None]:
    columns, pictures = [], []
    for (trial, name), result in networks.items():
        member = next((each for each in result["front"] if each["trial"] == trial), None)
        if member is None:
            continue
        errors = error_format(result)
        columns.append(
            [
                *(f"trial {trial}", name),
                percent(number(member, "nonembedding_share"), 1),
                count(number(member, "parameters")),
                count(number(member, "flops")),
                milliseconds(*(number(member, "latency_ms", key) for key in ("median", "low", "high"))),
                count(number(member, "int8_bytes"), "B"),
                *(errors.show(number(member, key), 2) for key in ERRORS),
                f"{loss_cell(result, member).rstrip(' ✓')} {errors.unit}",
                keep_words(member).removeprefix("keeps "),
            ]
        )
        pictures.append(
            {"title": f"{name}, trial {trial}", "keep": member.get("keep"), "heads": result.get("heads")}
            | {"units": result.get("units")}
        )
    if not columns:
        return [section("networks", "Sub-networks", "", notice("These runs have no such members of their fronts."))]
    head = ("", "run", "share", "parameters", "FLOPs", "latency", "int8", "validation", "test", "loss", "keeps")
    rows = [list(row) for row in zip(head, *columns, strict=True)]
    side_by_side = table(("", *(column[0] for column in columns)), rows[1:], left=range(len(columns) + 1))
    drawn = Interactive("pictures", {"pictures": pictures})
    return [
        section("networks", "Sub-networks side by side", "", side_by_side),
        section("pictures", "What they keep", "A row per layer, heads as cells and units as a bar.", drawn),
    ]
