"""Several methods on one task: the page, and the sentence, table and plot for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archwright.reports import notes
from archwright.reports.canvas import Canvas
from archwright.reports.figures.bars import bins_panel
from archwright.reports.figures.curves import volume_curves
from archwright.reports.figures.fronts import ERRORS, SIZES, fronts_panel
from archwright.reports.figures.parts import Figure, figure, looks_of, number, styles_of
from archwright.reports.measures import DASH, measure_of, percent
from archwright.reports.page import panels_page
from archwright.reports.panels import Card, Section, facts, notice, plot, plots, section, table
from archwright.reports.studies import study_sections
from archwright.reports.words import half_size, loss

if TYPE_CHECKING:
    from rich.table import Table

Compared = Mapping[str, Any]
MARKS = "●■▲◆✚★▼✖"
HEIGHT = 18
HEAD = ("method", "hypervolume", "front", "tried", "time", "half size: share", "validation", "test", "loss")


def compare_html(compared: Compared, protocol: Mapping[str, Any] | None = None) -> str:
    """A page that opens from disk: all fronts in one picture, hypervolumes, size bins, progress, and how it was made.

    `compared` has the schema "archwright/compare/1"; `protocol` (schema "archwright/protocol/1") adds the size bins.
    """
    sections = [
        fronts_section(compared),
        volumes_section(compared),
        bins_section(protocol),
        progress_section(compared),
        *study_sections(compared),
        made_section(compared),
    ]
    name = f"{compared['model']} on {compared['task']}: {len(compared['methods'])} methods"
    head = {"eyebrow": "archwright compress --compare", "title": name, "lead": compare_headline(compared)}
    foot = f"{compared['schema']}, archwright {compared.get('archwright', DASH)}. This file needs no network."
    return panels_page({**head, "cards": cards(compared), "sections": sections, "footer": foot}, name)


def ranked(compared: Compared) -> list[tuple[str, float]]:
    """Methods with their hypervolume, the largest first."""
    found = [(name, number(method, "hypervolume")) for name, method in compared["methods"].items()]
    return sorted([(name, volume) for name, volume in found if volume is not None], key=lambda pair: -pair[1])


def compare_headline(compared: Compared) -> str:
    """Who covers the most, spoken plainly."""
    order = ranked(compared)
    if not order:
        return "No method has a front yet."
    (best, volume), rest = order[0], order[1:]
    if not rest:
        return f"{best} is the only method; its hypervolume is {volume:.3f}."
    (second, next_volume), (last, least) = rest[0], rest[-1]
    tail = f", {last} the smallest ({least:.3f})" if len(rest) > 1 else ""
    return f"{best} has the largest hypervolume ({volume:.3f}), {second} follows with {next_volume:.3f}{tail}."


def cards(compared: Compared) -> list[Card]:
    measure, original, order = measure_of(compared), compared["original"], ranked(compared)
    key = "test_error" if number(original, "test_error") is not None else "validation_error"
    small = [(name, member) for name in compared["methods"] if (member := half_of(compared, name))]
    best = min(small, key=lambda pair: float(pair[1]["validation_error"]), default=None)
    found = [("Largest hypervolume", f"{order[0][1]:.3f}", order[0][0])] if order else []
    if best:
        detail = f"{best[0]}, {percent(best[1]['nonembedding_share'])} kept"
        found.append(("Best of half the size or less", loss_of(compared, best[1]), detail))
    minutes = number(compared, "minutes")
    time = [] if minutes is None else [("Wall-clock", f"{minutes:g} min", "for each method")]
    words = f"{key.partition('_')[0]} {measure.word}, fine-tuned"
    return [*found, ("Original", measure.show(number(original, key), 1), words), *time]


def half_of(compared: Compared, method: str) -> Mapping[str, Any] | None:
    return half_size({**compared, "front": compared["methods"][method]["front"]})


def loss_of(compared: Compared, member: Mapping[str, Any]) -> str:
    return measure_of(compared).loss_words(loss(compared, member))


def fronts_section(compared: Compared) -> Section:
    figures = front_figures(compared)
    block = (
        plots(figures, "Size", "Error") if figures else notice("No method has a network with a size and an error yet.")
    )
    return section("fronts", "The fronts", notes.FRONTS, block)


def front_figures(compared: Compared) -> dict[tuple[str, ...], Figure]:
    """A figure for every size and error that some front has measured."""
    fronts = {name: method["front"] for name, method in compared["methods"].items()}
    members = [member for front in fronts.values() for member in front]
    measure = measure_of(compared)
    return {
        (size.label, split): figure(
            [fronts_panel(fronts, compared["original"], measure, looks=styles_of(fronts), error=error, size=size)],
            columns=1,
            height=460,
        )
        for size in SIZES.values()
        for error, split in ERRORS.items()
        if any(number(member, error) is not None and number(member, *size.keys) is not None for member in members)
    }


def volumes_section(compared: Compared) -> Section:
    measure = measure_of(compared)
    explained = measure.explained.format(metric=compared.get("metric") or "metric")
    rows = [[name, *cells(compared, name), note_of(compared, name)] for name, _ in ordered(compared)]
    return section(
        "volumes",
        "The numbers",
        f"{notes.VOLUMES.format(against=measure.against)} {explained}",
        table((*HEAD, "note"), rows, bold={(0, 0), (0, 1)}, left=(0, len(HEAD))),
    )


def ordered(compared: Compared) -> list[tuple[str, float | None]]:
    """The methods by hypervolume, those without one last."""
    known = ranked(compared)
    return [*known, *((name, None) for name in compared["methods"] if name not in dict(known))]


def note_of(compared: Compared, name: str) -> str:
    return str(compared["methods"][name].get("note") or "")


def cells(compared: Compared, name: str) -> list[str]:
    """Everything a row of the table says about a method, apart from its name."""
    method, measure = compared["methods"][name], measure_of(compared)
    volume, member = number(method, "hypervolume"), half_of(compared, name)
    half = [DASH] * 4
    if member:
        errors = [measure.show(number(member, error), 1) for error in ERRORS]
        half = [percent(member["nonembedding_share"]), *errors, loss_of(compared, member)]
    shown = DASH if volume is None else f"{volume:.3f}"
    tried = method.get("trials") or []
    return [
        shown,
        str(len(method["front"])),
        str(len(tried)) if tried else DASH,
        clock(number(method, "seconds")),
        *half,
    ]


def clock(seconds: float | None) -> str:
    if seconds is None:
        return DASH
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def bins_section(protocol: Mapping[str, Any] | None) -> Section:
    groups = [of for of in (protocol or {"groups": []})["groups"] if of["bins"]]
    if not groups:
        return section(
            "bins", "How much can go", notes.BINS, notice("There are no test errors, so no scores within sizes.")
        )
    return section(
        "bins",
        "How much can go",
        notes.BINS,
        plot(figure([bins_panel(groups[0]["bins"], looks_of(protocol or {}, "method"))], columns=1, height=400)),
    )


def progress_section(compared: Compared) -> Section:
    figures: dict[tuple[str, ...], Figure] = {
        (over,): drawn for over, drawn in volume_curves(compared["methods"]).items()
    }
    block = plots(figures, "Over") if figures else notice("The hypervolume over time was not recorded.")
    return section("progress", "How they got there", notes.PROGRESS, block)


def made_section(compared: Compared) -> Section:
    about = {key: compared.get(key, DASH) for key in ("model", "family", "task", "metric", "seed", "minutes")}
    folders = {name: method["folder"] for name, method in compared["methods"].items() if method.get("folder")}
    parts = {"Options": about, "Folders": folders, "Environment": dict(compared.get("environment") or {})}
    return section("made", "How it was made", "", facts({name: pairs for name, pairs in parts.items() if pairs}))


def compare_table(compared: Compared) -> Table:
    """The methods by hypervolume, largest first, each with its best network of half the size or less."""
    from rich.table import Table
    from rich.text import Text

    name = Text(compare_headline(compared))
    shown = Table(title=name, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column, justify in zip(HEAD, ("left", *["right"] * (len(HEAD) - 1)), strict=True):
        shown.add_column(column, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for method, _ in ordered(compared):
        shown.add_row(Text(method), *cells(compared, method))
    return shown


def compare_plot(compared: Compared, width: int = 72) -> str:
    """All fronts drawn with characters: validation error over share, at most `width` wide."""
    fronts = {name: placed(method["front"]) for name, method in compared["methods"].items()}
    original = placed([{"nonembedding_share": 1.0, **compared["original"]}])
    points = [point for front in fronts.values() for point in front]
    if not points:
        return "Nothing to plot: no method has a front yet.\n"
    canvas = Canvas.around(points + original, columns=max(width - 9, 20), rows=HEIGHT, measure=measure_of(compared))
    marks = {name: MARKS[place % len(MARKS)] for place, name in enumerate(fronts)}
    for name, front in reversed(fronts.items()):
        canvas.marks(front, marks[name])
    canvas.marks(original, "◇")
    words = [f"{mark} {name}" for name, mark in marks.items()] + ["◇ original"]
    return canvas.text(below="share of the non-embedding parameters", key=words)


def placed(networks: list[Mapping[str, Any]]) -> list[tuple[float, float]]:
    pairs = [(number(network, "nonembedding_share"), number(network, "validation_error")) for network in networks]
    return [(share, error) for share, error in pairs if share is not None and error is not None]
