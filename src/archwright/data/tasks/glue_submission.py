"""What the GLUE leaderboard asks for beside train and dev: mismatched rows, rows without labels, a zip of answers."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from archwright.data.files import decode_utf8, read_bytes
from archwright.data.tasks.glue import GLUE, GlueTask, column_of, glue_folder, read_glue
from archwright.data.tasks.rows import Rows
from archwright.errors import BadInput

FIRST_COLUMN = {"MNLI": "MNLI-m"}
"""Columns of the leaderboard that are not called as their task."""
MORE_DEV = {"MNLI": {"MNLI-mm": "dev_mismatched.tsv"}}
SCORES = (0.0, 5.0)
"""Between which the similarities of STS-B lie."""
OLDEST = (1980, 1, 1, 0, 0, 0)
"""The time in a zip file, always the same, so that the same answers give the same file."""


@dataclass(frozen=True)
class SubmissionFile:
    """One file of a submission."""

    task: str
    files: tuple[str, ...]
    """Where its rows may lie, seen from the task's folder."""
    words: bool = False
    """Whether answers are written as names of labels, not as their numbers."""


SUBMISSION_FILES: dict[str, SubmissionFile] = {
    **{name: SubmissionFile(name, ("test.tsv",)) for name in ("CoLA", "SST-2", "MRPC", "STS-B", "QQP", "WNLI")},
    **{name: SubmissionFile(name, ("test.tsv",), words=True) for name in ("QNLI", "RTE")},
    "MNLI-m": SubmissionFile("MNLI", ("test_matched.tsv",), words=True),
    "MNLI-mm": SubmissionFile("MNLI", ("test_mismatched.tsv",), words=True),
    "AX": SubmissionFile(
        "MNLI", ("diagnostic.tsv", "../diagnostic/diagnostic.tsv", "../AX/diagnostic.tsv"), words=True
    ),
}
"""Name of a file in the zip, without .tsv -> the rows it answers."""


@dataclass(frozen=True, eq=False)
class UnlabelledRows:
    """Rows whose labels only the leaderboard knows."""

    column: str
    index: list[str]
    rows: Rows


def present_tasks(data: Path) -> list[str]:
    """The GLUE tasks that have a folder in this one, in the usual order."""
    if not data.is_dir():
        raise BadInput(f"--glue must be a folder with a folder per task (CoLA, SST-2, ...), got {str(data)!r}.")
    names = [name for name in GLUE if (data / name).is_dir()]
    if not names:
        raise BadInput(f"--glue must have a folder per task such as {', '.join(list(GLUE)[:3])}, {data} has none.")
    return names


def extra_dev_rows(task: str, data: Path, labels: Sequence[str]) -> dict[str, Rows]:
    """Dev rows of further columns of the leaderboard, where their files are there: MNLI-mm."""
    folder, rows = glue_folder(task, data), {}
    for column, file in MORE_DEV.get(task, {}).items():
        if (folder / file).is_file():
            examples, _ = read_glue(folder / file, GLUE[task])
            targets = np.array([labels.index(label) for label in examples.labels], dtype=np.int64)
            rows[column] = Rows(examples.texts, examples.pairs, targets)
    return rows


def leaderboard_rows(task: str, data: Path) -> list[UnlabelledRows]:
    """Test rows of a task that are there, for every file of a submission that it answers."""
    folder = glue_folder(task, data)
    places = {
        column: next((folder / file for file in test.files if (folder / file).is_file()), None)
        for column, test in SUBMISSION_FILES.items()
        if test.task == task
    }
    return [read_leaderboard_rows(column, path, GLUE[task]) for column, path in places.items() if path is not None]


def read_leaderboard_rows(column: str, path: Path, task: GlueTask) -> UnlabelledRows:
    """Rows with their number in the first column; every one must be answered, so a broken one is an error."""
    content = decode_utf8(read_bytes(path), str(path)).replace("\r\n", "\n")
    lines = [line.split("\t") for line in content.split("\n") if line]
    header, rows = tuple(lines[0]) if lines else (), lines[1:]
    if not rows or any(len(row) != len(header) for row in rows):
        raise BadInput(f"{path} is empty or damaged; the original is at {task.address}")
    text = column_of(header, (task.text,), str(path))
    pair = column_of(header, (task.pair,), str(path)) if task.pair else None
    pairs = None if pair is None else [row[pair] for row in rows]
    return UnlabelledRows(
        column, [row[0] for row in rows], Rows([row[text] for row in rows], pairs, np.zeros(len(rows), np.int64))
    )


def format_answers(column: str, answers: Sequence[float], labels: Sequence[str]) -> list[str]:
    """Answers as the leaderboard wants them: names, official numbers of classes, or similarities within bounds."""
    official = GLUE[SUBMISSION_FILES[column].task].labels
    if not official:
        return [f"{min(max(float(answer), SCORES[0]), SCORES[1]):.3f}" for answer in answers]
    names = [labels[int(answer)] for answer in answers]
    return names if SUBMISSION_FILES[column].words else [str(official.index(name)) for name in names]


def zip_submission(files: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> bytes:
    """The zip for the leaderboard: column -> numbers of the rows and their answers, as CoLA.tsv and so on."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for column, (index, answers) in files.items():
            lines = ["index\tprediction", *map("\t".join, zip(index, answers, strict=True))]
            archive.writestr(zipfile.ZipInfo(f"{column}.tsv", OLDEST), "\n".join(lines) + "\n")
    return raw.getvalue()
