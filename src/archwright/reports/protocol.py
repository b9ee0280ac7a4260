"""The page of several runs: the paper's protocol, its figures as far as the runs allow, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archwright.reports import notes
from archwright.reports.figures import FIGURES
from archwright.reports.figures.checks import honesty_panel
from archwright.reports.figures.parts import Figure, figure
from archwright.reports.measures import DASH, measure_of
from archwright.reports.page import panels_page
from archwright.reports.panels import Block, Card, Section, notice, plot, section, table, text
from archwright.reports.studies import COEFFICIENTS, interval

if TYPE_CHECKING:
    from rich.table import Table

Protocol = Mapping[str, Any]
HEAD = ("task and model", "compared", "name", "hypervolume", "regret", "seeds")
TITLES = {
    "methods": "Methods",
    "spaces": "Spaces",
    "strategies": "Training strategies",
    "samplers": "Samplers, weight-sharing NAS",
    "standard_samplers": "Samplers, standard NAS",
}


def protocol_html(protocol: Protocol) -> str:
    """A page that opens from disk, from a document of schema "archwright/protocol/1" (made by `archwright report`)."""
    figures = {number: drawing(protocol) for number, drawing in FIGURES.items()}
    sections = [
        volumes_section(protocol),
        *figure_sections(figures),
        *honesty_sections(protocol),
        protocol_section(protocol),
        *missing_section(protocol, [number for number, made in figures.items() if made is None]),
    ]
    name = f"{about(protocol)}: the protocol of Klein et al. 2024"
    head = {"eyebrow": "archwright report", "title": title(protocol), "lead": lead(protocol)}
    foot = f"{protocol['schema']}, archwright {protocol.get('archwright', DASH)}. This file needs no network."
    return panels_page({**head, "cards": cards(protocol), "sections": sections, "footer": foot}, name)


def figure_sections(figures: Mapping[str, Figure | None]) -> list[Section]:
    """One for every figure that could be drawn and does not repeat another."""
    drawn = {number: made for number, made in figures.items() if made and made != figures.get(FIGURES[number].repeats)}
    return [
        section(
            f"figure-{number}",
            f"Figure {number}. {FIGURES[number].title}",
            FIGURES[number].caption,
            plot(made),
            short=f"Figure {number}",
        )
        for number, made in drawn.items()
    ]


def about(protocol: Protocol) -> str:
    return notes.listed(dict.fromkeys(of["task"] for of in protocol["groups"])) or "No task"


def title(protocol: Protocol) -> str:
    models = notes.listed(dict.fromkeys(of["model"] for of in protocol["groups"]))
    return f"{models} on {about(protocol)}" if models else "What the spaces look like"


def lead(protocol: Protocol) -> str:
    """Which method has the smallest regret, and on which tasks."""
    best: dict[str, list[str]] = {}
    for of in contested(protocol, "methods"):
        best.setdefault(leader(of["comparisons"]["methods"]["names"]), []).append(of["name"])
    sentences = [f"{name} has the smallest regret on {notes.listed(tasks)}." for name, tasks in best.items()]
    return " ".join(sentences) or "The figures that these runs allow, and what the others need."


def cards(protocol: Protocol) -> list[Card]:
    runs = [run for of in protocol["groups"] for run in of["runs"]]
    counts = {
        "Runs": (len(runs), "compared here"),
        "Tasks": (len({of["task"] for of in protocol["groups"]}), about(protocol)),
        "Methods": (len({run["method"] for run in runs}), notes.listed(dict.fromkeys(run["method"] for run in runs))),
        "Seeds": (len({run["seed"] for run in runs}), "of each, at most"),
    }
    return [(name, str(number), detail) for name, (number, detail) in counts.items()]


def volumes_section(protocol: Protocol) -> Section:
    """Hypervolumes of every comparison with two names or more, a table each: names down, tasks across."""
    note = (
        "Mean and deviation over seeds, on pooled quantiles, so at most 4; the regret is what is missing to 4. "
        "The largest of a column is marked. Numbers of different tables cannot be compared: each pools its own runs."
    )
    tables = [block for kind in TITLES if (block := volumes_table(protocol, kind))]
    alone = notice("There is only one method, space, strategy and sampler, so nothing to compare.")
    return section("numbers", "Hypervolumes", note, *(tables or [alone]))


def volumes_table(protocol: Protocol, kind: str) -> Block | None:
    columns = [(of["name"], of["comparisons"][kind]["names"]) for of in contested(protocol, kind)]
    names = list(dict.fromkeys(name for _, entries in columns for name in entries))
    names.sort(key=lambda name: -max(entries[name]["mean"] for _, entries in columns if name in entries))
    rows = [[name, *(spread(entries.get(name)) for _, entries in columns)] for name in names]
    bold = {(names.index(leader(entries)), place) for place, (_, entries) in enumerate(columns, 1)}
    head = ("name", *(name for name, _ in columns))
    return table(head, rows, caption=TITLES[kind], bold=bold) if rows else None


def contested(protocol: Protocol, kind: str) -> list[Mapping[str, Any]]:
    """The tasks where this comparison has two names or more."""
    found = [of for of in protocol["groups"] if kind in of["comparisons"]]
    return [of for of in found if len(of["comparisons"][kind]["names"]) > 1]


def leader(entries: Mapping[str, Mapping[str, Any]]) -> str:
    return min(entries, key=lambda name: float(entries[name]["regret"]))


def protocol_table(protocol: Protocol) -> Table:
    """Hypervolume and regret of every comparison for the terminal, best first."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=Text(lead(protocol)), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in HEAD:
        shown.add_column(name, overflow="fold")
    for kind, words in TITLES.items():
        for of in contested(protocol, kind):
            entries = sorted(of["comparisons"][kind]["names"].items(), key=lambda item: float(item[1]["regret"]))
            for place, (name, entry) in enumerate(entries):
                begins = ["", ""] if place else [of["name"], words]
                shown.add_row(*map(Text, [*begins, name, spread(entry), f"{entry['regret']:.3f}", seeds(entry)]))
    return shown


