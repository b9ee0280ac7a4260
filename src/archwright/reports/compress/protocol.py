"""The page of several runs: the paper's protocol, its figures as far as the runs allow, and the numbers behind them."""

from collections.abc import Mapping
from typing import Any

from archwright.reports.compress.page import COEFFICIENTS, FIDELITY, correlation_cells
from archwright.reports.figures.fronts import fidelity_panel
from archwright.reports.figures.panels import figure
from archwright.reports.figures.paper import FIGURES
from archwright.reports.numbers import DASH, error_format, join_words
from archwright.reports.page import Block, Card, Section, notice, plot, render_page, section, text
from archwright.reports.tables import ReportTable, table

Protocol = Mapping[str, Any]
HEAD = ("task and model", "compared", "name", "test hypervolume", "search hypervolume", "regret", "seeds")
TITLES = {
    "methods": "Methods",
    "spaces": "Spaces",
    "strategies": "Training strategies",
    "samplers": "Samplers, weight-sharing NAS",
    "standard_samplers": "Samplers, standard NAS",
}
VOLUMES = (
    "Chosen fronts on test rows: the area that the members of a front cover up to (1, 1), raw test error against "
    "share, larger is better; no choice has seen these rows, so trying more brings no luck. The other tables are of "
    "everything tried, on the rows of the search, as pooled quantiles: at most 4, and the regret is what is missing to "
    "4. Mean and deviation over seeds; the largest of a column is marked. Numbers of different tables cannot be "
    "compared: each pools its own runs."
)
RULES = (
    "The training rows are split 70/30 into rows that train and rows that judge; the given development set is the test "
    "set, which no choice has seen.",
    "To compare hypervolumes across methods and seeds, both objectives (validation error and share of the "
    "non-embedding parameters) are replaced by their quantiles over everything that the compared runs of one task and "
    "model have tried: 0 is the smallest value of all, 1 the largest, equal values share the middle of their places.",
    "The hypervolume of these points up to the reference (2, 2) is at most 4; the regret is what is missing to 4. "
    "Curves show the mean over seeds and one standard deviation.",
    "Average ranks: {samples:,} bootstrap samples, each of which draws a task and one seed of every method on it and "
    "ranks the methods by their regret at every step, 1 the best (Feurer et al. 2015).",
    "Scores within sizes: the best test score among the networks of a front with at most 20, 30, ... 90 % of the "
    "non-embedding parameters, relative to the unpruned model, with lines at 95 and 90 %. Sizes and shares are of the "
    "non-embedding parameters, because embeddings are never pruned here.",
)


def render_protocol_page(protocol: Protocol) -> str:
    """A page that opens from disk, from a document of schema "archwright/protocol/1" (made by `archwright report`)."""
    tasks = join_words(dict.fromkeys(group["task"] for group in protocol["groups"])) or "No task"
    models = join_words(dict.fromkeys(group["model"] for group in protocol["groups"]))
    return render_page(
        f"{models} on {tasks}" if models else "What the spaces look like",
        protocol_sections(protocol),
        command="archwright report",
        lead=protocol_headline(protocol),
        cards=cards(protocol, tasks),
        schema=f"{protocol['schema']}, archwright {protocol.get('archwright', DASH)}",
        tab=f"{tasks}: the protocol of Klein et al. 2024",
    )


def protocol_sections(protocol: Protocol) -> list[Section | None]:
    """Numbers, every figure that the runs allow and that does not repeat another, rules, and what is missing."""
    figures = {number: paper.draw(protocol) for number, paper in FIGURES.items()}
    sections = []
    for number, drawing in figures.items():
        paper = FIGURES[number]
        if drawing and drawing != figures.get(paper.repeats):
            name = f"Figure {number}"
            title = f"{name}. {paper.title}"
            sections.append(section(f"figure-{number}", title, paper.caption, plot(drawing), short=name))
    missing = {number: FIGURES[number] for number, drawing in figures.items() if drawing is None}
    needs = [f"Figure {number} ({paper.title.lower()}) needs {paper.needs}." for number, paper in missing.items()]
    gaps = [*protocol["notes"], *needs]
    rules = [words.format(samples=protocol["rules"]["samples"]) for words in RULES]
    return [
        volumes_section(protocol),
        *sections,
        fidelity_section(protocol) if protocol["honesty"] else None,
        section("protocol", "How runs are compared", "", text(*rules)),
        section("missing", "What these runs do not show", "", text(*gaps)) if gaps else None,
    ]


