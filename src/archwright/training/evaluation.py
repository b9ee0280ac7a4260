"""A fine-tuned network on a task, by the official metrics of that task."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from archwright.data.batching import Batch, evaluation_batches
from archwright.data.tasks.glue_submission import FIRST_COLUMN
from archwright.data.tasks.rows import Rows
from archwright.data.windows import AnswerSpans, Windows
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.error import (
    in_row_order,
    measure_error,
    predict,
    predict_logits,
    predict_spans,
    predict_tags,
    sigmoid,
    tag_counts,
)
from archwright.statistics import ANSWER_METRICS, METRICS
from archwright.statistics.metrics import OFFICIAL, f1, ratio
from archwright.statistics.own_metric import short_name
from archwright.statistics.published_scores import SOURCE, SQUAD, similar_models
from archwright.statistics.squad import best_threshold, exact_match, word_f1_or_none
from archwright.tasks import TASK_KINDS
from archwright.tasks.token_classification import marks_spans
from archwright.training.task_data import TaskData

GLUE_PREFIX = "glue/"
TWO_CLASSES = ("accuracy", "f1", "matthews")
"""Metrics of one's own two classes, for whatever one likes to look at."""


def column_of(task: str) -> str:
    """The leaderboard's name of a GLUE task's first column; other tasks keep theirs."""
    name = task.removeprefix(GLUE_PREFIX)
    return FIRST_COLUMN.get(name, name)


def scores(task_data: TaskData, network: PrunedNetwork, rows: list[Batch]) -> dict[str, float]:
    """All metrics of the task on these rows, higher is better but for perplexity."""
    task = task_data.task
    metrics: dict[str, float] = TASK_KINDS[task.kind].scores.load()(task_data, network, rows)
    name = short_name(task.metric)
    return (
        {name: 1 - task_data.error(network, rows)} | metrics if task.metric_chosen and name not in metrics else metrics
    )


def label_scores(task_data: TaskData, network: PrunedNetwork, rows: list[Batch]) -> dict[str, float]:
    """The official metrics of GLUE, else those of the kind of task; F1 is about the positive class."""
    task = task_data.task
    answers = predict(network, rows)
    targets = in_row_order([batch.targets for batch in rows], rows)
    usual = TWO_CLASSES if len(task.labels) == 2 else TASK_KINDS[task.kind].metrics
    metrics = {}
    for name in OFFICIAL.get(column_of(task.name), usual):
        one_sided = name == "f1" and task.positive is not None
        sides = (answers == task.positive, targets == task.positive) if one_sided else (answers, targets)
        metrics[name] = METRICS[name](*sides)
    return metrics


def tag_scores(task_data: TaskData, network: PrunedNetwork, rows: list[Batch]) -> dict[str, float]:
    """The share of words with the right tag, and where tags mark spans their F1, precision and recall."""
    words, tags = predict_tags(network, rows), task_data.task.labels
    metrics = {"token_accuracy": ratio(*tag_counts(words, metric="token_accuracy", labels=tags))}
    if not marks_spans(tags):
        return metrics
    right, both = (counts.sum() for counts in tag_counts(words, metric="entity_f1", labels=tags))
    wanted = tag_counts(words._replace(answers=words.targets), metric="entity_f1", labels=tags)[0].sum() / 2
    return {
        "entity_f1": right / both if both else 0.0,
        "precision": right / 2 / (both - wanted) if both > wanted else 0.0,
        "recall": right / 2 / wanted if wanted else 0.0,
    } | metrics


def label_set_scores(task_data: TaskData, network: PrunedNetwork, rows: list[Batch]) -> dict[str, float]:
    """F1 of all labels of all texts together, the mean of every label's own, and the share of texts all right."""
    targets = in_row_order([batch.targets for batch in rows], rows) > 0
    given = sigmoid(predict_logits(network, rows)) > task_data.thresholds(network)
    each = [f1(given[:, label], targets[:, label]) for label in range(targets.shape[1])]
    return {
        "micro_f1": f1(given.ravel(), targets.ravel()),
        "macro_f1": float(np.mean(each)),
        "accuracy": float((given == targets).all(axis=1).mean()),
    }


def answer_scores(task_data: TaskData, network: PrunedNetwork, rows: list[Batch]) -> dict[str, float]:
    """Exact match and F1; with unanswerable questions also with the best threshold for "no answer"."""
    windows = rows[0].windows
    assert windows is not None
    spans = predict_spans(network, rows)
    answers, version = windows.texts(spans), "squad_v2" if windows.unanswerable else "squad"
    metrics = {name: ANSWER_METRICS[f"{version}_{name}"](answers, windows.answers) for name in ("exact", "f1")}
    return metrics | (best_thresholds(windows, spans) if windows.unanswerable else {})


def best_thresholds(windows: Windows, spans: AnswerSpans) -> dict[str, float]:
    """The official sweep: the best scores that any threshold gives on these questions, and the thresholds."""
    texts = replace(windows, unanswerable=False).texts(spans)
    best, none = windows.best_scores(spans)
    doubts = np.where(np.isfinite(best), none - best, np.finfo(np.float64).max).tolist()
    chosen = {
        name: best_threshold(texts, windows.answers, doubts, score=score)
        for name, score in {"exact": exact_match, "f1": word_f1_or_none}.items()
    }
    lowest = min(doubts) - 1  # below all doubts: nothing is answered
    limits = {f"best_{name}_threshold": max(best.doubt, lowest) for name, best in chosen.items()}
    return {f"best_{name}": best.score for name, best in chosen.items()} | limits


def perplexity_scores(task_data: TaskData, network: PrunedNetwork, rows: list[Batch]) -> dict[str, float]:
    return {"perplexity": measure_error(network, rows, metric="perplexity")}


def vector_scores(task_data: TaskData, network: PrunedNetwork, rows: list[Batch]) -> dict[str, float]:
    """Rank correlation of similarities with scores, or recall of the original's neighbours."""
    metric = task_data.task.metric
    return {metric: 1 - measure_error(network, rows, metric=metric)}


def evaluation_rows(task_data: TaskData, rows: Rows, max_length: int) -> list[Batch]:
    """Further rows of the task as batches for evaluation."""
    encoded = rows.encode(task_data.tokenizer, max_length)
    return evaluation_batches(encoded, tokens=task_data.evaluation_tokens)


def published_beside(task: str, metrics: Mapping[str, Any], parameters: int) -> dict[str, Any] | None:
    """What papers print about models of a similar size on the task's development rows; None: nothing."""
    columns = SQUAD["best_f1" in metrics] if task == "squad" else (column_of(task),)
    rows = similar_models(columns, parameters) if task == "squad" or task.startswith(GLUE_PREFIX) else []
    if not rows:
        return None
    models = [
        {"model": row.model, "parameters": row.parameters, "table": row.table}
        | {"scores": {name: row.scores[name] for name in columns if name in row.scores}}
        for row in rows
    ]
    return {"source": SOURCE, "split": "dev", "models": models}
