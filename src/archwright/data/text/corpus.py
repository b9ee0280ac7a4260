"""Plain text as rows of tokens: read, tokenized in bounded memory, cut into rows, with the next tokens as targets.

Pre-training takes lines, packed without padding or one per row; language modelling as a task takes the text as it is
(`data.tasks.passages`); probes take a few windows of it (`data.text.snippets`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.data.encoding import NO_TARGET, TEXTS_PER_CALL, Encoded, check_length, flat, slices
from archwright.data.files import decode_utf8, read_bytes
from archwright.errors import BadInput
from archwright.progress import progress

SUFFIXES = (".txt", ".text", ".raw", ".tokens")
PIECE = 2**20
"""Characters tokenized at once: what the tokenizer returns is far larger than the text."""
MARGIN = 2000
"""Characters tokenized beyond both ends of a piece and then dropped: far enough that the ends do not matter."""
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


def read_text(path: Path) -> str:
    """The text of a file, line ends as in Unix."""
    if path.suffix.lower() not in SUFFIXES:
        raise BadInput(f"lm reads plain text, a file that ends in {', '.join(SUFFIXES)}; got {str(path)!r}.")
    text = decode_utf8(read_bytes(path), str(path)).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise BadInput(f"{path} is empty; language modelling needs text.")
    return text


def read_lines(path: Path) -> Corpus:
    """The lines of a text file that are not blank."""
    if path.suffix.lower() not in SUFFIXES:
        raise BadInput(f"--corpus must be plain text, a file that ends in {', '.join(SUFFIXES)}; got {str(path)!r}.")
    return Corpus(str(path), [line.strip() for line in read_text(path).split("\n") if line.strip()])


def cached_lines(path: Path) -> list[str]:
    """The same of any file, read once as long as it stays as it is.

    Lines end wherever `str.splitlines` says, at form feeds too: recorded batches of probes depend on it.
    """
    try:
        state = path.stat()
    except (OSError, ValueError):
        read_bytes(path)  # says what is wrong
        raise
    return _cached_lines(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _cached_lines(path: Path, changed: int, size: int) -> list[str]:
    stripped = (line.strip() for line in decode_utf8(read_bytes(path), str(path)).splitlines())
    lines = [line for line in stripped if line]
    if not lines:
        raise BadInput(f"{path} has no text; give a text file with sentences in it.")
    return lines


def read_corpus(train: Path, validation: Path | None) -> tuple[Corpus, Corpus]:
    """Lines to learn from and lines to judge by, the last twentieth where no file is named for them."""
    corpus = read_lines(train)
    if validation is not None:
        return corpus, read_lines(validation)
    if len(corpus.lines) < 2:
        raise BadInput(f"{train} has one line; give more text, or --corpus-validation FILE to judge by.")
    learnt, held_out = hold_out_lines(corpus.lines)
    return Corpus(f"{train} (train part)", learnt), Corpus(f"{train} (validation part)", held_out)


def hold_out_lines(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines without the last twentieth, and it; each has one at least where there are two."""
    kept = len(lines) - max(1, round(HELD_OUT * len(lines)))
    return lines[:kept], lines[kept:]


