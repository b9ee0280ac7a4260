"""The nine GLUE tasks (Wang et al. 2019) from their original tab-separated files."""

from dataclasses import dataclass
from pathlib import Path

from archwright.data.files import decode_utf8, quote, quote_all, read_bytes
from archwright.data.tasks.tables import Examples, RawTask
from archwright.errors import BadInput

TRAIN_FILES = ("train.tsv", "train_subset.tsv")
DEV_FILES = ("dev.tsv", "dev_matched.tsv", "dev_subset.tsv")
BROKEN_SHARE = 0.01
"""QQP's official file has a few short rows; up to this share is left out and said, more is an error."""


@dataclass(frozen=True)
class GlueTask:
    """How one task's files are laid out."""

    about: str
    address: str
    text: str
    pair: str | None
    label: tuple[str, ...] = ("label",)
    """Names the label column has had."""
    labels: tuple[str, ...] = ()
    """In id order; empty for regression."""
    metric: str = "accuracy"
    header: tuple[str, ...] | None = None
    """Column names of a file without a header."""


ADDRESS = "https://dl.fbaipublicfiles.com/glue/data"
ENTAILMENT = ("entailment", "not_entailment")

GLUE: dict[str, GlueTask] = {
    "CoLA": GlueTask(
        "is a sentence acceptable English", f"{ADDRESS}/CoLA.zip", "sentence", None,
        labels=("unacceptable", "acceptable"), metric="matthews", header=("source", "label", "mark", "sentence"),
    ),
    "SST-2": GlueTask(
        "sentiment of film review phrases", f"{ADDRESS}/SST-2.zip", "sentence", None, labels=("negative", "positive")
    ),
    "MRPC": GlueTask(
        "do two news sentences say the same", "https://gluebenchmark.com/tasks", "#1 String", "#2 String",
        label=("Quality",), labels=("not_equivalent", "equivalent"), metric="f1",
    ),
    "STS-B": GlueTask(
        "similarity of two sentences, 0 to 5", f"{ADDRESS}/STS-B.zip", "sentence1", "sentence2",
        label=("score",), metric="spearman",
    ),
    "QQP": GlueTask(
        "are two questions duplicates", f"{ADDRESS}/QQP-clean.zip", "question1", "question2",
        label=("is_duplicate", "label"), labels=("not_duplicate", "duplicate"), metric="f1",
    ),
    "MNLI": GlueTask(
        "does a premise entail a hypothesis, three answers", f"{ADDRESS}/MNLI.zip", "sentence1", "sentence2",
        label=("gold_label", "label"), labels=("entailment", "neutral", "contradiction"),
    ),
    "QNLI": GlueTask(
        "does a sentence answer a question", f"{ADDRESS}/QNLIv2.zip", "question", "sentence", labels=ENTAILMENT
    ),
    "RTE": GlueTask(
        "does a text entail a sentence", f"{ADDRESS}/RTE.zip", "sentence1", "sentence2", labels=ENTAILMENT
    ),
    "WNLI": GlueTask(
        "does a pronoun mean what is claimed", f"{ADDRESS}/WNLI.zip", "sentence1", "sentence2",
        labels=("not_entailment", "entailment"),
    ),
}  # fmt: skip


def load_glue(name: str, data: Path | None) -> RawTask:
    """A GLUE task by the paper's protocol: 30 % of train becomes validation, dev is the test set."""
    task = GLUE[name]
    folder = glue_folder(name, data)
    train, dev = first_of(folder, TRAIN_FILES, task), first_of(folder, DEV_FILES, task)
    (train_examples, train_note), (dev_examples, dev_note) = read_glue(train, task), read_glue(dev, task)
    notes = (f"{dev.name} is the test set", subset_note(train, dev), train_note, dev_note)
    return RawTask(
        name=f"glue/{name}",
        train=train_examples,
        test=dev_examples,
        shares={"validation": 0.3},
        labels=task.labels,
        regression=not task.labels,
        metric=task.metric,
        note="; ".join(filter(None, notes)),
    )


def subset_note(*paths: Path) -> str:
    """A warning when not all of the official data is there."""
    subsets = [path.name for path in paths if path.stem.endswith("_subset")]
    return (
        f"{' and '.join(subsets)}: part of the official data, not comparable with published numbers" if subsets else ""
    )


def glue_folder(name: str, data: Path | None) -> Path:
    """The folder with the task's files: `data` itself, or the folder of the task's name inside it."""
    if data is None:
        files = "the folder with its train.tsv and dev.tsv"
        raise BadInput(f"glue/{name} needs --data DIR, {files}; the original is at {GLUE[name].address}")
    if not data.is_dir():
        raise BadInput(f"--data must be a folder, {str(data)!r} is not; the original is at {GLUE[name].address}")
    return data / name if (data / name).is_dir() else data


def first_of(folder: Path, names: tuple[str, ...], task: GlueTask) -> Path:
    """The first of these files that exists."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise BadInput(f"{str(folder)!r} has none of {', '.join(names)}; the original is at {task.address}")


def read_glue(path: Path, task: GlueTask) -> tuple[Examples, str]:
    """All whole rows of a file, and a note on those left out; quotes are ordinary characters in GLUE."""
    content = decode_utf8(read_bytes(path), str(path)).replace("\r\n", "\n")
    lines = [line.split("\t") for line in content.split("\n") if line.strip()]
    header, rows = (task.header, lines) if task.header else (tuple(lines[0]) if lines else (), lines[1:])
    whole = [fields for fields in rows if len(fields) == len(header)]
    if not rows or not whole or len(rows) - len(whole) > BROKEN_SHARE * len(rows):
        counts = f"{len(rows) - len(whole)} of {len(rows)} rows do not have {len(header)} fields"
        raise BadInput(f"{path} is empty or damaged: {counts}; the original is at {task.address}")
    broken = len(rows) - len(whole)
    return examples_of(whole, header, task, str(path)), f"{broken} broken rows of {path.name} left out" * bool(broken)


def examples_of(rows: list[list[str]], header: tuple[str, ...], task: GlueTask, source: str) -> Examples:
    """Examples from the columns the task uses."""
    text = column_of(header, (task.text,), source)
    pair = column_of(header, (task.pair,), source) if task.pair else None
    label = column_of(header, task.label, source)
    return Examples(
        source,
        [fields[text] for fields in rows],
        None if pair is None else [fields[pair] for fields in rows],
        [label_name(fields[label].strip(), task, source) for fields in rows],
    )


def column_of(header: tuple[str, ...], names: tuple[str, ...], source: str) -> int:
    """Where the first of these columns stands."""
    for name in names:
        if name in header:
            return header.index(name)
    raise BadInput(f"{source} has no column {quote(names[0])}; it has {quote_all(header)}. Is it another task's file?")


def label_name(value: str, task: GlueTask, source: str) -> str:
    """The official name of a label, which some files write as its number; a regression target as it is."""
    if not task.labels or value in task.labels:
        return value
    if value.isascii() and value.isdigit() and int(value) < len(task.labels):
        return task.labels[int(value)]
    raise BadInput(f"{source} has the label {quote(value)}; this task knows {quote_all(task.labels)}.")
