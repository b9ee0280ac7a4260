"""SQuAD's scores by hand and against a second, plainer way to compute them."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archwright.errors import BadInput
from archwright.statistics import ANSWER_METRICS
from archwright.statistics.squad import normalise_answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Denver Broncos!", "denver broncos"),
        ("a an the", ""),
        ("An apple, a day", "apple day"),
        ("theatre an-other", "theatre another"),
        ("U.S.A.", "usa"),
        ("$1,000\n(about)", "1000 about"),
        ("the\u2014end", "\u2014end"),  # a dash that is not ASCII is no punctuation, but an end of a word
        ("Ünïcode\u2019s", "ünïcode\u2019s"),
        ("", ""),
    ],
)
def test_normalised(text: str, expected: str) -> None:
    assert normalise_answer(text) == expected


CASES = [  # answer, right ones, F1 and exact of 1.1, F1 and exact of 2.0
    ("the Broncos", ["Denver Broncos", "Broncos"], (1.0, 1.0, 1.0, 1.0)),
    ("Denver Broncos team", ["Broncos"], (0.5, 0.0, 0.5, 0.0)),  # precision 1/3, recall 1
    ("red red blue", ["red red red"], (2 / 3, 0.0, 2 / 3, 0.0)),  # words count as often as they occur
    ("", ["Broncos"], (0.0, 0.0, 0.0, 0.0)),
    ("cat", ["dog"], (0.0, 0.0, 0.0, 0.0)),
    ("the", ["the"], (0.0, 1.0, 1.0, 1.0)),  # 2.0: a right answer without words does not count, "" remains
    ("", ["a"], (0.0, 1.0, 1.0, 1.0)),
    ("cat", ["a", "cat"], (1.0, 1.0, 1.0, 1.0)),
]
NAMES = ("squad_f1", "squad_exact", "squad_v2_f1", "squad_v2_exact")


@pytest.mark.parametrize(("answer", "right", "scores"), CASES)
def test_one_question_by_hand(answer: str, right: list[str], scores: tuple[float, ...]) -> None:
    found = [ANSWER_METRICS[name]([answer], [right]) for name in NAMES]
    assert found == pytest.approx(list(scores), abs=1e-12)


def test_the_mean_over_questions() -> None:
    answers, right = ["Broncos", "cat", "red"], [["the Broncos"], ["dog"], ["red blue"]]
    assert ANSWER_METRICS["squad_f1"](answers, right) == pytest.approx((1 + 0 + 2 / 3) / 3)
    assert ANSWER_METRICS["squad_exact"](answers, right) == pytest.approx(1 / 3)


def test_questions_without_answer() -> None:
    answers, right = ["", "cat", "", "cat"], [[], [], ["dog"], ["cat"]]
    assert ANSWER_METRICS["squad_v2_f1"](answers, right) == 0.5
    assert ANSWER_METRICS["squad_v2_exact"](answers, right) == 0.5
    for name in ("squad_f1", "squad_exact"):
        with pytest.raises(BadInput, match=r"needs the scores of SQuAD 2.0"):
            ANSWER_METRICS[name](answers, right)


def plain_words(text: str) -> list[str]:
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def plain_f1(answer: str, right: str) -> float:
    words, left = plain_words(answer), plain_words(right)
    expected, hits = len(left), 0
    for word in words:
        if word in left:
            left.remove(word)
            hits += 1
    if not hits:
        return 0.0
    precision, recall = hits / len(words), hits / expected
    return 2 * precision * recall / (precision + recall)


TEXTS = st.lists(st.sampled_from(["the", "a", "an", "cat", "Dog", "red,", "x.y", "7", "!"]), max_size=6).map(" ".join)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=4))
def test_equals_the_plain_way(answer: str, right: list[str]) -> None:
    f1 = max(plain_f1(answer, text) for text in right)
    same = max(float(plain_words(answer) == plain_words(text)) for text in right)
    assert ANSWER_METRICS["squad_f1"]([answer], [right]) == pytest.approx(f1, abs=1e-12)
    assert ANSWER_METRICS["squad_exact"]([answer], [right]) == same
    golds = [text for text in right if plain_words(text)]
    empty = not plain_words(answer)
    expected = max(plain_f1(answer, text) for text in golds) if golds else float(empty)
    assert ANSWER_METRICS["squad_v2_f1"]([answer], [right]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ANSWER_METRICS)
def test_bad_input_is_refused(name: str) -> None:
    for answers, right in (([], []), (["a"], []), (["a", "b"], [["a"]])):
        with pytest.raises(BadInput, match="one answer per question"):
            ANSWER_METRICS[name](answers, right)
