"""Language modelling: plain text in blocks of equal length."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.data.encoding import Encoded, check_length, flat, slices
from archwright.data.files import decode_utf8, read_bytes
from archwright.data.tasks.rows import UnsplitTask
from archwright.data.tasks.splits import part
from archwright.data.tasks.tables import SHARES
from archwright.errors import BadInput
from archwright.progress import progress

SUFFIXES = (".txt", ".text", ".raw", ".tokens")
PIECE = 2**20
"""Characters tokenized at once: what the tokenizer returns is a hundred times as large as the text."""
MARGIN = 2000
"""Characters tokenized beyond both ends of a piece and then dropped: far enough that the ends do not matter."""
NO_TARGET = -100


@dataclass(frozen=True, eq=False)
class Passage:
    """A text; its rows are blocks of tokens, which exist only when it is tokenized."""

    source: str
    text: str
    blocks: int = 0
    """How many of its blocks to keep, chosen at random; 0 for all."""
    seeds: tuple[int, ...] = ()

    def __len__(self) -> int:
        """Characters, as blocks are not known yet."""
        return len(self.text)

    def cut(self, shares: Mapping[str, float], seed: int) -> dict[str, "Passage"]:
        """Contiguous parts in the order train and shares, cut at the ends of lines; the seed does not matter."""
        names = ["train", *shares]
        sizes = [1 - sum(shares.values()), *shares.values()]
        ends = [line_end(self.text, round(share * len(self.text))) for share in np.cumsum(sizes)[:-1]]
        bounds = [0, *ends, len(self.text)]
        return {
            name: replace(self, source=f"{self.source} ({name} part)" if shares else self.source, text=self.text[a:b])
            for name, a, b in zip(names, bounds, bounds[1:], strict=False)
        }

    def some(self, wanted: int, seeds: tuple[int, ...]) -> "Passage":
        return replace(self, blocks=wanted, seeds=seeds)

    def encoded(self, tokenizer: Any, max_length: int) -> Encoded:
        check_length(max_length, tokenizer, room=2)
        ids = token_ids(self.text, tokenizer)
        if len(ids) < max_length:
            way = "give more text or a smaller --max-length"
            raise BadInput(
                f"{self.source} has {len(ids)} tokens, less than one block of --max-length {max_length}; {way}."
            )
        blocks = ids[: len(ids) // max_length * max_length].reshape(-1, max_length)
        if 0 < self.blocks < len(blocks):
            blocks = blocks[part(len(blocks), self.blocks, np.random.default_rng(self.seeds))]
        offsets = np.arange(len(blocks) + 1, dtype=np.int64) * max_length
        return Encoded(blocks.ravel(), offsets, None, following(blocks), tokenizer.pad_token_id or 0)


def line_end(text: str, near: int) -> int:
    """Where the line ends that holds this position; the position itself in a text without line ends after it."""
    found = text.find("\n", near)
    return near if found < 0 else found + 1


def following(blocks: NDArray[np.int32]) -> NDArray[np.int32]:
    """The token that comes next, for every token; after the last one of a block there is none."""
    targets = np.full_like(blocks, NO_TARGET)
    targets[:, :-1] = blocks[:, 1:]
    return targets


def token_ids(text: str, tokenizer: Any) -> NDArray[np.int32]:
    """The ids of a whole text, as one call of the tokenizer would give them, but in bounded memory."""
    if not tokenizer.is_fast:
        return np.array(ids_of(tokenizer, text)["input_ids"], dtype=np.int32)
    found = [np.zeros(0, dtype=np.int32)]
    with progress("tokenize", len(text), "characters") as bar:
        for piece in slices(len(text), PIECE):
            found.append(piece_ids(text, piece, tokenizer))
            bar.advance(piece.stop - piece.start)
    return np.concatenate(found)


def piece_ids(text: str, piece: slice, tokenizer: Any) -> NDArray[np.int32]:
    """The ids of the tokens that begin in a piece of the text."""
    low = max(0, piece.start - MARGIN)
    output = ids_of(tokenizer, text[low : piece.stop + MARGIN], return_offsets_mapping=True)
    begins = flat(output["offset_mapping"], np.int64)[::2] + low
    inside = (begins >= piece.start) & (begins < piece.stop)
    ids: NDArray[np.int32] = np.array(output["input_ids"], dtype=np.int32)[inside]
    return ids


def ids_of(tokenizer: Any, text: str, **more: Any) -> Any:
    return tokenizer(text, add_special_tokens=False, return_attention_mask=False, verbose=False, **more)


def text_files(train: Path, validation: Path | None, test: Path | None) -> UnsplitTask:
    """The user's texts; a validation file without a test file is the test set, as for other files."""
    held_out = test or validation
    return UnsplitTask(
        name=train.name,
        kind="lm",
        metric="perplexity",
        train=read_text(train),
        validation=read_text(validation) if validation and test else None,
        test=read_text(held_out) if held_out else None,
        shares=SHARES[bool(validation) + bool(test)],
        note="the validation file is the test set" if validation and not test else "",
        how="in the order of the text",
    )


def read_text(path: Path) -> Passage:
    """The text of a file, line ends as in Unix."""
    if path.suffix.lower() not in SUFFIXES:
        raise BadInput(f"lm reads plain text, a file that ends in {', '.join(SUFFIXES)}; got {str(path)!r}.")
    text = decode_utf8(read_bytes(path), str(path)).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise BadInput(f"{path} is empty; language modelling needs text.")
    return Passage(str(path), text)
