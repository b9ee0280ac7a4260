"""Entity F1: worked examples, and a second implementation that goes word by word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archwright.statistics.metrics import ratio
from archwright.statistics.paired import PairedErrors, RowOutcomes
from archwright.statistics.spans import span_counts
from archwright.tasks.token_classification import marks_spans

TAGS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER", "E-PER", "S-LOC", "L-LOC", "U-PER")


def read_spans(tags: list[str]) -> set[tuple[int, int, str]]:
    """First word, word after the last, and type of every span, word by word."""
    spans: set[tuple[int, int, str]] = set()
    begin, current = None, ""
    for place, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-")
        before = tags[place - 1].partition("-")[0] if place else "O"
        goes_on = begin is not None and kind == current and prefix not in "BSU" and before not in ("E", "L", "S", "U")
        if begin is not None and not goes_on:
            spans.add((begin, place, current))
            begin = None
        if begin is None and tag != "O":
            begin, current = place, kind
    return spans


def slow_f1(answers: list[list[str]], targets: list[list[str]]) -> float:
    right = answered = wanted = 0
    for guess, truth in zip(answers, targets, strict=True):
        ours, theirs = read_spans(guess), read_spans(truth)
        right, answered, wanted = right + len(ours & theirs), answered + len(ours), wanted + len(theirs)
    return 2 * right / (answered + wanted) if answered + wanted else 0.0


def counts(answers: list[list[str]], targets: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
    rows = np.repeat(np.arange(len(targets)), [len(row) for row in targets])
    ids = [np.array([TAGS.index(tag) for row in side for tag in row], dtype=np.int64) for side in (answers, targets)]
    return span_counts(*ids, rows, tags=TAGS, total=len(targets))


@pytest.mark.parametrize(
    ("answers", "targets", "f1"),
    [
        ("B-LOC I-LOC O B-PER", "B-LOC I-LOC O B-PER", 1.0),
        ("B-LOC O O B-PER", "B-LOC I-LOC O B-PER", 0.5),  # one of two has the wrong end
        ("B-PER I-PER O O", "B-LOC I-LOC O O", 0.0),  # the right words, the wrong type
        ("O O O O", "B-LOC I-LOC O O", 0.0),
        ("O O O O", "O O O O", 0.0),  # nothing to find
        ("B-LOC B-LOC O O", "B-LOC I-LOC O O", 0.0),  # two spans where there is one
        ("I-LOC I-LOC O O", "B-LOC I-LOC O O", 1.0),  # IOB1: an I may begin
        ("I-LOC I-PER O O", "B-LOC B-PER O O", 1.0),  # another type is another span
        ("S-LOC O B-PER E-PER", "B-LOC O B-PER I-PER", 1.0),  # BIOES
        ("U-PER O I-LOC L-LOC", "B-PER O B-LOC I-LOC", 1.0),  # BILOU
        ("B-LOC O B-PER O", "B-LOC O O O", 2 / 3),  # precision 1/2, recall 1
    ],
)
def test_worked_examples(answers: str, targets: str, f1: float) -> None:
    pair = [answers.split()], [targets.split()]
    assert ratio(*counts(*pair)) == pytest.approx(f1)
    assert slow_f1(*pair) == pytest.approx(f1)


def test_a_span_ends_with_its_sentence() -> None:
    answers, targets = [["B-LOC"], ["I-LOC", "O"]], [["B-LOC"], ["I-LOC", "O"]]
    parts, wholes = counts(answers, targets)
    assert parts.tolist() == wholes.tolist() == [2, 2]


SENTENCES = st.lists(st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), max_size=8), min_size=1)


@given(SENTENCES)
def test_it_is_what_goes_word_by_word(sentences: list[list[tuple[str, str]]]) -> None:
    answers, targets = ([[pair[side] for pair in row] for row in sentences] for side in (0, 1))
    parts, wholes = counts(answers, targets)
    assert ratio(parts, wholes) == pytest.approx(slow_f1(answers, targets))
    for row, (part, whole) in enumerate(zip(parts, wholes, strict=True)):
        alone = read_spans(answers[row]), read_spans(targets[row])
        assert (part, whole) == (2 * len(alone[0] & alone[1]), len(alone[0]) + len(alone[1]))


def test_which_tags_mark_spans() -> None:
    assert marks_spans(("O", "B-x", "I-x")) and marks_spans(("B-x", "I-x"))
    assert marks_spans(("o", "b-x", "i-x"))
    assert not marks_spans(("NOUN", "VERB")) and not marks_spans(("O", "NOUN")) and not marks_spans(("O",))
    assert not marks_spans(("B-x", "NOUN"))


def test_intervals_come_from_resampled_rows() -> None:
    """Of the same resamples, computed row by row."""
    rng = np.random.default_rng(0)
    good, bad = (RowOutcomes("entity_f1", 2.0 * rng.integers(0, most, 60), np.full(60, 6.0)) for most in (4, 2))
    paired = PairedErrors({"good": good, "bad": bad}, seed=(3,))
    assert paired.error("good") == pytest.approx(1 - good.answers.sum() / 360)
    loss = paired.loss("bad", "good")
    assert 0 < loss.low < loss.value < loss.high and loss.rows == 60
    drawn = np.random.default_rng((3,)).multinomial(60, np.full(60, 1 / 60), size=1000)
    rows = [np.repeat(np.arange(60), draw) for draw in drawn]
    errors = [[1 - one.answers[r].sum() / one.targets[r].sum() for r in rows] for one in (bad, good)]
    low, high = np.quantile(np.subtract(*errors), (0.025, 0.975))
    assert (loss.low, loss.high) == (pytest.approx(low), pytest.approx(high))
