"""Labelled texts of one split, and what every kind of split can do."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from archwright.data.encoding import (
    CHARACTERS_PER_TOKEN,
    Encoded,
    Tokenized,
    check_length,
    join_parts,
    text_slices,
    tokenize,
)
from archwright.data.tasks.grouping import NO_GROUP, group_rows
from archwright.data.tasks.targets import Targets
from archwright.progress import progress

Positions = NDArray[np.int64]
ROOM = 0.02
"""Share of a part that may be missing before rows that belong together are separated."""


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
    numbered: bool = False
    """Whether the order of the classes is that of the task itself, as in GLUE, and not that of their names."""
    positive: int | None = None


class TextRows:
    """Rows with texts, whatever their labels are: how they are split and sampled, text by text."""

    every_class: ClassVar[bool] = False
    """Whether the training rows must have every class."""

    def __len__(self) -> int:
        raise NotImplementedError

    def take(self, rows: Positions) -> Self:
        """The rows at these positions, in this order."""
        raise NotImplementedError

    @property
    def columns(self) -> list[list[str]]:
        """What rows may share: the texts, and the second texts where there are any."""
        raise NotImplementedError

    @property
    def classes(self) -> set[int]:
        """Ids of the classes that occur."""
        raise NotImplementedError

    def split(self, shares: Mapping[str, float], seed: int) -> dict[str, Self]:
        return {name: self.take(positions) for name, positions in split_rows(len(self), shares, seed).items()}

    def split_together(self, shares: Mapping[str, float], seed: int) -> tuple[dict[str, Self], int]:
        """The same with rows that share text in one part, and how many of the other parts share text with train."""
        groups = group_rows(self.columns)
        parts = split_groups(groups, shares, seed)
        return {name: self.take(positions) for name, positions in parts.items()}, count_separated(groups, parts)

    def sample(self, size: int, seeds: tuple[int, ...]) -> Self:
        return self.take(sample_rows(len(self), size, seeds))


@dataclass(frozen=True, eq=False)
class Rows(TextRows):
    """Labelled texts; `pairs` are the second texts of two-text tasks."""

    every_class: ClassVar[bool] = True
    texts: list[str]
    pairs: list[str] | None
    targets: Targets
    choices: tuple[list[str], ...] = ()
    """Multiple choice: the first choice of every row, the second of every row, ..."""

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Positions) -> Self:
        pairs = None if self.pairs is None else [self.pairs[row] for row in rows]
        choices = tuple([column[row] for row in rows] for column in self.choices)
        return replace(
            self,
            texts=[self.texts[row] for row in rows],
            pairs=pairs,
            targets=self.targets[rows],
            choices=choices,
        )

    @property
    def columns(self) -> list[list[str]]:
        return [self.texts] if self.pairs is None else [self.texts, self.pairs]

    @property
    def classes(self) -> set[int]:
        return set(self.targets.tolist())

    def encode(self, tokenizer: Any, max_length: int) -> Encoded:
        special = tokenizer.num_special_tokens_to_add(pair=self.pairs is not None or bool(self.choices))
        check_length(max_length, tokenizer, room=special + 1)
        parts: list[Tokenized] = []
        with progress("tokenize", len(self), "texts") as bar:
            for some in text_slices(self.texts, CHARACTERS_PER_TOKEN * max_length):
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


def split_groups(groups: Positions, shares: Mapping[str, float], seed: int) -> dict[str, Positions]:
    """As `split_rows`, but rows of one group stay together and those without a group (NO_GROUP) train.

    Where no rows share a group it is the same split. A group that is larger than what the parts still lack trains;
    when too much shares text to fill a part, it is filled with whatever rows are left.
    """
    order = np.random.default_rng((seed, 0)).permutation(len(groups))
    members: dict[int, list[int]] = {}
    for row in order[groups[order] != NO_GROUP].tolist():
        members.setdefault(int(groups[row]), []).append(row)
    lacking = {name: max(1, round(share * len(groups))) for name, share in shares.items()}
    allowed = {name: ROOM * size for name, size in lacking.items()}
    parts: dict[str, list[int]] = {name: [] for name in shares}
    for rows in members.values():
        if name := next((name for name in shares if len(rows) <= lacking[name]), None):
            parts[name] += rows
            lacking[name] -= len(rows)
    for name in shares:
        if lacking[name] > allowed[name]:
            taken = set().union(*parts.values())
            parts[name] += [row for row in order.tolist() if row not in taken][: lacking[name]]
    taken = set().union(*parts.values())
    parts["train"] = [row for row in range(len(groups)) if row not in taken]
    return {name: np.sort(np.array(rows, dtype=np.int64)) for name, rows in parts.items()}


def count_separated(groups: Positions, parts: Mapping[str, Positions]) -> int:
    """Rows outside of train whose group, or that of which they have several, is in train too."""
    train = set(groups[parts["train"]].tolist()) | {NO_GROUP}
    return sum(int(group) in train for name, rows in parts.items() if name != "train" for group in groups[rows])


def sample_rows(total: int, size: int, seeds: tuple[int, ...]) -> Positions:
    """A random part of all positions in ascending order; with the same seeds a larger part contains the smaller."""
    return np.sort(np.random.default_rng(seeds).permutation(total)[:size])
