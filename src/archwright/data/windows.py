"""Question answering: what the positions in a window mean, and the answers that a network's scores stand for."""

from dataclasses import dataclass, replace

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

    def take(self, rows: NDArray[np.int64], tokens: NDArray[np.int64], offsets: NDArray[np.int64]) -> "Windows":
        """The windows at these positions, with their tokens' positions and new offsets, and only their questions."""
        questions, owners = np.unique(self.owners[rows], return_inverse=True)
        contexts, answers = ([texts[question] for question in questions] for texts in (self.contexts, self.answers))
        return replace(
            self,
            owners=owners.astype(np.int64),
            offsets=offsets,
            characters=self.characters[tokens],
            open=self.open[tokens],
            contexts=contexts,
            answers=answers,
        )

    def texts(self, spans: "AnswerSpans") -> list[str]:
        """The answer to each question, "" for none: the best span of its windows, against their weakest "none"."""
        texts = [""] * len(self.contexts)
        order = np.lexsort((np.arange(len(self.owners)), -spans.score, self.owners))
        best = order[np.unique(self.owners[order], return_index=True)[1]]  # of each question, the first of equal ones
        for window in best[np.isfinite(spans.score[best])]:
            texts[self.owners[window]] = self.text(window, int(spans.start[window]), int(spans.end[window]))
        if self.unanswerable:
            high, none = self.best_scores(spans)
            texts = ["" if low > best else text for text, best, low in zip(texts, high, none, strict=True)]
        return texts

    def best_scores(self, spans: "AnswerSpans") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of every question: the score of its best span, and the lowest score of having no answer."""
        best, none = np.full(len(self.contexts), -np.inf), np.full(len(self.contexts), np.inf)
        np.maximum.at(best, self.owners, spans.score)
        np.minimum.at(none, self.owners, spans.none)
        return best, none

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
