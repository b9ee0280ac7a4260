"""Texts for sentence embeddings: one per line or row, or pairs of them with or without a similarity score."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.data.encoding import TEXTS_PER_CALL, Encoded, check_length, join_parts, slices, tokenize
from archwright.data.files import decode_utf8, is_unicode, quote, read_bytes
from archwright.data.tasks.rows import Rows, UnsplitTask
from archwright.data.tasks.table_files import PACKED, Line, ending_of, read_rows, split_lines, unpack
from archwright.data.tasks.tables import USUAL_NAMES, Columns, HeldOut, label_of, text_of
from archwright.data.tasks.targets import number
from archwright.data.tasks.task import TaskRequest
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.progress import progress
from archwright.tasks import TASK_KINDS

KIND = "embeddings"
PLAIN_TEXT = ".txt"
PAIR_NAMES = (
    *(("sentence1", "sentence2"), ("text1", "text2"), ("text", "text_pair"), ("sentence_a", "sentence_b")),
    *(("question1", "question2"), ("premise", "hypothesis"), ("anchor", "positive")),
)
"""Names that the two columns of a pair often have."""
SCORE_NAMES = ("score", "similarity", "similarity_score")
SCORED = "cosine_spearman"
FEWEST_ROWS = 10


@dataclass(frozen=True, eq=False)
class SentenceRows(Rows):
    """Texts that are read one by one: a pair is two texts of one row, not one text of two parts."""

    @property
    def per_row(self) -> int:
        """Texts of a row."""
        return 1 if self.pairs is None else 2

    def encode(self, tokenizer: Any, max_length: int) -> Encoded:
        check_length(max_length, tokenizer, room=tokenizer.num_special_tokens_to_add(pair=False) + 1)
        texts = (
            self.texts if self.pairs is None else [t for row in zip(self.texts, self.pairs, strict=True) for t in row]
        )
        parts = []
        with progress("tokenize", len(texts), "texts") as bar:
            for some in slices(len(texts), TEXTS_PER_CALL):
                parts.append(tokenize(texts[some], None, tokenizer, max_length))
                bar.advance(some.stop - some.start)
        return join_parts(parts, self.targets, tokenizer, choices=self.per_row)


def load_sentences(request: TaskRequest) -> UnsplitTask:
    """The user's texts. Pairs that all have scores are judged by them, all others by the original's neighbours."""
    if request.train is None or request.data is not None:
        raise BadInput(
            f"{KIND} needs texts with --train (and may have --validation and --test): plain text with one per line, or "
            "a table; it takes no --data."
        )
    if request.regression is not None or request.labels or request.columns.choices:
        raise BadInput(f"{KIND} has neither classes nor choices; leave out --regression, --labels, --choice-columns.")
    files = HeldOut.of(request.validation, request.test, request.validation_role)
    train = read_sentences(request.train, request.columns)
    others = {path: read_sentences(path, request.columns) for path in (files.validation, files.test) if path}
    check_alike({request.train: train, **others})
    if len(train) < FEWEST_ROWS:
        raise BadInput(f"{request.train} has {len(train)} rows; at least {FEWEST_ROWS} are needed.")
    scored = train.targets.ndim == 1
    return UnsplitTask(
        name=request.train.name,
        kind=KIND,
        metric=SCORED if scored else TASK_KINDS[KIND].metric,
        train=train,
        validation=others[files.validation] if files.validation else None,
        test=others[files.test] if files.test else None,
        shares=files.shares,
        note=files.note,
    )


def check_alike(files: Mapping[Path, SentenceRows]) -> None:
    """All files hold texts, or all pairs, or all pairs with scores."""
    words = {path: describe(rows) for path, rows in files.items()}
    (first, kind), *others = words.items()
    for path, other in others:
        if other != kind:
            raise BadInput(f"all files must hold the same, got {kind} in {first} and {other} in {path}.")


def describe(rows: SentenceRows) -> str:
    if rows.pairs is None:
        return "texts"
    return "pairs with scores" if rows.targets.ndim == 1 else "pairs without scores"


def read_sentences(path: Path, columns: Columns) -> SentenceRows:
    """All texts of a file; scores are rows of targets, without them targets are rows x 0."""
    if ending_of(path) == PLAIN_TEXT:
        return without_repeats(read_lines(path, columns), path)
    lines: list[Line] = read_rows(path)
    if not lines:
        raise BadInput(f"{path} has a header but no rows; a data file needs at least one row.")
    found = find_columns(columns, lines, str(path))
    if columns.skip_empty:
        full = [line for line in lines if not any(is_blank(line[1].get(name)) for name in found if name is not None)]
        if len(full) < len(lines):
            logger.warning("%s: %s of %s rows are incomplete and left out", path, len(lines) - len(full), len(lines))
        lines = full
    text, pair, score = found
    texts = [text_of(line, text, str(path)) for line in lines]
    pairs = None if pair is None else [text_of(line, pair, str(path)) for line in lines]
    if score is not None:
        return SentenceRows(texts, pairs, read_scores(lines, score, str(path)))
    return without_repeats(SentenceRows(texts, pairs, no_scores(len(texts))), path)


def is_blank(value: Any) -> bool:
    return value is None or not str(value).strip()


def no_scores(rows: int) -> NDArray[np.float32]:
    """Targets of rows that have none yet: rows x 0."""
    return np.zeros((rows, 0), dtype=np.float32)


def read_lines(path: Path, columns: Columns) -> SentenceRows:
    """Plain text, a text per line; empty lines do not count."""
    if replace(columns, skip_empty=False) != Columns():
        raise BadInput(f"plain text has no columns, got {path}; leave the columns out, or give a table.")
    content = decode_utf8(unpack(path) if path.suffix.lower() == PACKED else read_bytes(path), str(path))
    texts = [line.strip() for line in split_lines(content) if line.strip()]
    if not texts:
        raise BadInput(f"{path} is empty; it needs a text per line.")
    broken = next((place for place, text in enumerate(texts, start=1) if not is_unicode(text)), None)
    if broken is not None:
        raise BadInput(f"text {broken} of {path} holds a broken Unicode character; remove it.")
    return SentenceRows(texts, None, no_scores(len(texts)))


def find_columns(columns: Columns, lines: list[Line], source: str) -> tuple[str, str | None, str | None]:
    """Columns of the text, of the second text and of the score, as far as there are any; a line says what was found."""
    row, usual = lines[0][1], Columns()
    text, pair, score = columns.text, columns.pair, None
    if pair is None and text == usual.text:
        text, pair = next((names for names in PAIR_NAMES if set(names) <= set(row)), (text, None))
        likely = [name for name in row if name.casefold() in USUAL_NAMES["text"]]
        if text not in row and len(likely) == 1:
            text = likely[0]
    if pair is not None:
        score = columns.label
        if score == usual.label and score not in row:
            score = next((name for name in row if name.casefold() in SCORE_NAMES), None)
        if score == usual.label and any(number(str(line[1].get(score))) is None for line in lines):
            logger.warning("%s: the labels are no numbers and not used as scores", source)
            score = None
    if (text, pair) != (columns.text, columns.pair) or score not in (None, columns.label):
        taken = {"text": text, "second text": pair, "score": score}
        logger.warning("%s: %s", source, ", ".join(f"{what} is {quote(name)}" for what, name in taken.items() if name))
    return text, pair, score


def read_scores(lines: list[Line], column: str, source: str) -> NDArray[np.float32]:
    """One finite number per row, not all of them equal."""
    values = [number(label_of(line, column, source)) for line in lines]
    scores = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        line = lines[wrong[0]]
        rule = f"line {line[0]} of {source}: a similarity score must be a finite number"
        raise BadInput(f"{rule}, got {quote(line[1][column])} ({len(wrong)} such rows); correct it.")
    if len(np.unique(scores)) < 2:
        raise BadInput(f"every score of {source} is {scores[0]:g}; leave the column {quote(column)} out of the file.")
    return scores.astype(np.float32)


def without_repeats(rows: SentenceRows, path: Path) -> SentenceRows:
    """Each row once: a text would be the nearest neighbour of its own copies."""
    places = {texts: place for place, texts in reversed(list(enumerate(zip(*rows.columns, strict=True))))}
    if len(places) == len(rows):
        return rows
    counts = f"{len(rows) - len(places):,}", f"{len(rows):,}"
    logger.warning("%s: %s of %s rows repeat another one and are left out", path, *counts)
    return rows.take(np.sort(np.fromiter(places.values(), dtype=np.int64)))
