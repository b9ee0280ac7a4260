"""A task: data in three splits, with label names, metric and a note on how it was split."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from archwright.data.files import quote, quote_all
from archwright.data.tasks.grouping import count_inside
from archwright.data.tasks.hub import PREFIX, first_hub_row
from archwright.data.tasks.labelled import BUILT_IN, load_named_task, number_labels
from archwright.data.tasks.passages import load_passages
from archwright.data.tasks.rows import Rows, Split, TextRows, UnsplitTask
from archwright.data.tasks.squad import ADDRESS, load_squad
from archwright.data.tasks.table_files import first_row
from archwright.data.tasks.tables import Columns, FewRows, own_files
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.tasks import TASK_KINDS

DEFAULT_TASK = "movie-reviews"
FEW = 0.05
"""Share of the rows up to which something odd about them is no news."""
WIKITEXT = "https://huggingface.co/datasets/Salesforce/wikitext"


@dataclass(frozen=True, eq=False)
class Task:
    """What a network is trained and judged on."""

    name: str
    labels: tuple[str, ...]
    """Names in id order; empty for everything but classification."""
    metric: str
    """Name of the metric that its error is made of."""
    splits: Mapping[str, Split]
    """"train", "validation" and "test"."""
    note: str = ""
    """How the splits came about, and what to know when comparing with others."""
    positive: int | None = None
    """Id of the class that F1 is about, for two classes."""
    kind: str = "classification"
    """What a network answers: classification, regression, choice (one of several texts), qa (a part of a text), lm
    (the next token), or what another package adds to TASK_KINDS."""
    vocabulary: int = 0
    """Tokens that a network chooses from, once there is a network; only lm asks for it."""
    numbered: bool = False
    """Whether the order of the classes is the task's own, as in GLUE, and not that of their names."""
    metric_chosen: bool = False
    """Whether the user chose the metric, and not the task."""
    warnings: tuple[str, ...] = ()
    """Lines about rows with which an error says less than it seems."""

    @property
    def regression(self) -> bool:
        return self.kind == "regression"

    def scale_error(self, error: float) -> float:
        """The error as a share, for a hypervolume with reference 1: 1 knows nothing, 0 is perfect.

        For a perplexity ln(perplexity) / ln(vocabulary): a token's loss as a share of the loss when all tokens are
        equally likely.
        """
        return float(np.log(error) / np.log(self.vocabulary)) if self.metric == "perplexity" else error

    def unscale_error(self, share: float) -> float:
        """The inverse: the error that this share was made of."""
        return float(np.exp(share * np.log(self.vocabulary))) if self.metric == "perplexity" else share


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
    validation_role: str = "choose"
    few: FewRows | None = None
    """How many training rows are enough; None: all."""


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
    label_columns: tuple[str, ...] = (),
    choice_columns: tuple[str, ...] = (),
    skip_empty: bool = False,
    regression: bool | None = None,
    labels: tuple[str, ...] | None = None,
    seed: int = 0,
    train_rows: int = 0,
    validation_rows: int = 0,
    test_rows: int = 0,
    held_out: float | None = None,
    split: str = "grouped",
    validation_role: str = "choose",
) -> Task:
    """A built-in task, a `datasets` name (hf:NAME), or a task of one's own files; movie-reviews when nothing is given.

    Columns and `regression` are for files and hub data. `labels` forces names and order of the classes, for a
    checkpoint that has them already. `train_rows` and so on keep a random part after splitting (0: all). `held_out` is
    the share of train that validates instead of the usual one, 0 for none of it: then the test rows do. `split` grouped
    keeps labelled rows that share text together, random does not look at the texts. `validation_role` says whether a
    validation file without a test file chooses or tests.
    """
    sizes = {"train": train_rows, "validation": validation_rows, "test": test_rows}
    for option, value in {"--seed": seed, **{f"--{split}-rows": rows for split, rows in sizes.items()}}.items():
        if value < 0:
            raise BadInput(f"{option} must not be negative, got {value}.")
    columns = Columns(
        text_column, text_pair_column, label_column, tuple(choice_columns), skip_empty, tuple(label_columns)
    )
    request = TaskRequest(
        *(name or None, data, train, validation, test, columns, regression, labels, validation_role),
        few=FewRows(train_rows, seed) if train_rows else None,
    )
    kind = TASK_KINDS.get(name) if name else None
    if name in OTHER_TASKS:
        task = OTHER_TASKS[name].load(request)
    elif kind is not None and kind.load is not None:
        task = kind.load.load()(request)
    else:
        task = recognise_kind(request)(request)
    if held_out is not None and task.test is not None and task.validation is None:
        shares = {"validation": held_out} if held_out else {}
        task = replace(task, validation=None if held_out else task.test, shares=shares)
    return check_classes(split_task(task, sizes, seed, grouped=split == "grouped"), seed)


