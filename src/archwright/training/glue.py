"""Every GLUE task of a folder, one training each, and the averages that papers print."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from archwright.data.tasks.glue_submission import present_tasks, zip_submission
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.reports.train_page import train_html
from archwright.statistics.metrics import AVERAGES, average_columns
from archwright.store import RunFolder, begin, write_whole
from archwright.training.evaluation import GLUE_PREFIX, column_of
from archwright.training.pipeline import SCHEMA, check_folder, run_training, training_context
from archwright.training.plan import TrainConfig

ZIP = "submission.zip"


def train_glue(options: TrainConfig, folder: Path) -> dict[str, Any]:
    """Trains on all tasks that are there; a task that is done is not done again."""
    data = options.data
    if data.glue is None or data.task or data.data or data.train:
        raise BadInput("--glue names all tasks of a folder; leave out --task, --data and --train.")
    if options.checks.evaluate_only:
        raise BadInput("--evaluate-only judges one network on one task; give --task and --data instead of --glue.")
    check_folder(folder)
    names = present_tasks(data.glue)
    first = training_context(options, folder).group.first
    if first:
        begin(folder, options.as_options())
    results = {name: run_training(one_task(options, name), folder / name) for name in names}
    document = {
        **summary(results),
        "lesson": options.name,
        "preset": options.lesson.preset,
        "seed": options.output.seed,
    }
    if first:
        hand_in(folder, names)
        RunFolder(folder).note("result", document)
        write_whole(RunFolder(folder).report, train_html(document))
    return document


def one_task(options: TrainConfig, name: str) -> TrainConfig:
    return replace(options, data=replace(options.data, task=f"{GLUE_PREFIX}{name}", data=options.data.glue, glue=None))


def summary(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Scores by column of the leaderboard, and the averages over those that are there."""
    columns = {column: scores for result in results.values() for column, scores in columns_of(result).items()}
    averages = {name: average_columns(columns, average) for name, average in AVERAGES.items()}
    return {
        "schema": SCHEMA,
        "columns": columns,
        "averages": {name: asdict(found) for name, found in averages.items() if found is not None},
        "tasks": dict(results),
        "notes": {name: result["note"] for name, result in results.items() if result.get("note")},
        "environment": environment(),
    }


def columns_of(result: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    splits = {**result["validation"]["after"]["splits"]}
    first = {column_of(result["task"]): splits.pop("test")}
    splits.pop("validation", None)
    return first | splits


def hand_in(folder: Path, names: list[str]) -> None:
    """One zip with the answers of all tasks."""
    found: dict[str, Any] = {}
    for name in names:
        found |= RunFolder(folder / name).note("answers") or {}
    if found:
        write_whole(folder / ZIP, zip_submission(found))
