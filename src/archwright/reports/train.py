"""What `archwright train` shows: a few lines in the terminal, and a page of one training, of GLUE or of an ablation."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from archwright.reports.figures.panels import Figure, Panel, assign_styles, figure, level, line
from archwright.reports.numbers import DASH, significant
from archwright.reports.page import Section, Site, facts, plot, render_page, section
from archwright.reports.rivals import rivals_section
from archwright.reports.tables import table

Document = Mapping[str, Any]
SETTLED = 0.9
"""Spearman with the end from which on a ranking is called settled."""
LOSS = "Means of neighbouring steps; log.csv has every one."
COLUMNS = "Official metrics on the development rows, in per cent; the column of the leaderboard first."
AVERAGES = "As papers print them. Where a column is missing, the mean is over those that are there."
PUBLISHED = "Of models of a similar size, pre-trained for days on other text; not measured here:"
SCORES = "Every line is an architecture: its score when training is stopped there and judged."
RANKING = (
    "Spearman's correlation between the scores after so many steps and those at the end; the dotted line is 0.9. "
    "The published table is that of the FlexiBERT benchmark, without steps that copy the scores of others."
)


def train_lines(document: Document, folder: Path | None) -> Iterator[str]:
    """The result in words; `document` has the schema "archwright/train/1"."""
    if losses := document.get("losses"):
        yield (
            f"{document['lesson']}: {document['parameters']:,} parameters, {document['steps']:,} steps, "
            f"{document['tokens']:,} tokens in {document['seconds']['training']:.0f} s "
            f"({significant(document.get('tokens_per_second'))} per second)"
        )
        yield f"training loss {significant(losses['first'])} -> {significant(losses['last'])}"
    if document.get("teacher_metrics"):
        yield f"teacher {document.get('teacher')}: {score_words(document['teacher_metrics'])}"
    if document.get("start"):
        yield from start_lines(document["start"])
    if collapse := document.get("collapse"):
        rate = significant(collapse["learning_rate"])
        yield f"collapsed at step {collapse['step']:,} ({collapse['reason']}), begun again at a learning rate of {rate}"
    if document.get("collapsed"):
        yield f"the trained network has learnt nothing: {document['collapsed']}; try {after_collapse(document)}"
    if document.get("forecast"):
        expected, took = document["forecast"]["seconds"], document["seconds"]["training"]
        yield f"training took {took:.0f} s, {expected:.0f} s were forecast"
    if document.get("teacher_cache"):
        yield cache_line(document["teacher_cache"])
    if document.get("validation"):
        yield from validation_lines(document["validation"])
    if document.get("published_scores"):
        yield from published_lines(document["published_scores"])
    for column, scores in (document.get("columns") or {}).items():
        yield f"{column:8} " + score_words({name: 100 * value for name, value in scores.items()})
    if document.get("columns"):
        yield from average_lines(document)
    if document.get("ablation"):
        yield from ablation_lines(document)
    if folder is not None:
        yield f"folder: {folder}"


def start_lines(start: Document) -> Iterator[str]:
    """What a student had of its teacher before any training."""
    rows, single = start["rows"], start["rows"] == 1
    yield "started from the teacher, " + ("fitted on one row:" if single else f"fitted and judged on {rows:,} rows:")
    for part in start["parts"]:
        share = part["explained"]
        explained = "" if share is None else f": {share:.0%} of the variance of the teacher's state"
        yield f"  {part['part']}, {part['source']}{explained}"


def cache_line(cache: Document) -> str:
    """What was kept of the teacher's answers, and what that was good for."""
    kept = f"teacher's answers to {cache['rows']:,} rows ({cache['share']:.0%}) kept in {cache['bytes'] / 1e9:.2f} GB"
    first, later = (cache["tokens_per_second"][name] for name in ("first_epoch", "later"))
    if not first or not later:
        return kept
    return f"{kept}: {significant(first)} tokens per second in the first epoch, {significant(later)} from then on"


