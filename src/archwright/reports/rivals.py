"""A network among its rivals of the same size and time, and among published ones."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.numbers import DASH, millions, significant
from archwright.reports.page import Section, section
from archwright.reports.tables import ReportTable, table

Document = Mapping[str, Any]
PUBLISHED = "published (Table {table}), not measured here: {scores}"
SHARES = ("accuracy", "f1", "exact", "macro_f1", "micro_f1")
"""Metrics that are a share of the rows, or near enough to one for a standard error of the same size."""
RULE = (
    "None has more parameters than the network itself, and each was given the same time on this machine: at most "
    "{minutes:.1f} minutes, a random design the same number of steps instead. What a teacher took to learn the task "
    "counts where it learnt it in this training, not where it came from another one. One seed each. Published rows are "
    "development scores of models that were pre-trained for days on other text."
)


def rivals_table(rivals: Document) -> ReportTable:
    """A row per network, the one that was trained first; for `Console.print` and for a page."""
    names = list(dict.fromkeys(name for row in rivals["networks"] for name in row["metrics"] or ()))
    best = best_network(rivals)
    rows = [
        [
            *(row["rival"], millions(row["parameters"]), DASH if row["seconds"] is None else f"{row['seconds']:.0f}"),
            *(significant((row["metrics"] or {}).get(name)) for name in names),
            row["what"] or f"none: {row['missing']}",
        ]
        for row in rivals["networks"]
    ]
    styles = {place: "bold" for place, row in enumerate(rivals["networks"]) if row is best}
    for model in (rivals.get("published_scores") or {"models": ()})["models"]:
        styles[len(rows)] = "dim"
        printed = ", ".join(f"{name} {value:g}" for name, value in model["scores"].items())
        words = PUBLISHED.format(table=model["table"], scores=printed)
        rows.append([model["model"], millions(model["parameters"]), *[DASH] * (1 + len(names)), words])
    title = f"{rivals['task']}, {rivals['rows']:,} test rows: the same size and time by other ways"
    head = ("", "parameters", "seconds", *names, "what")
    bold = {(place, 0) for place, style in styles.items() if style == "bold"}
    last = len(head) - 1
    return table(
        *(head, rows), title=title, left=(0, last), fold=(last,), captions=verdict(rivals), styles=styles, bold=bold
    )


def best_network(rivals: Document) -> Document:
    """That with the highest task's metric (the lowest perplexity)."""
    trained = [row for row in rivals["networks"] if row["metrics"]]
    sign = -1 if rivals["metric"] == "perplexity" else 1
    return max(trained, key=lambda row: sign * row["metrics"].get(own_metric(rivals), -math.inf))


def own_metric(rivals: Document) -> str:
    """The task's own metric, as the scores call it."""
    names: Sequence[str] = list(rivals["networks"][0]["metrics"])
    return rivals["metric"] if rivals["metric"] in names else names[0]


def verdict(rivals: Document) -> list[str]:
    """Whether another way is better, and what difference the rows can show."""
    best, own, name = best_network(rivals), rivals["networks"][0], own_metric(rivals)
    others = [row for row in rivals["networks"][1:] if row["metrics"]]
    if not others:
        return ["There is no rival of this size to compare with."]
    if best is own:
        words = f"None of the rivals is better in {name}."
    else:
        scores = f"{significant(best['metrics'][name])} against {significant(own['metrics'][name])}"
        words = f"{best['rival']} is better: {name} {scores}."
    if name not in SHARES:
        return [words]
    share = min(max(own["metrics"][name], 0.0), 1.0)
    error = math.sqrt(2 * share * (1 - share) / rivals["rows"])
    rows = f"On {rivals['rows']:,} rows a difference has a standard error of about {100 * error:.1f} points."
    return [f"{words} {rows}"]


def rivals_section(document: Document) -> Section | None:
    rivals = document.get("rivals")
    if not rivals:
        return None
    note = f"{RULE.format(minutes=rivals['minutes'])} {' '.join(verdict(rivals))}"
    return section("rivals", "Rivals of the same size and time", note, rivals_table(rivals), short="Rivals")
