"""Texts to token ids, kept flat: what all kinds of tasks share before batches are made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.data.windows import Windows
from archwright.errors import BadInput

TEXTS_PER_CALL = 2048
"""Texts given to the tokenizer at once: many, for its threads; not all, because what it returns is large."""
CHARACTERS_PER_TOKEN = 1000
"""More than any text has: what lies behind so many is cut off before a tokenizer makes gigabytes of it."""
CHARACTERS_PER_CALL = 4_000_000
NO_TARGET = -100
"""Where there is nothing to predict, as torch's cross-entropy has it."""
ENDLESS = 10**9
"""From here on a tokenizer's longest length means that it knows none."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Token ids of all texts one after another: text i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    types: NDArray[np.int8] | None
    """Token type ids, when the tokenizer has them."""
    targets: NDArray[Any]
    """Per row: a class id or number; a start and an end (question answering); one id per token (language modelling, and
    token classification, where rows are padded with NO_TARGET)."""
    pad_id: int = 0
    choices: int = 1
    """Texts per row, one after another: several for multiple choice."""
    windows: Windows | None = None
    """Question answering: a row is a window into a context, and several may belong to one question."""
    per_word: bool = False
    """Token classification: only some tokens have a target, and only there a network is asked."""

    def __len__(self) -> int:
        return (len(self.offsets) - 1) // self.choices

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each row, of the longest of its texts."""
        longest: NDArray[np.int64] = np.diff(self.offsets).reshape(-1, self.choices).max(axis=1)
        return longest

    @property
    def median_length(self) -> int:
        """The middle number of tokens per row, for timing a network at a typical length."""
        return int(np.median(self.lengths))

    def first(self, rows: int) -> "Encoded":
        """At most so many rows of plain text."""
        rows = min(rows, len(self))
        ids, offsets = self.ids[: self.offsets[rows]], self.offsets[: rows + 1]
        return replace(self, ids=ids, offsets=offsets, targets=self.targets[:rows])

    def take(self, rows: NDArray[np.int64]) -> "Encoded":
        """The rows at these positions, in this order; of questions, some windows with the questions they belong to."""
        texts = (rows[:, None] * self.choices + np.arange(self.choices)).ravel()
        lengths = np.diff(self.offsets)[texts]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        tokens = np.repeat(self.offsets[texts] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return replace(
            self,
            ids=self.ids[tokens],
            offsets=offsets,
            types=None if self.types is None else self.types[tokens],
            targets=self.targets[rows],
            windows=None if self.windows is None else self.windows.take(rows, tokens, offsets),
        )

    @property
    def rows(self) -> int:
        """Rows as the task counts them: questions, not their windows."""
        return len(self) if self.windows is None else len(self.windows.contexts)


@dataclass(frozen=True)
class Tokenized:
    """What the tokenizer made of some texts."""

    ids: NDArray[np.int32]
    types: NDArray[np.int8] | None
    lengths: NDArray[np.int64]


def tokenize(texts: list[str], pairs: list[str] | None, tokenizer: Any, max_length: int) -> Tokenized:
    """Flat ids, flat token types and lengths of texts or pairs of texts, cut to `max_length` tokens."""
    most = CHARACTERS_PER_TOKEN * max_length
    texts = [text[:most] for text in texts]
    seconds = None if pairs is None else [separator(tokenizer) + pair[:most] for pair in pairs]
    options = {"truncation": True, "max_length": max_length, "padding": False, "return_attention_mask": False}
    output = tokenizer(texts, seconds, **options)
    return Tokenized(flat(output["input_ids"], np.int32), token_types(output), token_lengths(output))


def token_types(output: Any) -> NDArray[np.int8] | None:
    return flat(output["token_type_ids"], np.int8) if "token_type_ids" in output else None


def token_lengths(output: Any) -> NDArray[np.int64]:
    return np.array([len(ids) for ids in output["input_ids"]], dtype=np.int64)


def join_parts(parts: Sequence[Tokenized], targets: NDArray[Any], tokenizer: Any, choices: int = 1) -> Encoded:
    """The parts one after another, as rows with these targets."""
    lengths = np.concatenate([part.lengths for part in parts])
    types = [part.types for part in parts if part.types is not None]
    return Encoded(
        ids=np.concatenate([part.ids for part in parts]),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        types=np.concatenate(types) if types else None,
        targets=targets,
        pad_id=tokenizer.pad_token_id or 0,
        choices=choices,
    )


def separator(tokenizer: Any) -> str:
    """What to put between two texts: nothing where the tokenizer has a special token for it, else a line break."""
    marks = tokenizer.num_special_tokens_to_add(pair=True) > tokenizer.num_special_tokens_to_add(pair=False)
    return "" if marks else "\n"


def check_length(max_length: int, tokenizer: Any, *, room: int) -> None:
    """Refuses a length with room for fewer than so many tokens, or beyond what the tokenizer's model can take."""
    most = tokenizer.model_max_length
    if not room <= max_length <= most:
        rule = f"at least {room}" if most >= ENDLESS else f"{room} to {most}"
        raise BadInput(f"--max-length must be {rule} for this tokenizer, got {max_length}.")


def text_slices(texts: Sequence[str], most: int) -> Iterator[slice]:
    """All positions in order: at most TEXTS_PER_CALL at once, and fewer where texts, cut to `most`, are long."""
    start = characters = 0
    for position, text in enumerate(texts):
        length = min(len(text), most)
        if position - start >= TEXTS_PER_CALL or (position > start and characters + length > CHARACTERS_PER_CALL):
            yield slice(start, position)
            start, characters = position, 0
        characters += length
    if start < len(texts):
        yield slice(start, len(texts))


def slices(total: int, size: int) -> Iterator[slice]:
    """All positions in order, so many at once."""
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


def flat(lists: Sequence[Sequence[int]], dtype: type) -> NDArray[Any]:
    return np.fromiter(chain.from_iterable(lists), dtype=dtype)
