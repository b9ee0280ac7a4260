"""SQuAD's official scores of answers (Rajpurkar et al. 2016; version 2.0: 2018), higher is better."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from archwright.errors import BadInput

Answers = Sequence[str]
Score = Callable[[str, str], float]
"""Of an answer and one of the right answers."""

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """Lower case, without ASCII punctuation and English articles, with single blanks."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact(answer: str, right: str) -> float:
    """1 when both are the same after normalisation, else 0."""
    return float(normalised(answer) == normalised(right))


def overlap(answer: str, right: str) -> float:
    """F1 of the words that both have, 0 to 1; 0 when they have none in common."""
    words, expected = normalised(answer).split(), normalised(right).split()
    common = sum((Counter(words) & Counter(expected)).values())
    return 2 * common / (len(words) + len(expected)) if common else 0.0


def overlap_or_none(answer: str, right: str) -> float:
    """The same, but an answer without words is right when the right one has none either (version 2.0)."""
    if normalised(answer) and normalised(right):
        return overlap(answer, right)
    return exact(answer, right)


def mean_of_best(answers: Answers, right: Sequence[Answers], *, score: Score, none: bool) -> float:
    """The mean over questions of the score against the most similar right answer, 0 to 1.

    With `none` (version 2.0) right answers without words do not count, and a question without any is answered by "".
    """
    if not answers or len(answers) != len(right):
        raise BadInput(f"a metric needs one answer per question, got {len(answers)} for {len(right)} questions.")
    expected = [[text for text in texts if normalised(text)] or [""] if none else texts for texts in right]
    if not all(expected):
        raise BadInput("a question without a right answer needs the scores of SQuAD 2.0.")
    best = [max(score(answer, text) for text in texts) for answer, texts in zip(answers, expected, strict=True)]
    return sum(best) / len(best)


ANSWER_METRICS: dict[str, Callable[[Answers, Sequence[Answers]], float]] = {
    "squad_f1": partial(mean_of_best, score=overlap, none=False),
    "squad_exact": partial(mean_of_best, score=exact, none=False),
    "squad_v2_f1": partial(mean_of_best, score=overlap_or_none, none=True),
    "squad_v2_exact": partial(mean_of_best, score=exact, none=True),
}
"""Answers and, for each question, the right ones -> score."""
