"""Labelled texts of one split, and what every kind of split can do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from archwright.data.encoding import TEXTS_PER_CALL, Encoded, Tokenized, check_length, join_parts, slices, tokenize
from archwright.data.tasks.targets import Targets
from archwright.progress import progress

Positions = NDArray[np.int64]


class Split(Protocol):
    """The data of one split, before it is tokenized."""

    def __len__(self) -> int: ...
    def split(self, shares: Mapping[str, float], seed: int) -> Mapping[str, Self]:
        """ "train" and each named share, disjoint and complete."""
        ...

    def sample(self, size: int, seeds: tuple[int, ...]) -> Self:
        """A random part of so many rows; with the same seeds a larger part contains the smaller."""
        ...

    def encode(self, tokenizer: Any, max_length: int) -> Encoded:
        """Token ids, cut to `max_length` tokens and not padded."""
        ...


@dataclass(frozen=True, eq=False)
class UnsplitTask:
    """A task whose training data is not cut into splits yet."""

    name: str
    kind: str
    metric: str
    train: Split
    shares: Mapping[str, float]
    """Which splits are cut from `train`, and how much of it each takes."""
    validation: Split | None = None
    test: Split | None = None
    note: str = ""
    how: str = "with seed {seed}"
    """In which way `train` is cut, for the note."""
    labels: tuple[str, ...] = ()
    positive: int | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled texts; `pairs` are the second texts of two-text tasks."""

    texts: list[str]
    pairs: list[str] | None
    targets: Targets
    choices: tuple[list[str], ...] = ()
    """Multiple choice: the first choice of every row, the second of every row, ..."""

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Positions) -> "Rows":
        """The rows at these positions, in this order."""
        pairs = None if self.pairs is None else [self.pairs[row] for row in rows]
        choices = tuple([column[row] for row in rows] for column in self.choices)
        return Rows([self.texts[row] for row in rows], pairs, self.targets[rows], choices)

    def split(self, shares: Mapping[str, float], seed: int) -> dict[str, "Rows"]:
        return {name: self.take(positions) for name, positions in split_rows(len(self), shares, seed).items()}

    def sample(self, size: int, seeds: tuple[int, ...]) -> "Rows":
        return self.take(sample_rows(len(self), size, seeds))

    def encode(self, tokenizer: Any, max_length: int) -> Encoded:
        special = tokenizer.num_special_tokens_to_add(pair=self.pairs is not None or bool(self.choices))
        check_length(max_length, tokenizer, room=special + 1)
        parts: list[Tokenized] = []
        with progress("tokenize", len(self), "texts") as bar:
            for some in slices(len(self), TEXTS_PER_CALL):
                parts.append(tokenize(*self.sequences(some), tokenizer, max_length))
                bar.advance(some.stop - some.start)
        return join_parts(parts, self.targets, tokenizer, choices=len(self.choices) or 1)

    def sequences(self, some: slice) -> tuple[list[str], list[str] | None]:
        """First and second texts of some rows; for multiple choice each text with each of its choices."""
        if not self.choices:
            return self.texts[some], None if self.pairs is None else self.pairs[some]
        chosen = list(zip(*(column[some] for column in self.choices), strict=True))
        return [text for text in self.texts[some] for _ in self.choices], [c for row in chosen for c in row]


def split_rows(total: int, shares: Mapping[str, float], seed: int) -> dict[str, Positions]:
    """Positions of "train" and of each named share, disjoint, complete and in ascending order."""
    order = np.random.default_rng((seed, 0)).permutation(total)
    sizes = [max(1, round(share * total)) for share in shares.values()]
    *held_out, train = np.split(order, np.cumsum(sizes))
    return {split: np.sort(part) for split, part in zip([*shares, "train"], [*held_out, train], strict=True)}


def sample_rows(total: int, size: int, seeds: tuple[int, ...]) -> Positions:
    """A random part of all positions in ascending order; with the same seeds a larger part contains the smaller."""
    return np.sort(np.random.default_rng(seeds).permutation(total)[:size])