def encode_corpus(corpus: Corpus, tokenizer: Any, *, layout: str, max_length: int, causal: bool = False) -> Encoded:
    """The lines as rows of at most `max_length` tokens; `layout` is packed or lines.

    Texts have [CLS] and [SEP] around them, or the end token between them, as the tokenizer knows them. A causal network
    reads packed rows without a mark at the beginning; its targets are the tokens that follow.
    """
    begin, end = [tokenizer.cls_token_id], [tokenizer.sep_token_id]
    if begin[0] is None or end[0] is None:
        begin, end = [], [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    if causal:
        begin = []
    check_length(max_length, tokenizer, room=len(begin) + len(end) + 1)
    lines = tokenize_lines(corpus.lines, tokenizer)
    rows = (pack_lines if layout == "packed" else frame_lines)(lines, begin, end, max_length)
    if not len(rows):
        raise BadInput(
            f"{corpus.source} is shorter than one row of --max-length {max_length} tokens; give more text, a smaller "
            "--max-length, or --layout lines."
        )
    targets = next_tokens(np.stack(rows), continued=True) if causal else np.zeros(len(rows), np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return Encoded(np.concatenate(rows), offsets, None, targets, tokenizer.pad_token_id or 0)


def tokenize_lines(lines: Sequence[str], tokenizer: Any) -> list[Ids]:
    """The tokens of every line, without special ones; lines that the tokenizer makes nothing of are left out."""
    rows: list[Ids] = []
    with progress("tokenize", len(lines), "lines") as bar:
        for some in slices(len(lines), TEXTS_PER_CALL):
            texts = [line.replace(UNKNOWN, tokenizer.unk_token or UNKNOWN) for line in lines[some]]
            rows += [np.array(ids, dtype=np.int32) for ids in plain_ids(tokenizer, texts)["input_ids"] if len(ids)]
            bar.advance(some.stop - some.start)
    return rows


def tokenize_text(text: str, tokenizer: Any) -> Ids:
    """The ids of a whole text, as one call of the tokenizer would give them, but in bounded memory."""
    if not tokenizer.is_fast:
        return np.array(plain_ids(tokenizer, text)["input_ids"], dtype=np.int32)
    parts = [np.zeros(0, dtype=np.int32)]
    with progress("tokenize", len(text), "characters") as bar:
        for piece in slices(len(text), PIECE):
            low = max(0, piece.start - MARGIN)
            output = plain_ids(tokenizer, text[low : piece.stop + MARGIN], return_offsets_mapping=True)
            begins = flat(output["offset_mapping"], np.int64)[::2] + low
            inside = (begins >= piece.start) & (begins < piece.stop)  # tokens that begin in this piece
            parts.append(np.array(output["input_ids"], dtype=np.int32)[inside])
            bar.advance(piece.stop - piece.start)
    return np.concatenate(parts)


def plain_ids(tokenizer: Any, text: str | list[str], **more: Any) -> Any:
    return tokenizer(text, add_special_tokens=False, return_attention_mask=False, verbose=False, **more)


def pack_lines(lines: Sequence[Ids], begin: list[int], end: list[int], max_length: int) -> list[Ids]:
    """Lines one after another with an end mark behind each, cut into rows of exactly `max_length` tokens.

    Where texts begin and end with marks every row does; what is left at the end is dropped.
    """
    mark = np.array(end, dtype=np.int32)
    stream = np.concatenate([part for line in lines for part in (line, mark)]) if lines else np.zeros(0, np.int32)
    blocks = cut_blocks(stream, max_length - len(begin) - len(end) if begin else max_length)
    if not begin:
        return list(blocks)
    first, last = (np.tile(np.array(marks, dtype=np.int32), (len(blocks), 1)) for marks in (begin, end))
    return list(np.hstack([first, blocks, last]))


def frame_lines(lines: Sequence[Ids], begin: list[int], end: list[int], max_length: int) -> list[Ids]:
    """One row per line, cut to `max_length` tokens, with the marks around it."""
    first, last, inner = np.array(begin, np.int32), np.array(end, np.int32), max_length - len(begin) - len(end)
    return [np.concatenate([first, line[:inner], last]) for line in lines]


def cut_blocks(ids: Ids, length: int) -> Ids:
    """Rows of `length` tokens one after another; what does not fill the last one is dropped."""
    return ids[: len(ids) // length * length].reshape(-1, length)


def next_tokens(rows: Ids, *, continued: bool = False) -> Ids:
    """The token that comes next, for every token; -100 after the last one of a row, unless rows follow each other."""
    targets = np.full_like(rows, NO_TARGET)
    targets[:, :-1] = rows[:, 1:]
    if continued:
        targets[:-1, -1] = rows[1:, 0]
    return targets
