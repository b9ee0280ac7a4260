"""SQuAD's official scores of answers (Rajpurkar et al. 2016; version 2.0: 2018), higher is better."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from archwright.errors import BadInput

Answers = Sequence[str]
Score = Callable[[str, str], float]
"""Of an answer and one of the right answers."""

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer(text: str) -> str:
    """Lower case, without ASCII punctuation and English articles, with single blanks."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(answer: str, right: str) -> float:
    """1 when both are the same after normalisation, else 0."""
    return float(normalise_answer(answer) == normalise_answer(right))


def word_f1(answer: str, right: str) -> float:
    """F1 of the words that both have, 0 to 1; 0 when they have none in common."""
    words, expected = normalise_answer(answer).split(), normalise_answer(right).split()
    common = sum((Counter(words) & Counter(expected)).values())
    return 2 * common / (len(words) + len(expected)) if common else 0.0


def word_f1_or_none(answer: str, right: str) -> float:
    """The same, but an answer without words is right when the right one has none either (version 2.0)."""
    if normalise_answer(answer) and normalise_answer(right):
        return word_f1(answer, right)
    return exact_match(answer, right)


def score_answers(answers: Answers, right: Sequence[Answers], *, score: Score, none: bool) -> list[float]:
    """Of every question the score against the most similar right answer, 0 to 1.

    With `none` (version 2.0) right answers without words do not count, and a question without any is answered by "".
    """
    if not answers or len(answers) != len(right):
        raise BadInput(f"a metric needs one answer per question, got {len(answers)} for {len(right)} questions.")
    expected = [with_words(texts) or [""] if none else texts for texts in right]
    if not all(expected):
        raise BadInput("a question without a right answer needs the scores of SQuAD 2.0.")
    return [max(score(answer, text) for text in texts) for answer, texts in zip(answers, expected, strict=True)]


def with_words(texts: Answers) -> list[str]:
    return [text for text in texts if normalise_answer(text)]


ANSWER_SCORES: dict[str, Callable[[Answers, Sequence[Answers]], list[float]]] = {
    "squad_f1": partial(score_answers, score=word_f1, none=False),
    "squad_exact": partial(score_answers, score=exact_match, none=False),
    "squad_v2_f1": partial(score_answers, score=word_f1_or_none, none=True),
    "squad_v2_exact": partial(score_answers, score=exact_match, none=True),
}
"""Answers and, for each question, the right ones -> score of each answer."""


def mean_score(answers: Answers, right: Sequence[Answers], *, metric: str) -> float:
    """The mean over questions, 0 to 1."""
    scores = ANSWER_SCORES[metric](answers, right)
    return sum(scores) / len(scores)


ANSWER_METRICS: dict[str, Callable[[Answers, Sequence[Answers]], float]] = {
    metric: partial(mean_score, metric=metric) for metric in ANSWER_SCORES
}
"""Answers and, for each question, the right ones -> score."""


@dataclass(frozen=True)
class Threshold:
    """Where to stop answering, chosen on the very questions it is judged by: an upper bound."""

    score: float
    """What the metric is then."""
    doubt: float
    """A question whose doubt is larger has no answer."""


def best_threshold(
    answers: Answers, right: Sequence[Answers], doubts: Sequence[float], *, score: Score = word_f1_or_none
) -> Threshold:
    """The threshold with the best mean score (SQuAD 2.0), the lowest of equally good ones.

    `answers` are the best ones found whatever the doubt, `doubts` the score of "none" minus that of the answer.
    Questions of equal doubt are answered together, as no threshold can tell them apart.
    """
    expected = [with_words(texts) for texts in right]
    ordered = sorted(zip(doubts, answers, expected, strict=True), key=lambda entry: entry[0])
    total = float(sum(not texts for texts in expected))
    best, chosen = total, -float("inf")
    for doubt, alike in groupby(ordered, key=lambda entry: entry[0]):
        for _, answer, texts in alike:  # how much better the answer is than none
            total += max(score(answer, text) for text in texts) if texts else -float(bool(normalise_answer(answer)))
        if total > best:
            best, chosen = total, doubt
    return Threshold(best / len(ordered), chosen)