def score_words(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {significant(value)}" for name, value in scores.items())


def after_collapse(document: Document) -> str:
    """What may help a network that has learnt nothing."""
    if document.get("teacher_metrics") and not document.get("start"):  # the layers of a teacher outweigh its answers
        return "--start teacher, --layer-weight 0 or a lower --learning-rate"
    return "a lower --learning-rate"


def validation_lines(validation: Document) -> Iterator[str]:
    before, after = validation.get("before") or {}, validation["after"]
    for name, value in after.items():
        if isinstance(value, int | float):
            start = f"{significant(before[name])} -> " if name in before else ""
            yield f"{name} {start}{significant(value)}"
    for split, scores in (after.get("splits") or {}).items():
        if scores != {name: after.get(name) for name in scores}:
            yield f"{split}: {score_words(scores)}"


def published_lines(published: Document) -> Iterator[str]:
    """Scores of others on the same rows, after days of pre-training on other text."""
    yield f"published by {published['source']}, {published['split']} rows, in per cent, not measured here:"
    for row in published["models"]:
        size = f"{row['parameters'] / 1e6:.1f}M"
        yield f"  {row['model']} ({size}, Table {row['table']}): {score_words(row['scores'])}"


def average_lines(document: Document) -> Iterator[str]:
    for name, average in document["averages"].items():
        missing = f", without {', '.join(average['missing'])}" if average["missing"] else ""
        yield f"{name}: {significant(100 * average['mean_of_present'])}{missing}"


def ablation_lines(document: Document) -> Iterator[str]:
    studies = {"here": document["ablation"], "FlexiBERT benchmark, as published": document.get("published")}
    for where, study in studies.items():
        if not study:
            continue
        yield f"{where}: the ranking is {settling_words(study)} (Spearman >= {SETTLED} with the end)"
        for moment in study["moments"]:
            mean, rho = significant(moment["mean"]), significant(moment["spearman"])
            yield f"  {moment['steps']:>9,} steps: mean {mean}, Spearman with the end {rho}"
    for step, other in (document.get("published") or {"copies": {}})["copies"].items():
        yield f"  {int(step):>9,} steps: left out, a copy of the scores after {other:,} steps"


def settling_words(study: Document) -> str:
    end = study["settled_at"]
    return "settled only at the end" if end is None else f"settled from {end:,} steps on"


def render_train_page(document: Document, *, site: Site | None = None) -> str:
    """A page that opens from disk: what was measured, and how it was made."""
    if document.get("columns"):
        title, lead = f"GLUE: {len(document['tasks'])} tasks", ". ".join(average_lines(document))
    elif document.get("ablation"):
        count = len(document["ablation"]["architectures"])
        title = f"{document['lesson']}: {count} architectures over the steps"
        lead = f"The ranking is {settling_words(document['ablation'])}"
    else:
        title = f"{document['lesson']}: {document['parameters']:,} parameters"
        lead = ". ".join(train_lines({**document, "published_scores": None}, None))  # they have a table
    return render_page(
        title,
        train_sections(document),
        command="archwright train",
        lead=f"{lead}.",
        schema=str(document.get("schema", DASH)),
        explore=True,
        site=site,
    )


def train_sections(document: Document) -> list[Section]:
    sections: list[Section] = []
    if document.get("losses"):
        points: Sequence[Mapping[str, float]] = document["losses"]["curve"]
        steps, losses = [point["step"] for point in points], [point["loss"] for point in points]
        curves = line_figure({"training loss": (steps, losses)}, "loss")
        sections.append(section("loss", "Loss over the steps", LOSS, plot(curves)))
    if rivals := rivals_section(document):
        sections.append(rivals)
    if published := document.get("published_scores"):
        sections.append(published_section(published))
    if document.get("columns"):
        sections += glue_sections(document)
    if document.get("ablation"):
        sections += ablation_sections(document)
    panels = {
        "Training": {key: value for key, value in document.items() if not isinstance(value, Mapping | list)},
        "Schedule": document.get("schedule"),
        "Environment": document.get("environment"),
    }
    made = facts({name: pairs for name, pairs in panels.items() if pairs})
    return [*sections, section("made", "How it was made", "", made)]


def line_figure(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], y: str) -> Figure:
    """Steps and values of each name."""
    styles = assign_styles(curves)
    lines = [line(steps, values, name, styles[name]) for name, (steps, values) in curves.items()]
    return figure([Panel("", lines, "steps", y)], columns=1, height=360)


def published_section(published: Document) -> Section:
    """Models of a similar size, as printed."""
    names = list(dict.fromkeys(name for row in published["models"] for name in row["scores"]))
    rows = [
        [row["model"], f"{row['parameters'] / 1e6:.1f}M", f"Table {row['table']}"]
        + [f"{row['scores'][name]:.1f}" if name in row["scores"] else DASH for name in names]
        for row in published["models"]
    ]
    words = f"{PUBLISHED} {published['source']}, {published['split']} rows, in per cent."
    return section("published", "Published scores", words, table(("model", "parameters", "printed in", *names), rows))


def glue_sections(document: Document) -> list[Section]:
    columns, averages = document["columns"], document["averages"]
    names = list(dict.fromkeys(name for scores in columns.values() for name in scores))
    scores = [[column, *(hundredths(scores.get(name)) for name in names)] for column, scores in columns.items()]
    means = [
        [name, hundredths(of["mean"]), hundredths(of["mean_of_present"]), ", ".join(of["missing"]) or DASH]
        for name, of in averages.items()
    ]
    head = ("average", "mean", "of those present", "missing")
    return [
        section("columns", "Tasks", COLUMNS, table(("task", *names), scores)),
        section("averages", "Averages", AVERAGES, table(head, means, left=(0, 3))),
    ]


def hundredths(value: float | None) -> str:
    """As leaderboards print scores: in per cent, without the sign."""
    return DASH if value is None else f"{100 * value:.1f}"


def ablation_sections(document: Document) -> list[Section]:
    study = document["ablation"]
    curves = {
        f"architecture {place}": ([int(step) for step in each["scores"]], list(each["scores"].values()))
        for place, each in enumerate(study["architectures"])
    }
    studies = {name: each for name, each in (("here", study), ("published", document.get("published"))) if each}
    styles, panels = assign_styles(studies), []
    for name, each in studies.items():
        steps, correlations = zip(*((m["steps"], m["spearman"]) for m in each["moments"]), strict=True)
        trace = line(steps, correlations, name, styles[name])
        title = f"{name}: {settling_words(each)}"
        panels.append(Panel(title, [trace], "steps", "Spearman with the end", [level(SETTLED)]))
    scores, ranking = line_figure(curves, study["score"]), figure(panels, columns=2, height=320)
    return [
        section("scores", "Scores over the steps", SCORES, plot(scores), short="Scores"),
        section("ranking", "How early the ranking settles", RANKING, plot(ranking), short="Ranking"),
    ]
