"""A task: data in three splits, with label names, metric and a note on how it was split."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from archwright.data.files import quote, quote_all
from archwright.data.tasks.hub import PREFIX
from archwright.data.tasks.labelled import BUILT_IN, load_named_task, number_labels
from archwright.data.tasks.rows import Rows, Split, UnsplitTask
from archwright.data.tasks.splits import split_note
from archwright.data.tasks.squad import ADDRESS, load_squad
from archwright.data.tasks.tables import Columns, own_files
from archwright.data.text.passage import text_files
from archwright.errors import BadInput

DEFAULT_TASK = "movie-reviews"
WIKITEXT = "https://huggingface.co/datasets/Salesforce/wikitext"


@dataclass(frozen=True, eq=False)
class Task:
    """What a network is trained and judged on."""

    name: str
    labels: tuple[str, ...]
    """Names in id order; empty for everything but classification."""
    metric: str
    """Name in the judge's lists of metrics."""
    splits: Mapping[str, Split]
    """"train", "validation" and "test"."""
    note: str = ""
    """How the splits came about, and what to know when comparing with others."""
    positive: int | None = None
    """Id of the class that F1 is about, for two classes."""
    kind: str = "classification"
    """What a network answers: classification, regression, choice (one of several texts), qa (a part of a text) or lm
    (the next token)."""
    vocabulary: int = 0
    """Tokens that a network chooses from, once there is a network; only lm asks for it."""

    @property
    def regression(self) -> bool:
        return self.kind == "regression"

    def scaled(self, error: float) -> float:
        """The error as a share, for a hypervolume with reference 1: 1 knows nothing, 0 is perfect."""
        return SCALES[self.metric](error, self.vocabulary) if self.metric in SCALES else error


def share_of_guessing(perplexity: float, vocabulary: int) -> float:
    """ln(perplexity) / ln(vocabulary): a token's loss as a share of the loss when all tokens are equally likely."""
    return float(np.log(perplexity) / np.log(vocabulary))


SCALES: dict[str, Callable[[float, int], float]] = {"perplexity": share_of_guessing}
"""Metrics whose errors are not shares: error and size of the vocabulary -> share."""


@dataclass(frozen=True)
class TaskRequest:
    """Everything a user can say about the data, except how much of it."""

    name: str | None
    data: Path | None
    train: Path | None
    validation: Path | None
    test: Path | None
    columns: Columns
    regression: bool | None
    labels: tuple[str, ...] | None


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
    choice_columns: tuple[str, ...] = (),
    regression: bool | None = None,
    labels: tuple[str, ...] | None = None,
    seed: int = 0,
    train_rows: int = 0,
    validation_rows: int = 0,
    test_rows: int = 0,
    held_out: float | None = None,
) -> Task:
    """A built-in task, a `datasets` name (hf:NAME), or a task of one's own files; movie-reviews when nothing is given.

    Columns and `regression` are for files and hub data. `labels` forces names and order of the classes, for a
    checkpoint that has them already. `train_rows` and so on keep a random part after splitting (0: all). `held_out` is
    the share of train that validates instead of the usual one, 0 for none of it: then the test rows do.
    """
    wanted = {"train": train_rows, "validation": validation_rows, "test": test_rows}
    for option, value in {"--seed": seed, **{f"--{split}-rows": rows for split, rows in wanted.items()}}.items():
        if value < 0:
            raise BadInput(f"{option} must not be negative, got {value}.")
    columns = Columns(text_column, text_pair_column, label_column, tuple(choice_columns))
    wish = TaskRequest(name or None, data, train, validation, test, columns, regression, labels)
    parts = OTHER_TASKS[name].load(wish) if name in OTHER_TASKS else labelled(wish)
    parts = parts if held_out is None else holding_out(parts, held_out)
    return complete(limited(task_of(parts, seed), wanted, seed), seed)


def holding_out(parts: UnsplitTask, share: float) -> UnsplitTask:
    """The same with this share of train held out; as it is where validation rows are given, or test rows are not."""
    if parts.test is None or parts.validation is not None:
        return parts
    return replace(parts, validation=None if share else parts.test, shares={"validation": share} if share else {})


