"""The page of `archwright train`: one training, all tasks of GLUE, or a ranking over the steps."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from archwright.reports.figures.curves import line
from archwright.reports.figures.parts import Figure, Panel, figure, level, styles_of, title
from archwright.reports.measures import DASH
from archwright.reports.page import panels_page
from archwright.reports.panels import Block, Section, facts, plot, section, table
from archwright.reports.rank.page import SCRIPTS, STYLES, plain
from archwright.reports.train import average_lines, settled, train_lines

Document = Mapping[str, Any]
SETTLED = 0.9
"""Spearman with the end from which on a ranking is called settled."""
LOSS = "Means of neighbouring steps; log.csv has every one."
COLUMNS = "Official metrics on the development rows, in per cent; the column of the leaderboard first."
AVERAGES = "As papers print them. Where a column is missing, the mean is over those that are there."
SCORES = "Every line is an architecture: its score when training is stopped there and judged."
RANKING = (
    "Spearman's correlation between the scores after so many steps and those at the end; the dotted line is 0.9. "
    "The published table is that of the FlexiBERT benchmark, without steps that copy the scores of others."
)


def train_html(document: Document) -> str:
    """A page that opens from disk: what was measured, and how it was made."""
    name = heading(document)
    sections = [one for part, drawn in SECTIONS.items() if document.get(part) for one in drawn(document)]
    head = {"eyebrow": "archwright train", "title": name, "lead": lead(document), "cards": []}
    foot = f"{document.get('schema', DASH)}. This file needs no network."
    shown = {**head, "sections": [*sections, made(document)], "footer": foot}
    return panels_page(shown, name, styles=STYLES, scripts=SCRIPTS)


def heading(document: Document) -> str:
    if document.get("columns"):
        return f"GLUE: {len(document['tasks'])} tasks"
    if document.get("ablation"):
        return f"{document['lesson']}: {len(document['ablation']['architectures'])} architectures over the steps"
    return f"{document['lesson']}: {document['parameters']:,} parameters"


def lead(document: Document) -> str:
    """In words what it came to; of many trainings the averages or the ranking."""
    if document.get("columns"):
        return ". ".join(average_lines(document)) + "."
    if document.get("ablation"):
        return f"The ranking is {settled(document['ablation'])}."
    return ". ".join(train_lines(document, None)) + "."


def loss_section(document: Document) -> Iterator[Section]:
    points: Sequence[Mapping[str, float]] = document["losses"]["curve"]
    name = "training loss"
    curve = line([p["step"] for p in points], [p["loss"] for p in points], name, styles_of([name])[name])
    drawn = figure([Panel("", [curve], title("steps"), title("loss"))], columns=1, height=360)
    yield section("loss", "Loss over the steps", LOSS, plot(drawn))


def glue_sections(document: Document) -> Iterator[Section]:
    yield section("columns", "Tasks", COLUMNS, columns_table(document["columns"]))
    rows = [
        [name, percent(of["mean"]), percent(of["mean_of_present"]), ", ".join(of["missing"]) or DASH]
        for name, of in document["averages"].items()
    ]
    shown = table(("average", "mean", "of those present", "missing"), rows, left=(0, 3))
    yield section("averages", "Averages", AVERAGES, shown)


def columns_table(columns: Mapping[str, Mapping[str, float]]) -> Block:
    names = list(dict.fromkeys(name for scores in columns.values() for name in scores))
    rows = [[column, *(percent(scores.get(name)) for name in names)] for column, scores in columns.items()]
    return table(("task", *names), rows)


def percent(value: float | None) -> str:
    return DASH if value is None else f"{100 * value:.1f}"


def ablation_sections(document: Document) -> Iterator[Section]:
    found = document["ablation"]
    yield section("scores", "Scores over the steps", SCORES, plot(score_curves(found)), short="Scores")
    tables = {"here": found, "published": document.get("published")}
    there = {name: of for name, of in tables.items() if of}
    yield section("ranking", "How early the ranking settles", RANKING, plot(settling_curves(there)), short="Ranking")


def score_curves(found: Document) -> Figure:
    names = [f"architecture {place}" for place in range(len(found["architectures"]))]
    looks = styles_of(names)
    curves = [
        line([int(step) for step in one["scores"]], list(one["scores"].values()), name, looks[name])
        for name, one in zip(names, found["architectures"], strict=True)
    ]
    return figure([Panel("", curves, title("steps"), title(found["score"]))], columns=1, height=360)


def settling_curves(tables: Mapping[str, Document]) -> Figure:
    looks = styles_of(tables)
    panels = [
        Panel(
            f"{name}: {settled(of)}",
            [line([m["steps"] for m in of["moments"]], [m["spearman"] for m in of["moments"]], name, looks[name])],
            title("steps"),
            title("Spearman with the end"),
            [level(SETTLED)],
        )
        for name, of in tables.items()
    ]
    return figure(panels, columns=2, height=320)


SECTIONS = {"losses": loss_section, "columns": glue_sections, "ablation": ablation_sections}
"""Part of a document -> what is drawn of it."""


def made(document: Document) -> Section:
    shown = {
        "Training": plain({k: v for k, v in document.items() if not isinstance(v, Mapping | list)}),
        "Schedule": plain(document.get("schedule") or {}),
        "Environment": plain(document.get("environment") or {}),
    }
    return section("made", "How it was made", "", facts({name: pairs for name, pairs in shown.items() if pairs}))
