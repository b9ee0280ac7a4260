"""From label strings to numbers: class ids, regression targets, or positions of the right choice."""

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from archwright.data.files import quote, quote_all
from archwright.data.tasks.tables import Examples, RawTask
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


def check_measurements(raw: RawTask, forced: tuple[str, ...] | None) -> None:
    """Refuses what cannot be a regression: targets that never differ, or a model with named classes."""
    if len(set(raw.train.labels)) < 2:
        raise BadInput(f"every target of {raw.train.source} is {quote(raw.train.labels[0])}; two values are needed.")
    if forced and not all(UNNAMED.fullmatch(label) for label in forced):
        raise BadInput(
            f"{raw.name} is a regression, but the model has the classes {quote_all(forced)}; take another model."
        )


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Distinct labels, numbers by value before words."""

    def key(label: str) -> tuple[bool, float, str]:
        value = number(label)
        return value is None or not np.isfinite(value), 0.0 if value is None or not np.isfinite(value) else value, label

    return tuple(sorted(set(labels), key=key))


def class_order(raw: RawTask, forced: tuple[str, ...] | None) -> tuple[tuple[str, ...], dict[str, int]]:
    """Label names in id order, and the id of each label as the data writes it.

    `forced` names (of a fine-tuned checkpoint) must be the data's own up to upper and lower case, or the data
    must write the ids 0, 1, ...; unnamed ones (LABEL_0) leave the data's order.
    """
    names = sorted_labels(raw.train.labels) if raw.labels is None else raw.labels
    if len(set(raw.train.labels)) < 2:
        raise BadInput(f"{raw.train.source} has only the class {quote_all(set(raw.train.labels))}; two are needed.")
    spellings = {name.casefold(): name for name in names}
    if len(spellings) < len(names):
        twice = next((spellings[name.casefold()], name) for name in names if spellings[name.casefold()] != name)
        raise BadInput(
            f"{raw.train.source} has labels that differ only in upper and lower case, {quote_all(twice)}; write them "
            "alike."
        )
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


Interpretation = Callable[[str, Sequence[str], Sequence[str]], int | None]
"""Label, columns and this row's choices -> position of the right choice; None when the label cannot mean that."""
NO_CHOICE = -1


def text_position(label: str, columns: Sequence[str], choices: Sequence[str]) -> int | None:
    """The label is the text of the right choice, which no other choice of the row may have."""
    texts = [choice.strip() for choice in choices]
    return texts.index(label) if texts.count(label) == 1 else None


INTERPRETATIONS: tuple[Interpretation, ...] = (
    lambda label, columns, _: columns.index(label) if label in columns else None,  # the name of a column
    lambda label, columns, _: int(label) if label in map(str, range(len(columns))) else None,  # counted from 0
    text_position,
)


def choice_targets(train: Examples) -> Callable[[Examples], NDArray[np.int64]]:
    """What turns examples into positions of the right choice: the one meaning that all labels of `train` allow."""
    targets = [choice_positions(train, interpretation) for interpretation in INTERPRETATIONS]
    able = [number for number, positions in enumerate(targets) if NO_CHOICE not in positions]
    if not able:
        refuse_labels(train, max(targets, key=lambda positions: int((positions != NO_CHOICE).sum())))
    if any((targets[other] != targets[able[0]]).any() for other in able[1:]):
        means = "could be positions, column names or texts of choices, with different answers"
        raise BadInput(f"the labels of {train.source} {means}; write other names for the columns as labels.")

    def positions_of(examples: Examples) -> NDArray[np.int64]:
        positions = choice_positions(examples, INTERPRETATIONS[able[0]])
        if NO_CHOICE in positions:
            refuse_labels(examples, positions)
        return positions

    return positions_of


def choice_positions(examples: Examples, interpretation: Interpretation) -> NDArray[np.int64]:
    """The right choice of every row if labels mean this, -1 where there is none."""
    columns, rows = list(examples.choices), zip(*examples.choices.values(), strict=True)
    positions = [interpretation(label, columns, row) for label, row in zip(examples.labels, rows, strict=True)]
    return np.array([NO_CHOICE if position is None else position for position in positions], dtype=np.int64)


def refuse_labels(examples: Examples, targets: NDArray[np.int64]) -> None:
    """One line on the labels that name no choice."""
    wrong = np.flatnonzero(targets == NO_CHOICE)
    columns = list(examples.choices)
    ways = f"0 to {len(columns) - 1}, a column ({quote_all(columns)}) or the text of one of the row's choices"
    label = quote(examples.labels[wrong[0]])
    raise BadInput(
        f"row {wrong[0] + 1} of {examples.source}: a label must be {ways}, got {label} ({len(wrong)} such rows)."
    )
