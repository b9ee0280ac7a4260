"""A teacher's answers: kept and read as they were worked out, whatever happens to the files; other words for rows."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import BertConfig, BertForMaskedLM

from archwright.data.batching import batch_of
from archwright.data.encoding import NO_TARGET, Encoded
from archwright.data.epochs import masking
from archwright.errors import BadInput, Failed
from archwright.networks.embeddings import put_low_rank
from archwright.training.losses import task_loss
from archwright.training.objectives.distill import LossWeights, layerwise_update
from archwright.training.objectives.layers import build_projections
from archwright.training.teaching import cache as caches
from archwright.training.teaching.answers import KeptAnswers, half_precision, pad_states, restore_tokens
from archwright.training.teaching.augmentation import (
    FilledWords,
    NeighbourWords,
    build_replacer,
    load_masked_head,
    replaceable,
    whole_words,
)
from archwright.training.teaching.cache import Part, bytes_of_rows, open_cache
from archwright.training.teaching.rows import join_rows, without_labels
from tests.tiny import tiny
from tests.training.cases import NLU, mlm_network, seeded

PARTS = {"states": Part(3, True, "float16"), "row-logits": Part(2, False, "float32")}
STARTS = np.array([0, 2, 5, 6])
ALL = 10**9


def row_of(number: int) -> dict[str, NDArray[Any]]:
    tokens = int(STARTS[number + 1] - STARTS[number])
    return {"states": np.full((tokens, 3), number + 0.5, np.float16), "row-logits": np.full((1, 2), number, np.float32)}


def rows_of(lengths: tuple[int, ...] = (5, 9, 3, 7, 8, 4), classes: int = 3) -> Encoded:
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 40, size=sum(lengths)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Encoded(ids, offsets, None, rng.integers(classes, size=len(lengths)))


def same_row(one: Any, other: Any) -> bool:
    return one is not None and all(np.array_equal(one[name], other[name]) for name in other)


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    cache = open_cache(tmp_path / "a", PARTS, STARTS, "way out")
    assert [cache.read(row) for row in range(3)] == [None] * 3
    for row in (2, 0):
        cache.write(row, row_of(row))
    assert same_row(cache.read(0), row_of(0)) and cache.read(1) is None and same_row(cache.read(2), row_of(2))
    again = open_cache(tmp_path / "a", PARTS, STARTS, "way out")
    assert same_row(again.read(2), row_of(2)) and again.read(1) is None and again.damaged == 0
    assert again.size == 6 * 3 * 2 + 3 * (2 * 4 + 4) == bytes_of_rows(PARTS, STARTS)[-1]


@pytest.mark.parametrize("file", ["states.bin", "row-logits.bin", "checksums.bin"])
def test_a_damaged_row_is_missing_and_the_others_are_there(file: str, tmp_path: Path) -> None:
    cache = open_cache(tmp_path / "a", PARTS, STARTS, "")
    for row in range(3):
        cache.write(row, row_of(row))
    del cache
    with open(tmp_path / "a" / file, "r+b") as content:
        first = content.read(1)
        content.seek(0)
        content.write(bytes([first[0] ^ 4]))
    cache = open_cache(tmp_path / "a", PARTS, STARTS, "")
    assert cache.read(0) is None and cache.damaged == 1
    assert same_row(cache.read(1), row_of(1)) and same_row(cache.read(2), row_of(2))
    cache.write(0, row_of(0))
    assert same_row(cache.read(0), row_of(0))


def test_files_that_were_cut_or_of_another_shape_are_made_anew(tmp_path: Path) -> None:
    open_cache(tmp_path / "a", PARTS, STARTS, "").write(0, row_of(0))
    os.truncate(tmp_path / "a" / "states.bin", 4)
    assert open_cache(tmp_path / "a", PARTS, STARTS, "").read(0) is None
    assert len(open_cache(tmp_path / "a", PARTS, STARTS[:3], "")) == 2


def test_a_disk_without_room_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(BadInput, match=r"answers need 0.00 GB in .*, 0.00 GB are free; take another\.$") as caught:
        open_cache(tmp_path / "sub" / "a", PARTS, STARTS, "take another")
    assert "\n" not in str(caught.value) and not (tmp_path / "sub" / "a").exists()
    monkeypatch.undo()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caches.os, "posix_fallocate", full)
    with pytest.raises(BadInput, match="No space left on device; take another"):
        open_cache(tmp_path / "sub" / "a", PARTS, STARTS, "take another")
    assert not (tmp_path / "sub" / "a").exists()


def kept_teacher(folder: Path, encoded: Encoded, limit: int = ALL, **options: Any) -> KeptAnswers:
    answers = KeptAnswers(tiny("bert", seed=5).float(), (1, 3), **{"logits": True, **options})
    answers.plan_cache(encoded, limit)
    answers.open(folder)
    return answers


def test_answers_of_another_precision_are_never_read(tmp_path: Path) -> None:
    encoded, answers = rows_of(), KeptAnswers(tiny("bert", seed=5).float(), (1, 3), logits=True)
    folders = set()
    for precision in ("float32", "bfloat16", "float32"):
        answers.plan_cache(encoded, ALL, precision)
        answers.open(tmp_path)
        folders.add(answers.cache.folder)
    assert len(folders) == 2


def test_answers_are_those_of_the_network_rounded_and_then_read(tmp_path: Path) -> None:
    encoded = rows_of()
    answers = kept_teacher(tmp_path, encoded)
    batch, other = batch_of(encoded, np.array([3, 0, 4])), batch_of(encoded, np.array([4, 3, 0, 1]))
    real = batch.inputs["attention_mask"].bool()
    live, first = answers.compute(batch), answers(batch)
    assert live.states is not None and first.states is not None
    assert torch.equal(first.states.packed, real) and first.states.embeddings.dim() == 2
    first = first._replace(states=pad_states(first.states))
    assert first.states is not None
    assert set(first.states.hidden) == set(first.states.attention) == {1, 3}
    for number in (1, 3):
        wanted = live.states.hidden[number][real].half().float()
        assert torch.equal(first.states.hidden[number][real], wanted)
        assert torch.equal(first.states.attention[number][real], live.states.attention[number][real].half().float())
    assert torch.equal(first.states.embeddings[real], live.states.embeddings[real].half().float())
    assert torch.equal(first.logits, live.logits)
    answers(other)  # row 1 is new, so that all four are worked out
    answers.compute = None  # type: ignore[method-assign,assignment]
    read = answers(batch)
    assert read.states is not None and torch.equal(read.logits, first.logits)
    assert torch.equal(read.states.hidden[3], first.states.hidden[3][real])


def test_rows_beyond_the_limit_are_answered_anew(tmp_path: Path) -> None:
    encoded = rows_of()
    answers = KeptAnswers(tiny("bert", seed=5).float(), (3,), logits=True)
    share = answers.plan_cache(encoded, int(bytes_of_rows(answers.parts, encoded.offsets)[-1]))
    needed = bytes_of_rows(answers.parts, encoded.offsets)
    share = answers.plan_cache(encoded, int(needed[3]) + 1)
    assert share == 0.5
    answers.open(tmp_path)
    batch = batch_of(encoded, np.array([5, 1, 4, 0]))
    live, real = answers.compute(batch), batch.inputs["attention_mask"].bool()
    for found in (answers(batch), answers(batch)):
        assert found.states is not None and live.states is not None
        assert torch.allclose(found.states.hidden[3][real], live.states.hidden[3][real], atol=2e-3)
        assert torch.allclose(found.logits, live.logits, atol=1e-5)
    assert answers.cache is not None and len(answers.cache) == 3
    assert answers.describe()["teacher_cache"]["share"] == 0.5
    assert answers.plan_cache(encoded, 10) == 0.0


def test_another_teacher_or_other_rows_read_nothing_of_it(tmp_path: Path) -> None:
    encoded = rows_of()
    first = kept_teacher(tmp_path, encoded)
    assert kept_teacher(tmp_path, encoded).cache.folder == first.cache.folder  # type: ignore[union-attr]
    others = [KeptAnswers(tiny("bert", seed=6).float(), (1, 3), logits=True), kept_teacher(tmp_path, encoded)]
    others[1] = KeptAnswers(others[1].network, (1,), logits=True)
    for answers in others:
        answers.plan_cache(encoded, ALL)
        answers.open(tmp_path)
    changed = kept_teacher(tmp_path, replace(encoded, ids=encoded.ids + 1))
    assert len({a.cache.folder for a in (first, *others, changed)}) == 4  # type: ignore[union-attr]


def test_losses_from_kept_states_are_those_from_exact_ones(tmp_path: Path) -> None:
    encoded, student = rows_of(), mlm_network(NLU).float()
    exact, kept = KeptAnswers(tiny("bert", seed=5).float(), (1, 2, 3)), kept_teacher(tmp_path, encoded)
    kept = KeptAnswers(kept.network, (1, 2, 3))
    kept.plan_cache(encoded, ALL)
    kept.open(tmp_path)
    between, losses = build_projections(student, exact.network, generator=seeded(0)), []
    for teacher in (exact, kept, kept):
        batch = batch_of(encoded, np.arange(4))
        losses.append(
            float(layerwise_update(student, teacher, between, LossWeights())(batch, np.random.default_rng(0), 0))
        )
    assert losses[1] == losses[2] == pytest.approx(losses[0], rel=1e-4)


def test_hidden_tokens_are_left_out_of_kept_states_too(tmp_path: Path) -> None:
    encoded, student = rows_of(), mlm_network(NLU).float()
    exact, kept = (KeptAnswers(tiny("bert", seed=5).float(), (1, 2, 3)) for _ in range(2))
    kept.plan_cache(encoded, ALL)
    kept.open(tmp_path)
    between, losses = build_projections(student, exact.network, generator=seeded(0)), []
    batch = batch_of(encoded, np.arange(4))
    ids = batch.inputs["input_ids"]
    hidden = (torch.arange(ids.shape[1]) % 3 == 1) & batch.inputs["attention_mask"].bool()
    inputs = {**batch.inputs, "input_ids": torch.where(hidden, 4, ids)}
    masked = replace(batch, inputs=inputs, targets=torch.where(hidden, ids, NO_TARGET))
    for teacher in (exact, kept, kept):
        update = layerwise_update(student, teacher, between, LossWeights(tokens=1.0))
        losses.append(float(update(masked, np.random.default_rng(0), 0)))
    assert losses[1] == losses[2] == pytest.approx(losses[0], rel=1e-4)


def test_states_that_float16_cannot_hold_are_refused() -> None:
    with pytest.raises(Failed, match=r"below 65,504 to be kept, got 7e\+04"):
        half_precision(torch.tensor([7e4]))


class Words:
    """A tokenizer as far as masking and exchanging words need one."""

    mask_token_id, all_special_ids = 4, (0, 1, 2, 3, 4)
    tokens = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "##ing", "7", "walk", "run", "good", "fine", "bad", "film")

    def __len__(self) -> int:
        return len(self.tokens)

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [self.tokens[place] for place in ids]


def test_hidden_tokens_are_learnt_beside_the_layers() -> None:
    """By hand: the teacher reads the text as it was, states count where nothing was hidden, tokens where it was."""
    encoded = rows_of()
    tokenizer = type("Forty", (), {"mask_token_id": 4, "all_special_ids": (0, 1, 2, 3, 4), "__len__": lambda _: 40})()
    batch = masking(tokenizer)(batch_of(encoded, np.arange(4)), np.random.default_rng(1))
    assert torch.equal(restore_tokens(batch).inputs["input_ids"], batch_of(encoded, np.arange(4)).inputs["input_ids"])
    student, teacher = mlm_network(NLU).eval(), KeptAnswers(tiny("bert", seed=5), (1, 2, 3))
    between = build_projections(student, teacher.network, generator=seeded(0)).double()
    found = {
        tokens: float(
            layerwise_update(student, teacher, between, LossWeights(tokens=tokens))(batch, np.random.default_rng(0), 0)
        )
        for tokens in (1.0, 3.0)
    }
    hidden = batch.targets != NO_TARGET
    with torch.no_grad():
        guess = float(task_loss(student(**batch.inputs).logits[hidden], batch.targets[hidden]))
    assert (found[3.0] - found[1.0]) / 2 == pytest.approx(guess, rel=1e-9)
    assert found[1.0] > guess


def test_a_batch_without_labels_has_no_loss_of_labels() -> None:
    logits = torch.zeros(3, 2, requires_grad=True)
    loss = task_loss(logits, torch.full((3,), NO_TARGET))
    assert float(loss.detach()) == 0.0
    weighted = task_loss(torch.randn(3, 2), torch.tensor([0, NO_TARGET, 1]), weights=(1.0, 3.0))
    assert torch.isfinite(weighted)


def test_only_whole_words_are_exchanged_for_near_ones() -> None:
    tokenizer = Words()
    begins, whole = whole_words(tokenizer)
    assert [Words.tokens[place] for place in np.flatnonzero(whole)] == ["walk", "run", "good", "fine", "bad", "film"]
    ids = np.array([2, 7, 5, 9, 6, 12, 3, 2, 9, 3] * 30, dtype=np.int32)  # [CLS] walk ##ing good 7 film [SEP] ...
    offsets = np.concatenate([[0], np.cumsum([7, 3] * 30)])
    encoded = Encoded(ids, offsets, None, np.zeros(60, dtype=np.int64))
    assert set(ids[replaceable(encoded, begins, whole)].tolist()) == {9, 12}
    table = torch.eye(13)
    table[10] = table[9] + 0.1  # fine is like good
    replaced = NeighbourWords(table, begins, whole)
    assert replaced.neighbours(np.array([9], dtype=np.int32))[0, 0] == 10
    changed = replaced(encoded, np.random.default_rng(0))
    different = changed != ids
    assert set(ids[different].tolist()) == {9, 12} and 0.2 < different[ids == 9].mean() < 0.6
    assert whole[changed[different]].all() and np.array_equal(changed, replaced(encoded, np.random.default_rng(0)))
    assert not np.array_equal(changed, replaced(encoded, np.random.default_rng(1)))


def test_neighbours_in_a_narrow_table_are_those_of_the_wide_one() -> None:
    tokenizer: Any = Words()
    wide, narrow = tiny("bert"), tiny("bert")
    table = put_low_rank(narrow.backbone, 4)
    with torch.no_grad():
        table.table.weight.normal_(generator=seeded(0))
        table.projection.weight.normal_(generator=seeded(1))
        wide.get_input_embeddings().weight.copy_(table.multiplied_out())
    words = np.array([9, 12], dtype=np.int32)
    replacers: list[Any] = [build_replacer("neighbours", "x", teacher, tokenizer) for teacher in (narrow, wide)]
    assert np.array_equal(*(replacer.neighbours(words) for replacer in replacers))


def test_rows_are_joined_and_copies_have_no_labels() -> None:
    one, other = rows_of((2, 3)), rows_of((4, 1, 2))
    both = join_rows(one, without_labels(other))
    assert both.offsets.tolist() == [0, 2, 5, 9, 10, 12] and len(both.ids) == 12
    assert both.targets.tolist() == [*one.targets, NO_TARGET, NO_TARGET, NO_TARGET]
    numbers = without_labels(replace(one, targets=np.array([0.5, 2.0], np.float32)))
    assert numbers.targets.tolist() == [0.0, 0.0]


def test_a_head_for_masked_words_fills_them_in(tmp_path: Path) -> None:
    sizes = {
        "vocab_size": 60,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
    }
    head = BertForMaskedLM(BertConfig(**sizes))
    head.save_pretrained(tmp_path / "head")
    head.bert.save_pretrained(tmp_path / "body")
    assert load_masked_head(str(tmp_path / "head")) is not None and load_masked_head(str(tmp_path / "body")) is None
    tokenizer: Any = type("Many", (Words,), {"tokens": Words.tokens + tuple("abcdefghijklmnopqrstuvwxyz")})()
    rows = rows_of(tuple([12] * 40))
    encoded = replace(rows, ids=rows.ids % 30 + 7)
    replaced = FilledWords(head, tokenizer, *whole_words(tokenizer))
    changed = replaced(encoded, np.random.default_rng(0))
    different = changed != encoded.ids
    assert 0.05 < different.mean() < 0.25 and not (changed == tokenizer.mask_token_id).any()
    assert whole_words(tokenizer)[1][changed[different]].all()
    assert np.array_equal(changed, replaced(encoded, np.random.default_rng(0)))
    with pytest.raises(BadInput, match="has no head that fills in masked words; take --augment-with neighbours"):
        build_replacer("masked-words", str(tmp_path / "body"), head.bert, tokenizer)
