"""The halves of the validation rows: disjoint, complete, the same for a seed, with whole contexts and even classes."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from archwright.data.encoding import Encoded
from archwright.data.tasks.grouping import NO_GROUP
from archwright.data.windows import AnswerSpans, Windows
from archwright.training.task_data import cut_halves


def encoded(targets: np.ndarray, *, choices: int = 1, windows: Windows | None = None) -> Encoded:
    """Text i has i % 5 + 1 tokens, all of them the number i."""
    lengths = np.arange(len(targets) * choices) % 5 + 1
    ids = np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Encoded(ids, offsets, (ids % 2).astype(np.int8), targets, choices=choices, windows=windows)


def texts(rows: Encoded) -> list[tuple[int, ...]]:
    return [tuple(rows.ids[a:b].tolist()) for a, b in pairwise(rows.offsets)]


@pytest.mark.parametrize("choices", [1, 3])
def test_both_halves_together_are_all_rows(choices: int) -> None:
    whole = encoded(np.arange(51) % 2, choices=choices)
    halves = cut_halves(whole, 4)
    assert sorted(text for half in halves for text in texts(half)) == sorted(texts(whole))
    assert abs(len(halves[0]) - len(halves[1])) <= 1
    for half in halves:
        assert half.types is not None and (half.types == half.ids % 2).all()
        firsts = half.ids[half.offsets[:-1]][::choices] // choices  # the row that the first text of each row is of
        assert (half.targets == firsts % 2).all()


def test_the_seed_decides() -> None:
    whole = encoded(np.zeros(60, dtype=int))
    first, again, other = (cut_halves(whole, seed)[0].ids.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_classes_are_even_and_numbers_are_spread() -> None:
    classes = (np.arange(200) % 10 == 0).astype(int)
    assert [int(half.targets.sum()) for half in cut_halves(encoded(classes), 0)] == [10, 10]
    numbers = np.random.default_rng(0).normal(size=200)
    low, high = (half.targets.mean() for half in cut_halves(encoded(numbers), 0))
    assert low == pytest.approx(high, abs=0.05)


def test_blocks_of_text_are_cut_too() -> None:
    halves = cut_halves(encoded(np.arange(80).reshape(40, 2)), 0)
    assert sorted(np.concatenate([half.targets for half in halves]).tolist()) == np.arange(80).reshape(40, 2).tolist()


def test_questions_about_one_context_stay_together_and_keep_their_answers() -> None:
    questions = 60
    contexts = [f"word{question // 3} end" for question in range(questions)]
    owners = np.repeat(np.arange(questions), 2)  # two windows each
    whole = encoded(np.zeros((2 * questions, 2), dtype=int))
    places = np.tile(np.array([[0, 4]], dtype=np.int32), (len(whole.ids), 1))
    windows = Windows(
        owners, whole.offsets, places, np.ones(len(whole.ids), np.int8), contexts, [(c,) for c in contexts], False
    )
    halves = cut_halves(replace(whole, windows=windows), 0)
    of_half = [set(half.windows.contexts) for half in halves if half.windows]
    assert not of_half[0] & of_half[1] and of_half[0] | of_half[1] == set(contexts)
    for half in halves:
        assert half.windows is not None and half.rows == len(half.windows.contexts) == 30
        count = len(half)
        zeros = np.zeros(count, dtype=int)
        answers = half.windows.texts(AnswerSpans(np.zeros(count), zeros, zeros, np.zeros(count)))
        assert answers == [context[:4] for context in half.windows.contexts]
        assert [context for (context,) in half.windows.answers] == half.windows.contexts


def test_rows_that_share_text_stay_together_and_phrases_of_many_do_not_judge() -> None:
    whole, groups = encoded(np.arange(60) % 2), np.arange(60) // 3
    groups[:4] = NO_GROUP
    search, holdout = cut_halves(whole, 0, groups)
    found = [{int(groups[row]) for row in half.ids[half.offsets[:-1]]} for half in (search, holdout)]
    assert found[0] & found[1] == set() and NO_GROUP in found[0] and len(search) + len(holdout) == 60


def test_rows_that_all_share_text_are_dealt_one_by_one() -> None:
    whole = encoded(np.arange(60) % 2)
    halves, plain = (cut_halves(whole, 0, groups) for groups in (np.zeros(60, dtype=np.int64), None))
    assert [half.ids.tolist() for half in halves] == [half.ids.tolist() for half in plain]