def protocol_headline(protocol: Protocol) -> str:
    """Which method has the smallest regret, and on which tasks."""
    best: dict[str, list[str]] = {}
    for group in comparable_groups(protocol, "methods"):
        best.setdefault(smallest_regret(group["comparisons"]["methods"]["names"]), []).append(group["name"])
    sentences = [f"{name} has the smallest regret on {join_words(tasks)}." for name, tasks in best.items()]
    return " ".join(sentences) or "The figures that these runs allow, and what the others need."


def cards(protocol: Protocol, tasks: str) -> list[Card]:
    runs = [run for group in protocol["groups"] for run in group["runs"]]
    methods = dict.fromkeys(run["method"] for run in runs)
    return [
        ("Runs", str(len(runs)), "compared here"),
        ("Tasks", str(len({group["task"] for group in protocol["groups"]})), tasks),
        ("Methods", str(len(methods)), join_words(methods)),
        ("Seeds", str(len({run["seed"] for run in runs})), "of each, at most"),
    ]


def volumes_section(protocol: Protocol) -> Section:
    """Hypervolumes of every comparison with two names or more, a table each: names down, tasks across."""
    tables: list[Block] = []
    for kind, title in TITLES.items():
        columns = [(group["name"], group["comparisons"][kind]["names"]) for group in comparable_groups(protocol, kind)]
        names = list(dict.fromkeys(name for _, entries in columns for name in entries))
        names.sort(key=lambda name: -max(entries[name]["mean"] for _, entries in columns if name in entries))
        rows = [[name, *(volume_words(entries.get(name)) for _, entries in columns)] for name in names]
        bold = {(names.index(smallest_regret(entries)), place) for place, (_, entries) in enumerate(columns, 1)}
        if not rows:
            continue
        head = ("name", *(name for name, _ in columns))
        if any(entry.get("test") for _, entries in columns for entry in entries.values()):
            tested = [[name, *(volume_words((e.get(name) or {}).get("test")) for _, e in columns)] for name in names]
            tables.append(table(head, tested, title=f"{title}: chosen fronts on test rows"))
        tables.append(table(head, rows, title=title, bold=bold))
    alone = notice("There is only one method, space, strategy and sampler, so nothing to compare.")
    return section("numbers", "Hypervolumes", VOLUMES, *(tables or [alone]))


def comparable_groups(protocol: Protocol, kind: str) -> list[Mapping[str, Any]]:
    """The tasks where this comparison has two names or more."""
    return [group for group in protocol["groups"] if len(group["comparisons"].get(kind, {}).get("names", ())) > 1]


def smallest_regret(entries: Mapping[str, Mapping[str, Any]]) -> str:
    return min(entries, key=lambda name: float(entries[name]["regret"]))


def protocol_table(protocol: Protocol) -> ReportTable:
    """Hypervolume and regret of every comparison for the terminal, best first."""
    rows = []
    for kind, title in TITLES.items():
        for group in comparable_groups(protocol, kind):
            entries = sorted(group["comparisons"][kind]["names"].items(), key=lambda item: float(item[1]["regret"]))
            for place, (name, entry) in enumerate(entries):
                first = ["", ""] if place else [group["name"], title]
                seeds = ", ".join(str(seed) for seed in sorted(entry["seeds"]))
                volumes = [volume_words(entry.get("test")), volume_words(entry)]
                rows.append([*first, name, *volumes, f"{entry['regret']:.3f}", seeds])
    return table(HEAD, rows, title=protocol_headline(protocol), left=range(7), fold=range(7))


def volume_words(entry: Mapping[str, Any] | None) -> str:
    """Mean and, where there are several seeds, deviation."""
    if entry is None:
        return DASH
    return f"{entry['mean']:.3f}" + ("" if entry["deviation"] is None else f" ± {entry['deviation']:.3f}")


def fidelity_section(protocol: Protocol) -> Section:
    """Does the order inside the super-network hold outside of it? One panel and row per run that was studied."""
    panels, rows = [], []
    for study in protocol["honesty"]:
        panels.append(fidelity_panel(study, error_format(study), f"{study['name']}, seed {study['seed']}"))
        words = ["{} ({})".format(*correlation_cells(study.get(key) or {})) for key in COEFFICIENTS]
        size = study.get("size") or {}
        words += ["{} ({})".format(*correlation_cells(size.get(key) or {})) for key in COEFFICIENTS]
        rows.append([study["name"], str(study["seed"]), *words])
    alone = [f"{name}, size alone" for name in COEFFICIENTS.values()]
    return section(
        "honesty",
        "Does the super-network tell the truth?",
        FIDELITY.format(k="Some"),
        plot(figure(panels, height=380)),
        table(("task and model", "seed", *COEFFICIENTS.values(), *alone), rows),
    )
