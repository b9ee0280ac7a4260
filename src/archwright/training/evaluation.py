"""A fine-tuned network on a task, by the official metrics of that task."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.data.batching import Batch, encode, evaluation_batches
from archwright.data.tasks.glue_submission import FIRST_COLUMN, UnlabelledRows, format_answers
from archwright.data.tasks.rows import Rows
from archwright.data.windows import AnswerSpans, Windows
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.error import best_spans, each, error, in_row_order, predictions
from archwright.statistics import ANSWER_METRICS, METRICS
from archwright.statistics.metrics import OFFICIAL
from archwright.statistics.squad import best_threshold, exact_match, word_f1_or_none
from archwright.training.task_data import TaskData

GLUE_PREFIX = "glue/"
USUAL = {"classification": ("accuracy",), "regression": ("pearson", "spearman"), "choice": ("accuracy",)}
"""Metrics of tasks that nobody has made official ones for."""
TWO_CLASSES = ("accuracy", "f1", "matthews")


def column_of(task: str) -> str:
    """The leaderboard's name of a GLUE task's first column; other tasks keep theirs."""
    name = task.removeprefix(GLUE_PREFIX)
    return FIRST_COLUMN.get(name, name)


def scores(task_data: TaskData, network: PrunedNetwork, rows: list[Batch]) -> dict[str, float]:
    """All metrics of the task on these rows, higher is better but for perplexity."""
    return SCORES[task_data.task.kind](task_data, network, rows)


def label_scores(task_data: TaskData, network: PrunedNetwork, rows: list[Batch]) -> dict[str, float]:
    answers = predictions(network, rows)
    targets = in_row_order([batch.targets for batch in rows], rows)
    return {
        name: METRICS[name](*sides(name, answers, targets, task_data.task.positive)) for name in metrics_of(task_data)
    }


def metrics_of(task_data: TaskData) -> tuple[str, ...]:
    """Official ones of GLUE; for one's own two classes also F1 and Matthews, for whatever one likes to look at."""
    usual = TWO_CLASSES if len(task_data.task.labels) == 2 else USUAL[task_data.task.kind]
    return OFFICIAL.get(column_of(task_data.task.name), usual)


def sides(
    metric: str, answers: NDArray[Any], targets: NDArray[Any], positive: int | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Answers and targets, of which F1 wants to know where the positive class is."""
    if metric in ONE_SIDED and positive is not None:
        return answers == positive, targets == positive
    return answers, targets


ONE_SIDED = ("f1",)


def answer_scores(task_data: TaskData, network: PrunedNetwork, rows: list[Batch]) -> dict[str, float]:
    """Exact match and F1; with unanswerable questions also with the best threshold for "no answer"."""
    windows = rows[0].windows
    assert windows is not None
    spans = spans_of(network, rows)
    said, version = windows.texts(spans), "squad_v2" if windows.unanswerable else "squad"
    found = {name: ANSWER_METRICS[f"{version}_{name}"](said, windows.answers) for name in ("exact", "f1")}
    return found | (thresholds(windows, spans) if windows.unanswerable else {})


def spans_of(network: PrunedNetwork, rows: list[Batch]) -> AnswerSpans:
    """The best span of every window."""
    read = each(network, rows, None, lambda batch, logits: best_spans(logits, batch.inputs["context_mask"]).cpu())
    score, start, end, none = in_row_order(read, rows).T
    return AnswerSpans(score, start.astype(np.int64), end.astype(np.int64), none)


def thresholds(windows: Windows, spans: AnswerSpans) -> dict[str, float]:
    """The official sweep: the best scores that any threshold gives on these questions, and the thresholds."""
    texts = replace(windows, unanswerable=False).texts(spans)
    best, none = np.full(len(texts), -np.inf), np.full(len(texts), np.inf)
    np.maximum.at(best, windows.owners, spans.score)
    np.minimum.at(none, windows.owners, spans.none)
    doubts = np.where(np.isfinite(best), none - best, np.finfo(np.float64).max).tolist()
    chosen = {
        name: best_threshold(texts, windows.answers, doubts, score=score)
        for name, score in {"exact": exact_match, "f1": word_f1_or_none}.items()
    }
    lowest = min(doubts) - 1  # below all doubts: nothing is answered
    limits = {f"best_{name}_threshold": max(found.doubt, lowest) for name, found in chosen.items()}
    return {f"best_{name}": found.score for name, found in chosen.items()} | limits


def word_scores(task_data: TaskData, network: PrunedNetwork, rows: list[Batch]) -> dict[str, float]:
    return {"perplexity": error(network, rows, metric="perplexity")}


SCORES: dict[str, Callable[[TaskData, PrunedNetwork, list[Batch]], dict[str, float]]] = {
    **dict.fromkeys(USUAL, label_scores),
    "qa": answer_scores,
    "lm": word_scores,
}
"""By kind of task."""


def evaluation_rows(task_data: TaskData, rows: Rows, max_length: int) -> list[Batch]:
    """Further rows of the task as batches for evaluation."""
    return evaluation_batches(
        encode(rows, task_data.tokenizer, max_length=max_length), tokens=task_data.evaluation_tokens
    )


def predict_test_rows(
    task_data: TaskData, network: PrunedNetwork, asked: UnlabelledRows, max_length: int
) -> tuple[list[str], list[str]]:
    """Numbers of rows without labels, and the answers as the leaderboard wants them."""
    found = predictions(network, evaluation_rows(task_data, asked.rows, max_length))
    return asked.index, format_answers(asked.column, found.tolist(), task_data.task.labels)