def spread(entry: Mapping[str, Any] | None) -> str:
    """Mean and, where there are several seeds, deviation."""
    if entry is None:
        return DASH
    return f"{entry['mean']:.3f}" + ("" if entry["deviation"] is None else f" ± {entry['deviation']:.3f}")


def seeds(entry: Mapping[str, Any]) -> str:
    return ", ".join(str(seed) for seed in sorted(entry["seeds"]))


def honesty_sections(protocol: Protocol) -> list[Section]:
    studies = protocol["honesty"]
    if not studies:
        return []
    panels = [honesty_panel(study, measure_of(study), f"{study['name']}, seed {study['seed']}") for study in studies]
    rows = [
        [
            study["name"],
            str(study["seed"]),
            *("{} ({})".format(*interval(study.get(key) or {})) for key in COEFFICIENTS),
        ]
        for study in studies
    ]
    head = ("task and model", "seed", *COEFFICIENTS.values())
    note = notes.HONESTY.format(k="Some")
    return [
        section(
            "honesty",
            "Does the super-network tell the truth?",
            note,
            plot(figure(panels, height=380)),
            table(head, rows),
        )
    ]


def protocol_section(protocol: Protocol) -> Section:
    paragraphs = [words.format(samples=protocol["rules"]["samples"]) for words in notes.PROTOCOL]
    return section("protocol", "How runs are compared", "", text(*paragraphs))


def missing_section(protocol: Protocol, missing: list[str]) -> list[Section]:
    """What the runs leave open, and what each missing figure needs."""
    needs = [f"Figure {number} ({FIGURES[number].title.lower()}) needs {FIGURES[number].needs}." for number in missing]
    words = [*protocol["notes"], *needs]
    return [section("missing", "What these runs do not show", "", text(*words))] if words else []
