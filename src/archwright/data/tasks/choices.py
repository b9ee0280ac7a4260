"""Multiple choice: which of a row's choices its label means."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from archwright.data.files import quote, quote_all
from archwright.data.tasks.examples import Examples
from archwright.errors import BadInput

Reading = Callable[[str, Sequence[str], Sequence[str]], int | None]
"""Label, columns and this row's choices -> position of the right choice; None when the label cannot mean that."""
NONE = -1


def by_column(label: str, columns: Sequence[str], choices: Sequence[str]) -> int | None:
    """The label is the name of the right choice's column."""
    return columns.index(label) if label in columns else None


def by_position(label: str, columns: Sequence[str], choices: Sequence[str]) -> int | None:
    """The label counts the choices from 0."""
    return int(label) if label in map(str, range(len(columns))) else None


def by_text(label: str, columns: Sequence[str], choices: Sequence[str]) -> int | None:
    """The label is the text of the right choice, which no other choice of the row may have."""
    texts = [choice.strip() for choice in choices]
    return texts.index(label) if texts.count(label) == 1 else None


READINGS: tuple[Reading, ...] = (by_column, by_position, by_text)


def choice_targets(train: Examples) -> Callable[[Examples], NDArray[np.int64]]:
    """What turns examples into positions of the right choice: the one reading that all labels of `train` allow."""
    found = {reading: positions(train, reading) for reading in READINGS}
    able = [reading for reading, targets in found.items() if NONE not in targets]
    if not able:
        refuse(train, max(found.values(), key=lambda targets: int((targets != NONE).sum())))
    if any((found[other] != found[able[0]]).any() for other in able[1:]):
        means = "could be positions, column names or texts of choices, with different answers"
        raise BadInput(f"the labels of {train.source} {means}; write other names for the columns as labels.")

    def targets_of(examples: Examples) -> NDArray[np.int64]:
        targets = positions(examples, able[0])
        if NONE in targets:
            refuse(examples, targets)
        return targets

    return targets_of


def positions(examples: Examples, reading: Reading) -> NDArray[np.int64]:
    """The right choice of every row in this reading, -1 where it has none."""
    columns, rows = list(examples.choices), zip(*examples.choices.values(), strict=True)
    found = [reading(label, columns, row) for label, row in zip(examples.labels, rows, strict=True)]
    return np.array([NONE if position is None else position for position in found], dtype=np.int64)


def refuse(examples: Examples, targets: NDArray[np.int64]) -> None:
    """One line on the labels that name no choice."""
    wrong = np.flatnonzero(targets == NONE)
    columns = list(examples.choices)
    ways = f"0 to {len(columns) - 1}, a column ({quote_all(columns)}) or the text of one of the row's choices"
    label = quote(examples.labels[wrong[0]])
    raise BadInput(
        f"row {wrong[0] + 1} of {examples.source}: a label must be {ways}, got {label} ({len(wrong)} such rows)."
    )
