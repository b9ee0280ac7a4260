"""Plain text as rows of tokens to pre-train on: packed without padding, or one line per row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.data.encoding import TEXTS_PER_CALL, Encoded, check_length, flat, slices
from archwright.data.text.passage import SUFFIXES, following, read_text
from archwright.errors import BadInput
from archwright.progress import progress

HELD_OUT = 0.05
"""Share of the lines, the last ones, that the validation loss is taken on when there is no file for it."""
UNKNOWN = "<unk>"
"""How WikiText and others write a word that was left out."""
Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Corpus:
    """Lines of a file with something in them."""

    source: str
    lines: list[str]


@dataclass(frozen=True)
class Marks:
    """Special tokens around and between texts; a tokenizer may have none."""

    begin: tuple[int, ...]
    end: tuple[int, ...]

    @property
    def room(self) -> int:
        return len(self.begin) + len(self.end)


def marks_of(tokenizer: Any) -> Marks:
    """[CLS] and [SEP] where texts have them around, else the end token between texts."""
    if tokenizer.cls_token_id is not None and tokenizer.sep_token_id is not None:
        return Marks((tokenizer.cls_token_id,), (tokenizer.sep_token_id,))
    return Marks((), () if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,))


def read_corpus(train: Path, validation: Path | None) -> tuple[Corpus, Corpus]:
    """Lines to learn from and lines to judge by, the last twentieth where no file is named for them."""
    learnt = read_lines(train)
    if validation is not None:
        return learnt, read_lines(validation)
    kept = len(learnt.lines) - max(1, round(HELD_OUT * len(learnt.lines)))
    if kept < 1:
        raise BadInput(f"{train} has one line; give more text, or --corpus-validation FILE to judge by.")
    parts = {"train part": learnt.lines[:kept], "validation part": learnt.lines[kept:]}
    first, second = (Corpus(f"{train} ({name})", lines) for name, lines in parts.items())
    return first, second


def read_lines(path: Path) -> Corpus:
    """The lines of a text file that are not blank."""
    if path.suffix.lower() not in SUFFIXES:
        raise BadInput(f"--corpus must be plain text, a file that ends in {', '.join(SUFFIXES)}; got {str(path)!r}.")
    return Corpus(str(path), [line.strip() for line in read_text(path).text.split("\n") if line.strip()])


def encode_corpus(text: Corpus, tokenizer: Any, *, layout: str, max_length: int, causal: bool = False) -> Encoded:
    """The text as rows of at most `max_length` tokens.

    A causal network reads packed rows without marks at the beginning; its targets are the tokens that follow.
    """
    marks = marks_of(tokenizer)
    marks = Marks((), marks.end) if causal else marks
    check_length(max_length, tokenizer, room=marks.room + 1)
    rows = LAYOUTS[layout](tokens_of(text.lines, tokenizer), marks, max_length)
    if not len(rows):
        raise BadInput(
            f"{text.source} is shorter than one row of --max-length {max_length} tokens; give more text, a smaller "
            "--max-length, or --layout lines."
        )
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    targets = next_tokens(np.stack(rows)) if causal else np.zeros(len(rows), np.int64)
    return Encoded(np.concatenate(rows), offsets, None, targets, tokenizer.pad_token_id or 0)


def next_tokens(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """The token that comes next, for every token of rows that follow each other; after the very last there is none."""
    targets = following(rows)
    targets[:-1, -1] = rows[1:, 0]
    return targets


def tokens_of(lines: Sequence[str], tokenizer: Any) -> list[Ids]:
    """The tokens of every line, without special ones; lines that the tokenizer makes nothing of are left out."""
    found: list[Ids] = []
    with progress("tokenize", len(lines), "lines") as bar:
        for some in slices(len(lines), TEXTS_PER_CALL):
            texts = [line.replace(UNKNOWN, tokenizer.unk_token or UNKNOWN) for line in lines[some]]
            ids = tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
            found += [np.array(row, dtype=np.int32) for row in ids if len(row)]
            bar.advance(some.stop - some.start)
    return found


def pack_lines(lines: Sequence[Ids], marks: Marks, max_length: int) -> Sequence[Ids]:
    """Lines one after another with an end mark behind each, cut into rows of exactly `max_length` tokens.

    Where texts begin and end with marks every row does; what is left at the end is dropped.
    """
    framed = bool(marks.begin)
    inner = max_length - marks.room if framed else max_length
    end = np.array(marks.end, dtype=np.int32)
    stream = np.concatenate([part for line in lines for part in (line, end)]) if lines else np.zeros(0, np.int32)
    blocks = stream[: len(stream) // inner * inner].reshape(-1, inner)
    if not framed:
        return list(blocks)
    begin, close = (np.tile(np.array(mark, dtype=np.int32), (len(blocks), 1)) for mark in (marks.begin, marks.end))
    return list(np.hstack([begin, blocks, close]))


def frame_lines(lines: Sequence[Ids], marks: Marks, max_length: int) -> Sequence[Ids]:
    """One row per line, cut to `max_length` tokens, with the marks around it."""
    inner = max_length - marks.room
    return [
        np.concatenate([flat([marks.begin], np.int32), line[:inner], flat([marks.end], np.int32)]) for line in lines
    ]


LAYOUTS: dict[str, Callable[[Sequence[Ids], Marks, int], Sequence[Ids]]] = {"packed": pack_lines, "lines": frame_lines}
