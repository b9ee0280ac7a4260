"""From label strings to numbers: class ids or regression targets."""

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from archwright.data.files import quote, quote_all
from archwright.data.tasks.examples import Examples, RawTask
from archwright.errors import BadInput

Targets = NDArray[np.int64] | NDArray[np.float32]
UNNAMED = re.compile(r"(LABEL_)?\d+")
"""Labels a checkpoint writes when nobody named them; they say nothing about the order."""


def number(text: str) -> float | None:
    """The number a label stands for (may be infinite or NaN), if it is one."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def is_regression(labels: Iterable[str]) -> bool:
    """Whether the labels are measurements: all numbers, some of them not whole."""
    values = [number(label) for label in set(labels)]
    return all(value is not None for value in values) and any(value % 1 != 0 for value in values if value is not None)


def regression_targets(examples: Examples) -> NDArray[np.float32]:
    """The labels as numbers, all finite."""
    values = [number(label) for label in examples.labels]
    with np.errstate(over="ignore"):
        targets = np.array([np.nan if value is None else value for value in values]).astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(targets))
    if len(wrong):
        label = quote(examples.labels[wrong[0]])
        rule = f"row {wrong[0] + 1} of {examples.source}: a regression target must be a finite number"
        raise BadInput(f"{rule}, got {label} ({len(wrong)} such rows); correct it or use --no-regression.")
    return targets


def check_measurements(draft: RawTask, forced: tuple[str, ...] | None) -> None:
    """Refuses what cannot be a regression: targets that never differ, or a model with named classes."""
    if len(set(draft.train.labels)) < 2:
        raise BadInput(
            f"every target of {draft.train.source} is {quote(draft.train.labels[0])}; two values are needed."
        )
    if forced and not all(UNNAMED.fullmatch(label) for label in forced):
        raise BadInput(
            f"{draft.name} is a regression, but the model has the classes {quote_all(forced)}; take another model."
        )


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Distinct labels, numbers by value before words."""

    def key(label: str) -> tuple[bool, float, str]:
        value = number(label)
        return value is None or not np.isfinite(value), 0.0 if value is None or not np.isfinite(value) else value, label

    return tuple(sorted(set(labels), key=key))


def class_order(draft: RawTask, forced: tuple[str, ...] | None) -> tuple[tuple[str, ...], dict[str, int]]:
    """Label names in id order, and the id of each label as the data writes it.

    `forced` names (of a fine-tuned checkpoint) must be the data's own up to upper and lower case, or the data
    must write the ids 0, 1, ...; unnamed ones (LABEL_0) leave the data's order.
    """
    names = sorted_labels(draft.train.labels) if draft.labels is None else draft.labels
    if len(set(draft.train.labels)) < 2:
        raise BadInput(f"{draft.train.source} has only the class {quote_all(set(draft.train.labels))}; two are needed.")
    if forced is None or (set(forced) != set(names) and all(UNNAMED.fullmatch(label) for label in forced)):
        return names, {label: index for index, label in enumerate(names)}
    return forced, forced_ids(names, forced)


def forced_ids(names: tuple[str, ...], forced: tuple[str, ...]) -> dict[str, int]:
    """The id of each of the data's labels in a given order."""
    if len(names) == len(forced) and set(names) == {str(index) for index in range(len(forced))}:
        return {label: int(label) for label in names}
    for spelling in (str, str.casefold):
        ids = {spelling(label): index for index, label in enumerate(forced)}
        if len(ids) == len(forced) == len(names) and {spelling(label) for label in names} == set(ids):
            return {label: ids[spelling(label)] for label in names}
    rule = "the model's labels must be those of the data"
    raise BadInput(
        f"{rule}: the model has {quote_all(forced)}, the data {quote_all(names)}; rename them or take another model."
    )


def class_targets(examples: Examples, ids: dict[str, int], train: str) -> NDArray[np.int64]:
    """The labels as ids; every label must be known from training."""
    unseen = sorted_labels(label for label in set(examples.labels) if label not in ids)
    if unseen:
        rule = f"{examples.source} has labels that {train} does not have: {quote_all(unseen)}"
        raise BadInput(
            f"{rule}; known are {quote_all(ids)}. Correct them, or use --regression if they are measurements."
        )
    return np.array([ids[label] for label in examples.labels], dtype=np.int64)
