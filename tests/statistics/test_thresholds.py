"""The best threshold of SQuAD 2.0, by hand and against trying every threshold; metrics against other libraries."""

import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk

from archwright.statistics.metrics import METRICS
from archwright.statistics.squad import best_threshold, exact_match, word_f1, word_f1_or_none

WORDS = st.sampled_from(["", "the", "cat", "a cat", "the cat sat", "Cat!", "dog", "d\u2014og", "é cat", "1,000"])


def plain(text: str) -> list[str]:
    """Words as the official script leaves them, another way: letter by letter, then word by word.

    Between two articles or beside a sign that is no letter an article is a word of its own.
    """
    kept = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
    parts, word = [], ""
    for letter in kept + " ":
        if letter.isalnum() or letter == "_":
            word += letter
        else:
            parts += [" " if word in ("a", "an", "the") else word, letter]
            word = ""
    return "".join(parts).split()


def oracle_f1(answer: str, right: str) -> float:
    """F1 with the rule of version 2.0, from precision and recall."""
    said, wanted = plain(answer), plain(right)
    if not said or not wanted:
        return float(said == wanted)
    hits = sum(min(said.count(word), wanted.count(word)) for word in set(said))
    precision, recall = hits / len(said), hits / len(wanted)
    return 2 * precision * recall / (precision + recall) if hits else 0.0


def test_by_hand() -> None:
    answers, right, doubts = ["cat", "dog", "cow", "hen"], [("cat",), (), ("cow",), ()], [-3.0, -2.0, -1.0, 5.0]
    found = best_threshold(answers, right, doubts, score=exact_match)
    assert (found.score, found.doubt) == (3 / 4, -3.0)  # cat right, dog and hen rightly not said; -1 is as good
    nothing = best_threshold(["x"], [()], [0.0], score=exact_match)
    assert (nothing.score, nothing.doubt) == (1.0, -np.inf)


def test_questions_of_equal_doubt_are_answered_together() -> None:
    found = best_threshold(["cat", "dog"], [("cat",), ()], [1.0, 1.0], score=exact_match)
    assert found.score == 0.5  # no threshold answers the one and not the other


CASES = st.lists(st.tuples(WORDS, st.lists(WORDS, max_size=2), st.integers(-3, 3)), min_size=1, max_size=8)


@given(CASES)
def test_no_threshold_is_better(cases: list[tuple[str, list[str], int]]) -> None:
    answers, right, doubts = [a for a, _, _ in cases], [tuple(r) for _, r, _ in cases], [float(d) for _, _, d in cases]

    def at(threshold: float) -> float:
        said = [answer if doubt <= threshold else "" for answer, doubt in zip(answers, doubts, strict=True)]
        wanted = [[text for text in texts if plain(text)] or [""] for texts in right]
        return float(np.mean([max(oracle_f1(s, t) for t in ts) for ts, s in zip(wanted, said, strict=True)]))

    found = best_threshold(answers, right, doubts)
    assert found.score == pytest.approx(max(at(threshold) for threshold in (-np.inf, *doubts)))
    assert found.score == pytest.approx(at(found.doubt))


TEXTS = st.one_of(WORDS, st.text(alphabet="ab the,.!-_\u2014\u00e9\u2019 \tA1", max_size=20))


@given(TEXTS, TEXTS)
def test_answers_as_another_implementation_judges_them(answer: str, right: str) -> None:
    assert exact_match(answer, right) == float(plain(answer) == plain(right))
    assert word_f1_or_none(answer, right) == pytest.approx(oracle_f1(answer, right))
    if plain(answer) and plain(right):
        assert word_f1(answer, right) == pytest.approx(oracle_f1(answer, right))


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=30))
def test_classes_as_scikit_learn_judges_them(pairs: list[tuple[int, int]]) -> None:
    guess, truth = (np.array(side) for side in zip(*pairs, strict=True))
    assert METRICS["accuracy"](guess, truth) == pytest.approx(sk.accuracy_score(truth, guess))
    assert METRICS["f1"](guess, truth) == pytest.approx(sk.f1_score(truth, guess, zero_division=0))
    assert METRICS["matthews"](guess, truth) == pytest.approx(sk.matthews_corrcoef(truth, guess), abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=30))
def test_numbers_as_scipy_judges_them(pairs: list[tuple[int, int]]) -> None:
    guess, truth = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    if np.ptp(guess) == 0 or np.ptp(truth) == 0:
        assert METRICS["pearson"](guess, truth) == METRICS["spearman"](guess, truth) == 0.0
    else:
        assert METRICS["pearson"](guess, truth) == pytest.approx(stats.pearsonr(guess, truth).statistic, abs=1e-9)
        assert METRICS["spearman"](guess, truth) == pytest.approx(stats.spearmanr(guess, truth).statistic, abs=1e-9)


def test_all_one_class_is_worth_nothing() -> None:
    assert METRICS["matthews"]([1, 1, 1, 1], [1, 0, 1, 1]) == 0.0
    assert METRICS["matthews"]([1, 0, 1, 1], [1, 1, 1, 1]) == 0.0
    assert METRICS["f1"]([0, 0, 0], [0, 1, 1]) == 0.0
    assert METRICS["spearman"]([2.5] * 4, [1.0, 2.0, 3.0, 4.0]) == 0.0
