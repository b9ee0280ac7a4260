"""What a user says about judging and learning a task: --metric and --class-weights."""

from dataclasses import replace

import numpy as np

from archwright.data.files import quote
from archwright.data.tasks.rows import Rows
from archwright.data.tasks.task import Task
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.statistics.own_metric import is_own, load_own, resolve_own
from archwright.tasks import TASK_KINDS
from archwright.tasks.token_classification import marks_spans

BALANCED = "balanced"


def choose_metric(task: Task, metric: str | None) -> Task:
    """The task, judged by this metric; BadInput for one that does not fit."""
    if metric is None:
        return task
    kind = TASK_KINDS[task.kind]
    names = list(dict.fromkeys((task.metric, kind.metric, *kind.judged_by)))
    answers = kind.per_row and kind.teach is None  # vectors are no answers that a function could judge
    own = ", or FILE.py:FUNCTION" if answers else ""
    if is_own(metric):
        if not answers:
            rule = f"a function can judge tasks with one answer per row, got {metric} for {task.kind}"
            raise BadInput(f"--metric: {rule}; choose {', '.join(names)}.")
        metric = resolve_own(metric)
        load_own(metric)
        return replace(task, metric=metric, metric_chosen=True)
    name = kind.aliases.get(metric, metric)
    if name not in names:
        raise BadInput(f"--metric for {task.kind} must be one of {', '.join(names)}{own}, got {quote(metric)}.")
    if name == "f1" and len(task.labels) != 2:
        raise BadInput(f"--metric f1 is about one of two classes, got {len(task.labels)} classes; take macro_f1.")
    if name == "entity_f1" and not marks_spans(task.labels):
        raise BadInput("--metric entity_f1 needs tags with B- and I- that mark spans; take token_accuracy.")
    return replace(task, metric=name, metric_chosen=True)


def parse_class_weights(values: tuple[str, ...], task: Task) -> tuple[float, ...] | None:
    """The weight of every class in id order; a line says which class has which."""
    if not values:
        return None
    rows = task.splits["train"]
    if task.kind != "classification" or not isinstance(rows, Rows):
        raise BadInput(f"--class-weights are for classification, got a task of the kind {task.kind}; leave them out.")
    if values == (BALANCED,):
        counts = np.bincount(rows.targets.astype(np.int64), minlength=len(task.labels))
        weights = tuple((len(rows) / (len(counts) * counts)).tolist())
    else:
        weights = tuple(map(parse_weight, values))
        if len(weights) != len(task.labels):
            order = ", ".join(task.labels)
            raise BadInput(
                f"--class-weights must be {BALANCED} or {len(task.labels)} numbers, in the order {order}, got "
                f"{len(weights)}: {','.join(values)}."
            )
    words = ", ".join(f"{label} {weight:.3g}" for label, weight in zip(task.labels, weights, strict=True))
    logger.warning("class weights: %s", words)
    return weights


def parse_weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = np.nan
    if not (np.isfinite(weight) and weight > 0):
        raise BadInput(f"--class-weights must be {BALANCED} or numbers above 0, got {quote(text)}.")
    return weight
