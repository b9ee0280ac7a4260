"""Question answering: what the positions in a window mean, and the answers that a network's scores stand for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Windows:
    """Parts of contexts that fit into a network, each with its question."""

    owners: NDArray[np.int64]
    """The question that each window belongs to."""
    offsets: NDArray[np.int64]
    """Where the tokens of each window begin in the flat arrays."""
    characters: NDArray[np.int32]
    """Of every token: where its text begins and ends in the context (flat, tokens x 2)."""
    open: NDArray[np.int8]
    """Of every token: whether an answer may begin or end there; true for the first, which means "no answer"."""
    contexts: list[str]
    answers: list[tuple[str, ...]]
    """Of every question: the texts that count as right; none when it cannot be answered."""
    unanswerable: bool
    """Whether there are questions without an answer, as in version 2.0 of SQuAD."""

    def texts(self, spans: "AnswerSpans") -> list[str]:
        """The answer to each question, "" for none: the best span of its windows, against their weakest "none"."""
        found = [""] * len(self.contexts)
        for window in best_windows(self.owners, spans.score):
            found[self.owners[window]] = self.text(window, int(spans.start[window]), int(spans.end[window]))
        if self.unanswerable:
            best, none = np.full(len(found), -np.inf), np.full(len(found), np.inf)
            np.maximum.at(best, self.owners, spans.score)
            np.minimum.at(none, self.owners, spans.none)
            found = ["" if low > high else text for text, high, low in zip(found, best, none, strict=True)]
        return found

    def text(self, window: int, start: int, end: int) -> str:
        """The context from one token of a window to another, as it was written."""
        first = self.offsets[window]
        return self.contexts[self.owners[window]][
            self.characters[first + start, 0] : self.characters[first + end, 1]
        ].strip()


@dataclass(frozen=True)
class AnswerSpans:
    """The best span of each window, in the order of the windows."""

    score: NDArray[np.float64]
    """Start plus end; minus infinity when the window has no open token."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    none: NDArray[np.float64]
    """The score of having no answer: that of the first token."""


def best_windows(owners: NDArray[np.int64], scores: NDArray[np.float64]) -> list[int]:
    """For each question the window with the highest score, the first of equal ones; not for those without score."""
    order = np.lexsort((np.arange(len(owners)), -scores, owners))
    first = np.unique(owners[order], return_index=True)[1]
    return [int(window) for window in order[first] if np.isfinite(scores[window])]
