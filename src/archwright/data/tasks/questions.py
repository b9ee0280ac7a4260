"""Questions about texts that may be longer than a network can read: overlapping windows of tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.data.encoding import (
    TEXTS_PER_CALL,
    Encoded,
    Tokenized,
    check_length,
    flat,
    join_parts,
    separator,
    slices,
    token_lengths,
    token_types,
)
from archwright.data.tasks.rows import sample_rows, split_rows
from archwright.data.windows import Windows
from archwright.errors import BadInput
from archwright.progress import progress

OVERLAP = 128
"""Tokens that a window shares with the one before it; at most half of a window."""
LONGEST_QUESTION = 64
"""Tokens of a question that are read; at most half of the length."""
FEWEST_TOKENS = 16
"""Of question and context together: fewer leave no room for windows that overlap."""


@dataclass(frozen=True, eq=False)
class QuestionRows:
    """Questions with their contexts and answers."""

    questions: list[str]
    contexts: list[str]
    paragraphs: NDArray[np.int64]
    """Questions about the same context have the same number, and are never in two splits."""
    spans: NDArray[np.int64]
    """Where the answer to learn begins and ends in the context, characters; -1 for questions without answer."""
    answers: list[tuple[str, ...]]
    """All texts that count as right."""
    unanswerable: bool
    """Whether some questions of the task have no answer."""

    def __len__(self) -> int:
        return len(self.questions)

    def take(self, rows: NDArray[np.int64]) -> "QuestionRows":
        """The questions at these positions, in this order."""
        questions, contexts = ([texts[row] for row in rows] for texts in (self.questions, self.contexts))
        answers = [self.answers[row] for row in rows]
        return QuestionRows(questions, contexts, self.paragraphs[rows], self.spans[rows], answers, self.unanswerable)

    def split(self, shares: Mapping[str, float], seed: int) -> dict[str, "QuestionRows"]:
        """Whole paragraphs go into one split, so that no context is both learned and judged."""
        numbers, member = np.unique(self.paragraphs, return_inverse=True)
        return {
            split: self.take(np.flatnonzero(np.isin(member, chosen)))
            for split, chosen in split_rows(len(numbers), shares, seed).items()
        }

    def sample(self, size: int, seeds: tuple[int, ...]) -> "QuestionRows":
        return self.take(sample_rows(len(self), size, seeds))

    def encode(self, tokenizer: Any, max_length: int) -> Encoded:
        special = tokenizer.num_special_tokens_to_add(pair=True)
        check_length(max_length, tokenizer, room=special + FEWEST_TOKENS)
        if not tokenizer.is_fast:
            raise BadInput("question answering needs a tokenizer that knows positions; put tokenizer.json beside it.")
        parts: list[TokenizedWindows] = []
        with progress("tokenize", len(self), "questions") as bar:
            for some in slices(len(self), TEXTS_PER_CALL):
                parts.append(tokenize_windows(self, some, tokenizer, max_length - special))
                bar.advance(some.stop - some.start)
        targets = np.concatenate([part.targets for part in parts])
        encoded = join_parts([part.tokens for part in parts], targets, tokenizer)
        windows = Windows(
            owners=np.concatenate([part.owners for part in parts]),
            offsets=encoded.offsets,
            characters=np.concatenate([part.characters for part in parts]),
            open=np.concatenate([part.open for part in parts]),
            contexts=self.contexts,
            answers=self.answers,
            unanswerable=self.unanswerable,
        )
        return replace(encoded, windows=windows)


@dataclass(frozen=True)
class TokenizedWindows:
    """The windows of some questions."""

    tokens: Tokenized
    owners: NDArray[np.int64]
    characters: NDArray[np.int32]
    open: NDArray[np.int8]
    targets: NDArray[np.int64]


def tokenize_windows(rows: QuestionRows, some: slice, tokenizer: Any, room: int) -> TokenizedWindows:
    """Questions and windows of contexts, together at most `room` tokens without special ones."""
    longest = min(LONGEST_QUESTION, room // 2)
    before = separator(tokenizer)
    output = tokenizer(
        shorten(rows.questions[some], tokenizer, longest),
        [before + context for context in rows.contexts[some]],
        truncation="only_second",
        max_length=room + tokenizer.num_special_tokens_to_add(pair=True),
        stride=min(OVERLAP, (room - longest) // 2),
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_attention_mask=False,
    )
    lengths = token_lengths(output)
    owners = np.array(output["overflow_to_sample_mapping"], dtype=np.int64) + some.start
    characters = flat([pair for row in output["offset_mapping"] for pair in row], np.int32).reshape(-1, 2)
    characters = np.maximum(characters - len(before), 0)
    sequences = (output.sequence_ids(window) for window in range(len(lengths)))  # which tokens are of the second text
    inside = np.array([number == 1 for numbers in sequences for number in numbers], dtype=bool)
    inside &= characters[:, 1] > characters[:, 0]
    starts = np.cumsum(lengths) - lengths
    targets = answer_tokens(characters, inside, np.append(starts, len(inside)), rows.spans[owners])
    inside[starts] = True
    tokens = Tokenized(flat(output["input_ids"], np.int32), token_types(output), lengths)
    return TokenizedWindows(tokens, owners, characters, inside.astype(np.int8), targets)


def shorten(questions: list[str], tokenizer: Any, longest: int) -> list[str]:
    """The questions, those of more tokens than that cut before the first one too many."""
    output = tokenizer(questions, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    return [
        text if len(places) <= longest else text[: places[longest][0]]
        for text, places in zip(questions, output["offset_mapping"], strict=True)
    ]


def answer_tokens(
    characters: NDArray[np.int32], inside: NDArray[np.bool_], offsets: NDArray[np.int64], spans: NDArray[np.int64]
) -> NDArray[np.int64]:
    """First and last token of the answer in each window (windows x 2); 0 and 0 when it is not all in there."""
    targets = np.zeros((len(spans), 2), dtype=np.int64)
    for window, (start, end) in enumerate(spans):
        places = np.flatnonzero(inside[offsets[window] : offsets[window + 1]])
        bounds = characters[offsets[window] + places]
        if start < 0 or not len(places) or start < bounds[0, 0] or end > bounds[-1, 1]:
            continue
        first = int(np.searchsorted(bounds[:, 1], start, side="right"))
        last = int(np.searchsorted(bounds[:, 0], end, side="left")) - 1
        if first <= last:
            targets[window] = places[first], places[last]
    return targets