def recognise_kind(request: TaskRequest) -> Callable[[TaskRequest], UnsplitTask]:
    """What loads rows that nobody gave a kind of task for: a kind that recognises them, else labelled texts."""
    if request.name is not None and not request.name.startswith(PREFIX):
        return load_labelled
    row = first_hub_row(request.name) if request.name else None if request.train is None else first_row(request.train)
    for name, kind in TASK_KINDS.items():
        if kind.recognise is not None and kind.load is not None and kind.recognise.load()(request, row):
            logger.info("the rows are read as --task %s", name)
            load: Callable[[TaskRequest], UnsplitTask] = kind.load.load()
            return load
    return load_labelled


def load_labelled(request: TaskRequest) -> UnsplitTask:
    """Labelled texts: one's own files, or by name."""
    if (request.train and (request.name or request.data)) or (
        (request.validation or request.test) and not request.train
    ):
        raise BadInput("give either --task (with --data if it needs it), or your own files with --train among them.")
    if request.train:
        raw = own_files(
            *(request.train, request.validation, request.test),
            columns=request.columns,
            role=request.validation_role,
            few=request.few,
        )
        return number_labels(raw, request.regression, request.labels)
    name = request.name or DEFAULT_TASK
    if name not in BUILT_IN and not name.startswith(PREFIX):
        known = [*TASKS, *(kind for kind, record in TASK_KINDS.items() if record.load is not None)]
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        ways = "your own files with --train, a `datasets` name as hf:NAME"
        raise BadInput(f"unknown task {quote(name)}; {hint}Known: {', '.join(known)}; {ways}.")
    return number_labels(load_named_task(name, request.data, request.columns), request.regression, request.labels)


def load_language_modelling(request: TaskRequest) -> UnsplitTask:
    """The next token of one's own text."""
    refuse_columns("lm", request)
    if request.train is None or request.data is not None:
        raise BadInput("lm needs a text file with --train (and may have --validation and --test), and takes no --data.")
    return load_passages(request.train, request.validation, request.test, role=request.validation_role)


def load_question_answering(request: TaskRequest) -> UnsplitTask:
    """Parts of a text that answer questions."""
    refuse_columns("squad", request)
    if request.train or request.validation or request.test:
        raise BadInput("squad reads train*.json and dev*.json of the folder --data; leave out --train and the others.")
    return load_squad(request.data)


def refuse_columns(task: str, request: TaskRequest) -> None:
    """Refuses what is only for labelled texts."""
    if request.columns != Columns() or request.regression is not None:
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
        load_question_answering,
    ),
    "lm": OtherTask(
        f"the next token of your own text in --train, for example of WikiText-2: {WIKITEXT}", load_language_modelling
    ),
}
TASKS: dict[str, str] = {str(name): task.description for name, task in (BUILT_IN | OTHER_TASKS).items()}


