"""Several methods on one task: the page, and the sentence, table and plot for the terminal."""

from collections.abc import Mapping
from typing import Any

from archwright.reports.compress.page import study_sections
from archwright.reports.compress.summary import half_size_member, loss, loss_cell, share_points
from archwright.reports.figures.fronts import ERRORS, SIZES, fronts_panel, plot_points
from archwright.reports.figures.panels import Figure, assign_styles, figure, protocol_styles
from archwright.reports.figures.paper import bins_panel, volume_curves
from archwright.reports.numbers import DASH, decimal, duration, error_format, number, percent
from archwright.reports.page import Card, Section, Site, facts, notice, plot, plots, render_page, section
from archwright.reports.tables import ReportTable, table
from archwright.reports.text_plot import Canvas

Comparison = Mapping[str, Any]
MARKS = "●■▲◆✚★▼✖"
HEIGHT = 18
HEAD = (
    *("method", "test hypervolume", "search hypervolume", "front", "tried", "time"),
    *("half size: share", "validation", "test", "loss"),
)
FRONTS = (
    "Lower and further left is better. One point per member of a front; a line holds an error until the next larger "
    "network that has a lower one. Fronts were chosen on validation data, so on test data a line may leave points "
    "behind. A name below the plot hides or shows its method."
)
VOLUMES = (
    "The test hypervolume is the area that the members of a method's front cover on test rows, which no choice has "
    "seen, up to the reference (1, 1), {against} against share of the non-embedding parameters; larger is better. The "
    "search hypervolume is of everything a method tried on the rows that it searched with, so a method that tries more "
    "has more luck. Half size: what select answers for about half of the non-embedding parameters (up to 52 %), and "
    "what it loses on test rows with the 95 % interval of the difference row by row."
)
BINS = (
    "For every share that was removed: the best test score of a network that small (to within 2 points), as a "
    "share of the unpruned model's (Klein et al. 2024, Figure 8). The lines are at 100, 95 and 90 %. Choosing by test "
    "score flatters all methods alike; to pick a network, use the validation error."
)
PROGRESS = (
    "The hypervolume of everything tried so far. Time is wall-clock of the method, as far as it was recorded for each "
    "network."
)


def render_compare_page(
    comparison: Comparison, protocol: Mapping[str, Any] | None = None, *, site: Site | None = None
) -> str:
    """A page that opens from disk: all fronts in one picture, hypervolumes, size bins, progress, and how it was made.

    `comparison` has the schema "archwright/compare/1"; `protocol` (schema "archwright/protocol/1") adds the size bins.
    """
    return render_page(
        f"{comparison['model']} on {comparison['task']}: {len(comparison['methods'])} methods",
        compare_sections(comparison, protocol),
        command="archwright compress --compare",
        lead=compare_headline(comparison),
        cards=cards(comparison),
        schema=f"{comparison['schema']}, archwright {comparison.get('archwright', DASH)}",
        site=site,
    )


def compare_sections(comparison: Comparison, protocol: Mapping[str, Any] | None = None) -> list[Section | None]:
    fronts = front_figures(comparison)
    curves: dict[tuple[str, ...], Figure] = {
        (over,): curve for over, curve in volume_curves(comparison["methods"]).items()
    }
    bins = [group["bins"] for group in (protocol or {"groups": []})["groups"] if group["bins"]]
    no_fronts = notice("No method has a network with a size and an error yet.")
    no_bins = notice("There are no test errors, so no scores within sizes.")
    no_curves = notice("The hypervolume over time was not recorded.")
    bins_figure = [bins_panel(each, protocol_styles(protocol or {}, "method")) for each in bins[:1]]
    return [
        section("fronts", "The fronts", FRONTS, plots(fronts, "Size", "Error") if fronts else no_fronts),
        volumes_section(comparison),
        section("bins", "How much can go", BINS, plot(figure(bins_figure, columns=1, height=400)) if bins else no_bins),
        section("progress", "How they got there", PROGRESS, plots(curves, "Over") if curves else no_curves),
        *study_sections(comparison),
        made_section(comparison),
    ]


def volume_key(comparison: Comparison) -> str:
    """What methods are compared by: the hypervolume on test rows, of older documents that of the search."""
    tested = all(number(method, "test_hypervolume") is not None for method in comparison["methods"].values())
    return "test_hypervolume" if tested else "hypervolume"


def methods_by_volume(comparison: Comparison) -> dict[str, float | None]:
    """Methods with their hypervolume, the largest first, those without one last."""
    key = volume_key(comparison)
    volumes = {name: number(method, key) for name, method in comparison["methods"].items()}
    return dict(sorted(volumes.items(), key=lambda item: (item[1] is None, -(item[1] or 0.0))))


def compare_headline(comparison: Comparison) -> str:
    """Who covers the most, spoken plainly."""
    order = [(name, volume) for name, volume in methods_by_volume(comparison).items() if volume is not None]
    if not order:
        return "No method has a front yet."
    (best, volume), rest = order[0], order[1:]
    word = volume_key(comparison).replace("_", " ")
    if not rest:
        return f"{best} is the only method; its {word} is {volume:.3f}."
    (second, next_volume), (last, least) = rest[0], rest[-1]
    tail = f", {last} the smallest ({least:.3f})" if len(rest) > 1 else ""
    return f"{best} has the largest {word} ({volume:.3f}), {second} follows with {next_volume:.3f}{tail}."


