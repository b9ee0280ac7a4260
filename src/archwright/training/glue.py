"""Every GLUE task of a folder, one training each, and the averages that papers print."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from archwright.configs.training import TrainConfig
from archwright.data.tasks.glue_submission import present_tasks, zip_submission
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.reports.train import render_train_page
from archwright.statistics.metrics import AVERAGES, average_columns
from archwright.store import RunFolder, begin_run, write_atomic
from archwright.training.evaluation import GLUE_PREFIX, column_of
from archwright.training.pipeline import SCHEMA, prepare_context, run_options, run_training
from archwright.training.validation import check_folder


def train_glue(config: TrainConfig, folder: Path) -> dict[str, Any]:
    """Trains on all tasks that are there; a task that is done is not done again."""
    task = config.task
    if task.glue is None or task.task or task.data or task.train:
        raise BadInput("--glue names all tasks of a folder; leave out --task, --data and --train.")
    if config.checks.evaluate_only:
        raise BadInput("--evaluate-only judges one network on one task; give --task and --data instead of --glue.")
    check_folder(folder)
    names = present_tasks(task.glue)
    context = prepare_context(config, folder)
    if context.group.first:
        begin_run(folder, run_options(config))
    results = {}
    for name in names:
        task_options = replace(task, task=f"{GLUE_PREFIX}{name}", data=task.glue, glue=None)
        results[name] = run_training(replace(config, task=task_options), folder / name)
    document = {
        **summarize_tasks(results),
        "lesson": context.objective.name,
        "preset": config.objective.preset,
        "seed": config.output.seed,
    }
    if context.group.first:
        answers: dict[str, Any] = {}
        for name in names:
            answers |= RunFolder(folder / name).note("answers") or {}
        if answers:
            write_atomic(folder / "submission.zip", zip_submission(answers))
        context.run.note("result", document)
        write_atomic(context.run.report, render_train_page(document))
    return document


def summarize_tasks(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Scores by column of the leaderboard, and the averages over those that are there."""
    columns: dict[str, dict[str, float]] = {}
    for result in results.values():
        splits = dict(result["validation"]["after"]["splits"])
        columns[column_of(result["task"])] = splits.pop("test")
        splits.pop("validation", None)
        columns |= splits
    averages = {name: average_columns(columns, average) for name, average in AVERAGES.items()}
    return {
        "schema": SCHEMA,
        "columns": columns,
        "averages": {name: asdict(average) for name, average in averages.items() if average is not None},
        "tasks": dict(results),
        "notes": {name: result["note"] for name, result in results.items() if result.get("note")},
        "environment": environment(),
    }