def split_task(task: UnsplitTask, sizes: Mapping[str, int], seed: int, *, grouped: bool = True) -> Task:
    """The task with train cut into its splits, and at most so many rows per split, chosen at random; 0 keeps all."""
    shares, how = task.shares, task.how.format(seed=seed)
    data = {name: split for name, split in (("validation", task.validation), ("test", task.test)) if split is not None}
    given = list(data)
    if grouped and shares and isinstance(task.train, TextRows):
        parts, separated = task.train.split_together(shares, seed)
        data |= parts
        how += ", rows that share text kept together"
        how += f" but for {separated}: too many share it to fill the parts" if separated else ""
    else:
        data |= dict(task.train.split(shares, seed))
    splits = {name: data[name] for name in ("train", "validation", "test")}
    for stream, (name, number) in enumerate(sizes.items(), start=1):
        if 0 < number < len(splits[name]):
            splits[name] = splits[name].sample(number, (seed, stream))
    percent = "/".join(f"{100 * share:.0f}" for share in [1 - sum(shares.values()), *shares.values()])
    cut = f"train split {percent} into {', '.join(['train', *shares])} {how}" if shares else ""
    note = "; ".join(filter(None, (cut, task.note, *(note_overlap(splits, name) for name in given))))
    return Task(
        *(task.name, task.labels, task.metric, splits, note, task.positive, task.kind),
        numbered=task.numbered,
        warnings=tuple(filter(None, (warn_overlap(splits, given), warn_contradictions(task), warn_joined(task)))),
    )


def warn_overlap(splits: Mapping[str, Split], given: Sequence[str]) -> str:
    """That rows of a given file are known from training, where they are not few."""
    overlaps = [note for name in given if (note := note_overlap(splits, name, least=FEW))]
    return f"{'; '.join(overlaps)}: their errors flatter every network" if overlaps else ""


def warn_contradictions(task: UnsplitTask) -> str:
    """That the same text has several classes, where that is so for more than a few rows."""
    rows = task.train
    if task.kind != "classification" or not isinstance(rows, Rows):
        return ""
    classes: dict[tuple[str, ...], set[int]] = {}
    texts = list(zip(*rows.columns, strict=True))
    for text, target in zip(texts, rows.targets.tolist(), strict=True):
        classes.setdefault(text, set()).add(target)
    contradicted = sum(len(classes[text]) > 1 for text in texts)
    if contradicted <= FEW * len(texts):
        return ""
    return f"{contradicted:,} of {len(texts):,} training rows have a text that stands there with another label too"


def warn_joined(task: UnsplitTask) -> str:
    """That classes look like several labels in one."""
    joined = [label for label in task.labels if "|" in label.strip("|")] if task.kind == "classification" else []
    if not joined:
        return ""
    return f"labels such as {quote(joined[0])} are one class each; --task multi-label takes them apart"


def note_overlap(splits: Mapping[str, Split], name: str, *, least: float = 0.0) -> str:
    """How many rows of a given file stand word for word in training rows, if more than this share do.

    Nothing is moved because of it.
    """
    train, rows = splits["train"], splits[name]
    if not (isinstance(rows, TextRows) and isinstance(train, TextRows)):
        return ""
    inside = count_inside(rows.columns, train.columns)
    if inside <= least * len(rows):
        return ""
    return f"{inside} of {len(rows)} {name} rows stand word for word inside training rows"


def check_classes(task: Task, seed: int) -> Task:
    """The task itself, if its training rows can teach every class."""
    rows = task.splits["train"]
    if not task.labels or not isinstance(rows, TextRows):
        return task
    missing = [label for index, label in enumerate(task.labels) if index not in rows.classes]
    if missing and not rows.every_class:
        logger.warning("no training row has %s: nothing is learnt about them", quote_all(missing))
    elif missing:
        way = "take more rows, another --seed, or give --validation and --test files"
        raise BadInput(
            f"no row of class {quote_all(missing)} among the {len(rows)} training rows (seed {seed}); {way}."
        )
    return task
