"""Multi-label classification: texts with any number of labels, as a list, as a|b, or as columns of 0 and 1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from archwright.data.files import quote, quote_all
from archwright.data.tasks.hub import PREFIX, hub_lines
from archwright.data.tasks.rows import Rows, UnsplitTask
from archwright.data.tasks.table_files import Line, Lines, read_rows
from archwright.data.tasks.tables import Columns, Examples, HeldOut, text_of, value_of
from archwright.data.tasks.targets import sorted_labels
from archwright.errors import BadInput
from archwright.logs import logger

SEPARATOR = "|"
"""Between the labels of one text, where they are one value."""
FEWEST_ROWS = 10
SWITCHES = {"0": False, "1": True, "0.0": False, "1.0": True, "false": False, "true": True}
"""What a column of one label may hold."""
Declared = tuple[str, ...] | None
"""Labels in the order of their numbers, where the data says it."""


@dataclass(frozen=True, eq=False)
class LabelSets(Rows):
    """Texts with sets of labels: targets are rows x labels, 1 where a text has the label, else 0."""

    every_class: ClassVar[bool] = False

    @property
    def classes(self) -> set[int]:
        return set(np.flatnonzero(self.targets.any(axis=0)).tolist())


def are_label_sets(request: Any, row: Mapping[str, Any] | None) -> bool:
    """Whether a user's rows have texts with lists of labels, or a column for each label."""
    if request.columns.labels or row is None:
        return bool(request.columns.labels)
    columns = request.columns.recognise(row)
    return isinstance(row.get(columns.text), str) and isinstance(row.get(columns.label), list)


def load_label_sets(request: Any) -> UnsplitTask:
    """The user's files or hub data, sets of labels as rows of 0 and 1."""
    given = {"--data": request.data, "--choice-columns": request.columns.choices, "--regression": request.regression}
    wrong = [option for option, value in given.items() if value]
    if wrong:
        raise BadInput(f"multi-label rows have a text and its labels; leave out {', '.join(wrong)}.")
    if request.name is not None and request.name.startswith(PREFIX):
        lines, shares, note = hub_lines(request.name)
        sources = {split: f"{request.name} split {split!r}" for split in lines}
    else:
        if request.train is None:
            raise BadInput("multi-label needs a file of texts and labels with --train.")
        held = HeldOut.of(request.validation, request.test, request.validation_role)
        paths = {"train": request.train, "validation": held.validation, "test": held.test}
        lines = {split: read_rows(path) for split, path in paths.items() if path is not None}
        sources, shares, note = {split: str(paths[split]) for split in lines}, dict(held.shares), held.note
    read = {split: read_label_sets(rows, request.columns, sources[split]) for split, rows in lines.items()}
    names, ids = label_order([sets for _, sets, _ in read.values()], read["train"][2], request.labels, sources["train"])
    if len(read["train"][1]) < FEWEST_ROWS:
        raise BadInput(f"{sources['train']} has {len(read['train'][1])} rows; at least {FEWEST_ROWS} are needed.")
    splits = {
        split: LabelSets(texts.texts, texts.pairs, switch_table(sets, ids, len(names)))
        for split, (texts, sets, _) in read.items()
    }
    return UnsplitTask(
        name=request.train.name if request.train else request.name,
        kind="multi-label",
        metric="micro_f1",
        train=splits["train"],
        validation=splits.get("validation"),
        test=splits.get("test"),
        shares=shares,
        note=note,
        labels=names,
        numbered=read["train"][2] is not None and not request.columns.labels,
    )


def read_label_sets(lines: Lines, columns: Columns, source: str) -> tuple[Examples, list[list[str]], Declared]:
    """Texts, the labels of each, and all labels in their order where the data says it."""
    if not lines:
        raise BadInput(f"{source} has no rows; a data file needs at least one.")
    columns = columns.recognise(lines[0][1], source=source)
    if columns.skip_empty:
        texts = [name for name in (columns.text, columns.pair) if name is not None]
        full = Lines(
            (line for line in lines if all(str(line[1].get(name) or "").strip() for name in texts)), lines.classes
        )
        if len(full) < len(lines):
            logger.warning(
                "%s: %s of %s rows have no text and are left out", source, len(lines) - len(full), len(lines)
            )
        lines = full
    pairs = None if columns.pair is None else [text_of(line, columns.pair, source) for line in lines]
    texts_read = Examples(source, [text_of(line, columns.text, source) for line in lines], pairs, [])
    if columns.labels:
        sets = [[name for name in columns.labels if switch_of(line, name, source)] for line in lines]
        return texts_read, sets, columns.labels
    names = lines.classes.get(columns.label)
    return (
        texts_read,
        [labels_of(line, columns.label, source) for line in lines],
        None if names is None else tuple(names),
    )


def labels_of(line: Line, column: str, source: str) -> list[str]:
    """The labels of one text, of a list or a|b; none where there is nothing."""
    value = value_of(line, column, source)
    if isinstance(value, list | tuple):
        if any(not isinstance(label, str | int | float) for label in value):
            raise BadInput(f"line {line[0]} of {source}: {quote(column)} must be a list of labels, got {quote(value)}.")
        labels = [str(label).strip() for label in value]
    else:
        labels = [] if value is None else [label.strip() for label in str(value).split(SEPARATOR)]
    return list(dict.fromkeys(filter(None, labels)))


def switch_of(line: Line, column: str, source: str) -> bool:
    """Whether a text has the label of a column of 0 and 1."""
    value = str(value_of(line, column, source)).strip().lower()
    if value not in SWITCHES:
        rule = f"line {line[0]} of {source}: the label column {quote(column)} must hold 0 or 1"
        raise BadInput(f"{rule}, got {quote(line[1][column])}; for names of labels use --label-column.")
    return SWITCHES[value]


def label_order(
    sets: list[list[list[str]]], declared: Declared, forced: tuple[str, ...] | None, source: str
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Labels in id order, and the id of each as the data writes it.

    Those of all files count; forced ones, of a checkpoint or of --labels, may be more.
    """
    found = sorted_labels(label for split in sets for labels in split for label in labels)
    names = found if declared is None else declared
    if len(names) < 2:
        rule = f"{source} must have two labels or more, got {quote_all(names)}"
        raise BadInput(f"{rule}; one label that is there or not is a classification.")
    if forced is None:
        return names, {label: index for index, label in enumerate(names)}
    if set(found) <= {str(index) for index in range(len(forced))}:
        return forced, {label: int(label) for label in found}
    ids = {label.casefold(): index for index, label in enumerate(forced)}
    missing = [label for label in found if label.casefold() not in ids]
    if missing or len(ids) < len(forced):
        rule = f"the labels of the data must be among {quote_all(forced)}, got {quote_all(missing)}"
        raise BadInput(f"{rule}; rename them, or take --head new.")
    return forced, {label: ids[label.casefold()] for label in found}


def switch_table(sets: list[list[str]], ids: dict[str, int], labels: int) -> NDArray[np.float32]:
    table = np.zeros((len(sets), labels), dtype=np.float32)
    for row, names in enumerate(sets):
        table[row, [ids[name] for name in names]] = 1
    return table