def labelled(wish: TaskRequest) -> UnsplitTask:
    """Labelled texts: one's own files, or by name."""
    if (wish.train and (wish.name or wish.data)) or ((wish.validation or wish.test) and not wish.train):
        raise BadInput("give either --task (with --data if it needs it), or your own files with --train among them.")
    if wish.train:
        draft = own_files(wish.train, wish.validation, wish.test, columns=wish.columns)
    else:
        draft = load_named_task(known(wish.name or DEFAULT_TASK), wish.data, wish.columns)
    return number_labels(draft, wish.regression, wish.labels)


def known(name: str) -> str:
    """The name of a task, if it is one."""
    if name in BUILT_IN or name.startswith(PREFIX):
        return name
    near = get_close_matches(name, TASKS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    ways = "your own files with --train, a `datasets` name as hf:NAME"
    raise BadInput(f"unknown task {quote(name)}; {hint}Known: {', '.join(TASKS)}; {ways}.")


def language_modelling(wish: TaskRequest) -> UnsplitTask:
    """The next token of one's own text."""
    without_labels("lm", wish)
    if wish.train is None or wish.data is not None:
        raise BadInput("lm needs a text file with --train (and may have --validation and --test), and takes no --data.")
    return text_files(wish.train, wish.validation, wish.test)


def question_answering(wish: TaskRequest) -> UnsplitTask:
    """Parts of a text that answer questions."""
    without_labels("squad", wish)
    if wish.train or wish.validation or wish.test:
        raise BadInput("squad reads train*.json and dev*.json of the folder --data; leave out --train and the others.")
    return load_squad(wish.data)


def without_labels(task: str, wish: TaskRequest) -> None:
    """Refuses what is only for labelled texts."""
    if wish.columns != Columns() or wish.regression is not None:
        options = "--text-column, --text-pair-column, --label-column, --choice-columns and --regression"
        raise BadInput(f"{task} has no columns of texts and labels; leave out {options}.")


@dataclass(frozen=True)
class OtherTask:
    """A task that is not about labelled texts."""

    description: str
    load: Callable[[TaskRequest], UnsplitTask]


OTHER_TASKS: dict[str | None, OtherTask] = {
    "squad": OtherTask(
        f"parts of a text that answer questions, versions 1.1 and 2.0; needs --data, original: {ADDRESS}",
        question_answering,
    ),
    "lm": OtherTask(
        f"the next token of your own text in --train, for example of WikiText-2: {WIKITEXT}", language_modelling
    ),
}
TASKS: dict[str, str] = {str(name): task.description for name, task in (BUILT_IN | OTHER_TASKS).items()}


def task_of(parts: UnsplitTask, seed: int) -> Task:
    """The task with train cut into its splits."""
    given = {"validation": parts.validation, "test": parts.test}
    found = {split: data for split, data in given.items() if data is not None} | dict(
        parts.train.cut(parts.shares, seed)
    )
    splits = {split: found[split] for split in ("train", "validation", "test")}
    note = "; ".join(filter(None, (split_note(parts.shares, parts.how.format(seed=seed)), parts.note)))
    return Task(parts.name, parts.labels, parts.metric, splits, note, parts.positive, parts.kind)


def limited(task: Task, wanted: Mapping[str, int], seed: int) -> Task:
    """The task with at most so many rows per split, chosen at random; 0 keeps all."""
    splits = dict(task.splits)
    for stream, (split, number) in enumerate(wanted.items(), start=1):
        if 0 < number < len(splits[split]):
            splits[split] = splits[split].some(number, (seed, stream))
    return replace(task, splits=splits)


def complete(task: Task, seed: int) -> Task:
    """The task itself, if its training rows can teach every class."""
    rows = task.splits["train"]
    present = set(rows.targets.tolist()) if isinstance(rows, Rows) else set()
    missing = [label for index, label in enumerate(task.labels) if index not in present]
    if missing:
        way = "take more rows, another --seed, or give --validation and --test files"
        raise BadInput(
            f"no row of class {quote_all(missing)} among the {len(rows)} training rows (seed {seed}); {way}."
        )
    return task
