"""Tags of words as spans: what entity F1 counts (CoNLL 2003, the rules of its script conlleval).

A tag is O or a prefix and a type, B-LOC. A span begins at B (or S, U), and at any tag whose neighbour on the left is
outside, of another type, or the end of a span (E, L, S, U); it goes on as long as no other begins. So IOB2 is read as
it is meant, IOB1 and BIOES too, and an I without a B still begins a span, as a network may answer it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
MARKED = re.compile(r"([BIESLU])-(.+)", re.IGNORECASE)
OUTSIDE = "O"
BEGIN, END = "BSU", "ELSU"


@dataclass(frozen=True, eq=False)
class TagScheme:
    """What every tag means, by its id."""

    types: Ids
    """The type of the span; -1 outside."""
    begins: NDArray[np.bool_]
    """Whether a span always begins with it."""
    ends: NDArray[np.bool_]
    """Whether a span always ends with it."""

    @classmethod
    def of(cls, tags: Sequence[str]) -> TagScheme:
        parts = [match.groups() if (match := MARKED.fullmatch(tag)) else (OUTSIDE, None) for tag in tags]
        names = sorted({name for _, name in parts if name is not None})
        return cls(
            types=np.array([-1 if name is None else names.index(name) for _, name in parts]),
            begins=np.array([prefix.upper() in BEGIN for prefix, _ in parts]),
            ends=np.array([prefix.upper() in END for prefix, _ in parts]),
        )

    def find(self, tags: Ids, rows: Ids) -> tuple[Ids, Ids]:
        """The spans of words one after another, each of the row with this number: their first words, and their keys.

        A key is the same for the same first word, last word and type, and for nothing else.
        """
        types, total = self.types[tags], len(tags)
        inside = types >= 0
        joined = np.zeros(total, dtype=bool)  # goes on from the word on the left
        joined[1:] = (
            (types[1:] == types[:-1]) & (rows[1:] == rows[:-1]) & ~self.begins[tags[1:]] & ~self.ends[tags[:-1]]
        )
        starts = np.flatnonzero(inside & ~joined)
        stops = np.append(np.flatnonzero(~(inside & joined)), total)  # words that no span goes on into
        after = stops[np.searchsorted(stops, starts, side="right")]
        return starts, (starts * (total + 1) + after) * (len(self.types) + 1) + types[starts]


def span_counts(
    answers: Ids, targets: Ids, rows: Ids, *, tags: Sequence[str], total: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per row twice the spans that are right (same words, same type), and those answered and wanted together.

    The F1 of all rows is the sum of the first by the sum of the second. `rows` are the ascending rows of the words.
    """
    scheme = TagScheme.of(tags)
    (first, answered), (begin, wanted) = scheme.find(answers, rows), scheme.find(targets, rows)
    right = begin[np.isin(wanted, answered)]

    def per_row(starts: Ids) -> NDArray[np.float64]:
        return np.bincount(rows[starts], minlength=total).astype(np.float64)

    return 2 * per_row(right), per_row(first) + per_row(begin)
