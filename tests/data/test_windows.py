"""From scores of windows to answers, by hand."""

import numpy as np
import pytest

from archwright.data.windows import AnswerSpans, Windows

CONTEXTS = ["red green blue", "one two"]


def windows(*, unanswerable: bool) -> Windows:
    """Question 0 has two windows (mark, red, green | mark, green, blue), question 1 one (mark, one, two)."""
    words = [[(0, 0), (0, 3), (3, 9)], [(0, 0), (3, 9), (10, 14)], [(0, 0), (0, 3), (4, 7)]]
    return Windows(
        owners=np.array([0, 0, 1]),
        offsets=np.array([0, 3, 6, 9]),
        characters=np.array([place for window in words for place in window], dtype=np.int32),
        open=np.ones(9, dtype=np.int8),
        contexts=CONTEXTS,
        answers=[("blue",), ("one",)],
        unanswerable=unanswerable,
    )


def spans(scores: list[float], places: list[tuple[int, int]], none: list[float]) -> AnswerSpans:
    starts, ends = np.array(places).T
    return AnswerSpans(np.array(scores), starts, ends, np.array(none))


PLACES = [(1, 2), (2, 2), (1, 2)]


def test_the_best_window_of_each_question() -> None:
    found = windows(unanswerable=False)
    assert found.texts(spans([1.0, 2.0, 0.5], PLACES, [9.0, 9.0, 9.0])) == ["blue", "one two"]
    assert found.texts(spans([3.0, 2.0, -5.0], PLACES, [9.0, 9.0, 9.0])) == ["red green", "one two"]


def test_equal_scores_take_the_first_window() -> None:
    assert windows(unanswerable=False).texts(spans([2.0, 2.0, 0.0], PLACES, [0.0] * 3))[0] == "red green"


def test_a_blank_before_a_word_is_no_part_of_the_answer() -> None:
    assert windows(unanswerable=False).text(0, 2, 2) == "green"


@pytest.mark.parametrize(
    ("none", "expected"),
    [
        ([9.0, 1.0, 0.0], ["blue", "one two"]),  # one window sees the answer: its "none" is weak
        ([9.0, 2.5, 0.0], ["", "one two"]),
        ([9.0, 2.0, 0.5], ["blue", "one two"]),  # equal: an answer
        ([9.0, 9.0, 0.6], ["", ""]),
    ],
)
def test_no_answer_needs_all_windows_to_say_so(none: list[float], expected: list[str]) -> None:
    assert windows(unanswerable=True).texts(spans([1.0, 2.0, 0.5], PLACES, none)) == expected


def test_windows_without_an_open_token_have_no_answer() -> None:
    scores = [-np.inf, -np.inf, 1.0]
    assert windows(unanswerable=False).texts(spans(scores, PLACES, [0.0] * 3)) == ["", "one two"]