def cards(comparison: Comparison) -> list[Card]:
    errors, original, minutes = error_format(comparison), comparison["original"], number(comparison, "minutes")
    best = next(iter(methods_by_volume(comparison).items()), ("", None))
    result: list[Card] = (
        [] if best[1] is None else [(f"Largest {volume_key(comparison).replace('_', ' ')}", f"{best[1]:.3f}", best[0])]
    )
    small = [(name, member) for name in comparison["methods"] if (member := best_half(comparison, name))]
    if small:
        name, member = min(small, key=lambda pair: float(pair[1]["validation_error"]))
        lost = errors.loss_words(loss(comparison, member))
        result.append(("Best of about half the size", lost, f"{name}, {percent(member['nonembedding_share'])} kept"))
    key = "test_error" if number(original, "test_error") is not None else "validation_error"
    words = f"{ERRORS[key]} {errors.word}, fine-tuned"
    time: list[Card] = [] if minutes is None else [("Wall-clock", f"{minutes:g} min", "for each method")]
    return [*result, ("Original", errors.show(number(original, key), 1), words), *time]


def best_half(comparison: Comparison, method: str) -> Mapping[str, Any] | None:
    """The method's best network of at most half the size."""
    entry = comparison["methods"][method]
    return half_size_member({**comparison, "front": entry["front"], "selection": entry.get("selection")})


def front_figures(comparison: Comparison) -> dict[tuple[str, ...], Figure]:
    """A figure for every size and error that some front has measured."""
    fronts = {name: method["front"] for name, method in comparison["methods"].items()}
    original, errors, styles = comparison["original"], error_format(comparison), assign_styles(fronts)
    return {
        (size.label, split): figure(
            [fronts_panel(fronts, original, errors, styles=styles, error=error, size=size)], columns=1, height=460
        )
        for size in SIZES.values()
        for error, split in ERRORS.items()
        if any(plot_points(front, error, size) for front in fronts.values())
    }


def volumes_section(comparison: Comparison) -> Section:
    errors = error_format(comparison)
    explanation = errors.explanation.format(metric=comparison.get("metric") or "metric")
    rows = [
        [*method_row(comparison, name), str(comparison["methods"][name].get("note") or "")]
        for name in methods_by_volume(comparison)
    ]
    return section(
        "volumes",
        "The numbers",
        f"{VOLUMES.format(against=errors.against)} {explanation}",
        table((*HEAD, "note"), rows, bold={(0, 0), (0, 1)}, left=(0, len(HEAD))),
    )


def method_row(comparison: Comparison, name: str) -> list[str]:
    """The cells below HEAD for a method."""
    method, errors, member = comparison["methods"][name], error_format(comparison), best_half(comparison, name)
    half = [DASH] * 4
    if member:
        shown = [errors.show(number(member, error), 1) for error in ERRORS]
        half = [percent(member["nonembedding_share"]), *shown, loss_cell(comparison, member).rstrip(" ✓")]
    return [
        name,
        decimal(number(method, "test_hypervolume"), 3),
        decimal(number(method, "hypervolume"), 3),
        str(len(method["front"])),
        str(len(method.get("trials") or [])) if method.get("trials") else DASH,
        duration(number(method, "seconds")),
        *half,
    ]


def made_section(comparison: Comparison) -> Section:
    options = {key: comparison.get(key) for key in ("model", "family", "task", "metric", "seed", "minutes")}
    folders = {name: method["folder"] for name, method in comparison["methods"].items() if method.get("folder")}
    panels = {"Options": options, "Folders": folders, "Environment": dict(comparison.get("environment") or {})}
    return section("made", "How it was made", "", facts({name: pairs for name, pairs in panels.items() if pairs}))


def compare_table(comparison: Comparison) -> ReportTable:
    """The methods by hypervolume, largest first, each with its best network of half the size or less."""
    rows = [method_row(comparison, name) for name in methods_by_volume(comparison)]
    return table(HEAD, rows, title=compare_headline(comparison))


def draw_fronts(comparison: Comparison, width: int = 72) -> str:
    """All fronts drawn with characters: validation error over share, at most `width` wide."""
    fronts = {name: share_points(method["front"]) for name, method in comparison["methods"].items()}
    original = share_points([{"nonembedding_share": 1.0, **comparison["original"]}])
    points = [point for front in fronts.values() for point in front]
    if not points:
        return "Nothing to plot: no method has a front yet.\n"
    errors = error_format(comparison)
    canvas = Canvas.around(points + original, columns=max(width - 9, 20), rows=HEIGHT, errors=errors)
    marks = {name: MARKS[place % len(MARKS)] for place, name in enumerate(fronts)}
    for name, front in reversed(fronts.items()):
        canvas.draw_marks(front, marks[name])
    canvas.draw_marks(original, "◇")
    key = [f"{mark} {name}" for name, mark in marks.items()] + ["◇ original"]
    return canvas.text(below="share of the non-embedding parameters", key=key)
