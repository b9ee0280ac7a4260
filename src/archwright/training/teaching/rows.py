"""The rows that a teacher answers during a task: labelled ones, ones without label, and copies with other words."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from archwright.configs import training as to
from archwright.data.encoding import NO_TARGET, Encoded
from archwright.data.files import decode_utf8, read_bytes
from archwright.data.tasks.rows import Rows
from archwright.data.tasks.table_files import ending_of, read_rows
from archwright.data.tasks.tables import text_of
from archwright.errors import BadInput
from archwright.random_streams import AUGMENTED_ROWS
from archwright.store import RunFolder
from archwright.store.arrays import read_arrays, write_arrays
from archwright.training.distributed import ProcessGroup
from archwright.training.task_data import TaskData

FILE = "augmented.npz"
KINDS = ("classification", "regression", "multi-label")
"""Kinds of tasks whose rows are one text or two, with one answer however words are exchanged."""
PAIR_COLUMN = "text_pair"
"""Of the second texts, where --text-pair-column names no other."""


class WordReplacer(Protocol):
    """Rows in, the same rows with some words exchanged out, token by token."""

    def __call__(self, encoded: Encoded, rng: np.random.Generator) -> NDArray[np.int32]: ...


@dataclass(frozen=True, eq=False)
class TaughtRows:
    """Everything that a student learns from on a task with a teacher.

    Positions of labelled rows come first, then those without label, then copies of both.
    """

    labelled: Encoded
    unlabelled: Encoded | None
    copies: int
    """Of every row, with other words."""
    replacer: WordReplacer | None
    run: RunFolder
    group: ProcessGroup
    seed: int

    def __len__(self) -> int:
        return (1 + self.copies) * len(self.originals)

    @cached_property
    def originals(self) -> Encoded:
        return self.labelled if self.unlabelled is None else join_rows(self.labelled, self.unlabelled)

    @cached_property
    def encoded(self) -> Encoded:
        """All rows; words are exchanged when this is asked for the first time, once per run."""
        if not self.copies or self.replacer is None:
            return self.originals
        file = self.run.path / FILE
        if not self.group.agree(file.exists()):
            with self.group.first_ahead():
                if self.group.first:
                    rngs = (np.random.default_rng((self.seed, AUGMENTED_ROWS, copy)) for copy in range(self.copies))
                    write_arrays(file, {"ids": np.stack([self.replacer(self.originals, rng) for rng in rngs])})
        encoded = self.originals
        for ids in read_arrays(file)["ids"]:
            encoded = join_rows(encoded, replace(without_labels(self.originals), ids=ids))
        return encoded


def check_taught_rows(options: to.TeachingOptions, task_data: TaskData) -> None:
    """BadInput where the task has no rows of the kind that can be answered by a teacher alone."""
    kind, given = task_data.task.kind, "--augment" if options.augment else "--unlabelled"
    if not options.augment and options.unlabelled is None:
        return
    if kind not in KINDS:
        raise BadInput(f"{given} is for tasks of the kinds {', '.join(KINDS)}, got {kind}; leave it out.")
    if options.label_weight and np.issubdtype(task_data.encoded["train"].targets.dtype, np.floating):
        raise BadInput(f"{given} beside --label-weight is for classification, got {kind}; leave one of them out.")


def read_unlabelled(path: Path, task_data: TaskData, options: to.TaskOptions) -> Encoded:
    """Texts of the task without labels: a text per line, or a table with the columns of the texts."""
    rows = task_data.task.splits["train"]
    if not isinstance(rows, Rows):
        raise BadInput(f"--unlabelled is for tasks of the kinds {', '.join(KINDS)}, got {task_data.task.kind}.")
    pairs: list[str] | None = None
    if not path.is_dir() and ending_of(path) == ".txt":
        if rows.pairs is not None:
            raise BadInput(f"--unlabelled must be a table with two texts per row for this task, got {path}.")
        lines = decode_utf8(read_bytes(path), str(path)).splitlines()
        texts = [line.strip() for line in lines if line.strip()]
    else:
        found, source = read_rows(path), str(path)
        texts = [text_of(line, options.text_column, source) for line in found]
        if rows.pairs is not None:
            column = options.text_pair_column or PAIR_COLUMN
            pairs = [text_of(line, column, source) for line in found]
    if not texts:
        raise BadInput(f"--unlabelled must hold at least one text, {path} has none.")
    targets = np.zeros((len(texts), *rows.targets.shape[1:]), rows.targets.dtype)
    encoded = Rows(texts, pairs, targets).encode(task_data.tokenizer, options.max_length)
    return without_labels(encoded)


def without_labels(encoded: Encoded) -> Encoded:
    """The rows with targets that no loss of labels counts; numbers, which have no such value, are 0."""
    filler: Any = 0 if np.issubdtype(encoded.targets.dtype, np.floating) else NO_TARGET
    return replace(encoded, targets=np.full_like(encoded.targets, filler))


def join_rows(one: Encoded, other: Encoded) -> Encoded:
    """Rows of the same kind, one after another."""
    types = None if one.types is None or other.types is None else np.concatenate([one.types, other.types])
    return replace(
        one,
        ids=np.concatenate([one.ids, other.ids]),
        offsets=np.concatenate([one.offsets, one.offsets[-1] + other.offsets[1:]]),
        types=types,
        targets=np.concatenate([one.targets, other.targets]),
    )
