"""What `archwright train` shows in the terminal: a few lines."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from archwright.reports.measures import DASH

Document = Mapping[str, Any]


def train_lines(document: Document, folder: Path | None) -> Iterator[str]:
    """The result in words; `document` has the schema "archwright/train/1"."""
    for part, lines in PARTS.items():
        if document.get(part):
            yield from lines(document)
    if folder is not None:
        yield f"folder: {folder}"


def training_lines(document: Document) -> Iterator[str]:
    losses, speed = document["losses"], document.get("tokens_per_second")
    seconds = document["seconds"]["training"]
    yield (
        f"{document['lesson']}: {document['parameters']:,} parameters, {document['steps']:,} steps, "
        f"{document['tokens']:,} tokens in {seconds:.0f} s ({number(speed, 4)} per second)"
    )
    yield f"training loss {number(losses['first'])} -> {number(losses['last'])}"


def validation_lines(document: Document) -> Iterator[str]:
    before, after = document["validation"].get("before") or {}, document["validation"]["after"]
    for name, value in after.items():
        if isinstance(value, int | float):
            start = f"{number(before[name])} -> " if name in before else ""
            yield f"{name} {start}{number(value)}"
    for split, scores in (after.get("splits") or {}).items():
        if scores != {name: after.get(name) for name in scores}:
            yield f"{split}: " + ", ".join(f"{name} {number(value)}" for name, value in scores.items())


def teacher_lines(document: Document) -> Iterator[str]:
    scores = ", ".join(f"{name} {number(value)}" for name, value in document["teacher_metrics"].items())
    yield f"teacher {document.get('teacher')}: {scores}"


def column_lines(document: Document) -> Iterator[str]:
    for column, scores in document["columns"].items():
        yield f"{column:8} " + ", ".join(f"{name} {number(100 * value)}" for name, value in scores.items())
    yield from average_lines(document)


def average_lines(document: Document) -> Iterator[str]:
    for name, found in document["averages"].items():
        missing = f", without {', '.join(found['missing'])}" if found["missing"] else ""
        yield f"{name}: {number(100 * found['mean_of_present'])}{missing}"


def ablation_lines(document: Document) -> Iterator[str]:
    yield from settling_lines("here", document["ablation"])
    if document.get("published"):
        yield from settling_lines("FlexiBERT benchmark, as published", document["published"])
        for step, other in document["published"]["copies"].items():
            yield f"  {int(step):>9,} steps: left out, a copy of the scores after {other:,} steps"


def settling_lines(where: str, found: Document) -> Iterator[str]:
    yield f"{where}: the ranking is {settled(found)} (Spearman >= 0.9 with the end)"
    for moment in found["moments"]:
        rho = number(moment["spearman"]) if moment["spearman"] is not None else DASH
        yield f"  {moment['steps']:>9,} steps: mean {number(moment['mean'])}, Spearman with the end {rho}"


def settled(found: Document) -> str:
    return (
        "settled only at the end" if found["settled_at"] is None else f"settled from {found['settled_at']:,} steps on"
    )


PARTS = {
    "losses": training_lines,
    "teacher_metrics": teacher_lines,
    "validation": validation_lines,
    "columns": column_lines,
    "ablation": ablation_lines,
}
"""Part of a document -> what is said about it."""


def number(value: float | None, digits: int = 4) -> str:
    return DASH if value is None else f"{value:.{digits}g}"
