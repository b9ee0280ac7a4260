"""Tokenized rows and batches: every row once, padding as small as it can be, order restored."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from archwright.data.batching import Batch, Encoded, batches, encode, evaluation_batches
from archwright.data.tasks.rows import Rows
from archwright.data.tasks.task import load_task
from archwright.errors import BadInput

PAD = 77


def encoded_of(lengths: list[int], *, types: bool = True) -> Encoded:
    """Rows of these lengths whose ids are all different and never the pad."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = np.arange(offsets[-1], dtype=np.int32) + 1000
    marks = (ids % 2).astype(np.int8) if types else None
    return Encoded(ids, offsets, marks, np.arange(len(lengths), dtype=np.int64) * 3, pad_id=PAD)


def check(encoded: Encoded, made: list[Batch], pad: int = PAD) -> None:
    """Every row once, whole, padded to the longest of its batch only."""
    assert sorted(np.concatenate([batch.rows for batch in made])) == list(range(len(encoded)))
    for batch in made:
        ids, mask = batch.inputs["input_ids"], batch.inputs["attention_mask"]
        assert all(tensor.dtype == torch.int64 and tensor.shape == ids.shape for tensor in batch.inputs.values())
        assert ids.shape == (len(batch.rows), max(1, encoded.lengths[batch.rows].max()))
        assert (ids[mask == 0] == pad).all()
        assert batch.targets.tolist() == encoded.targets[batch.rows].tolist()
        for position, row in enumerate(batch.rows):
            here = slice(encoded.offsets[row], encoded.offsets[row + 1])
            assert ids[position, mask[position] == 1].tolist() == encoded.ids[here].tolist()
            assert mask[position].tolist() == sorted(mask[position].tolist(), reverse=True)  # padded on the right
            if encoded.types is not None:
                kinds = batch.inputs["token_type_ids"][position]
                assert kinds[mask[position] == 1].tolist() == encoded.types[here].tolist()
                assert (kinds[mask[position] == 0] == 0).all()


LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=80)


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 20), st.integers(1, 5), st.integers(0, 9) | st.none(), st.booleans())
def test_training_batches(lengths: list[int], size: int, bucket: int, seed: int | None, types: bool) -> None:
    encoded = encoded_of(lengths, types=types)
    rng = None if seed is None else np.random.default_rng(seed)
    made = list(batches(encoded, batch_size=size, rng=rng, bucket=bucket))
    check(encoded, made)
    assert len(made) == -(-len(lengths) // size)
    assert sorted(len(batch.rows) for batch in made)[1:] == [size] * (len(made) - 1)
    assert ("token_type_ids" in made[0].inputs) == types
    if rng is None:
        assert [encoded.lengths[row] for batch in made for row in batch.rows] == sorted(lengths)


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 200))
def test_evaluation_batches(lengths: list[int], tokens: int) -> None:
    encoded = encoded_of(lengths)
    made = evaluation_batches(encoded, tokens=tokens)
    check(encoded, made)
    assert [encoded.lengths[row] for batch in made for row in batch.rows] == sorted(lengths)
    for batch in made:
        assert batch.inputs["input_ids"].numel() <= tokens or len(batch.rows) == 1
    for batch, following in itertools.pairwise(made):  # no batch could have taken the next row
        assert (len(batch.rows) + 1) * encoded.lengths[following.rows[0]] > tokens


def test_results_return_in_order() -> None:
    encoded = encoded_of([5, 1, 9, 3, 3, 7])
    results = np.zeros(len(encoded))
    for batch in evaluation_batches(encoded, tokens=12):
        results[batch.rows] = batch.inputs["attention_mask"].sum(dim=1).numpy()
    assert results.tolist() == [5, 1, 9, 3, 3, 7]


def test_the_order_is_the_rngs() -> None:
    encoded = encoded_of(list(range(1, 60)))
    orders = [
        [batch.rows.tolist() for batch in batches(encoded, batch_size=4, rng=np.random.default_rng(seed), bucket=3)]
        for seed in (1, 1, 2)
    ]
    assert orders[0] == orders[1] != orders[2]


def test_the_order_is_drawn_before_the_first_batch_is_read() -> None:
    rng, twin = np.random.default_rng(0), np.random.default_rng(0)
    encoded = encoded_of([1] * 20)
    unread = batches(encoded, batch_size=4, rng=rng)
    list(batches(encoded, batch_size=4, rng=twin))
    assert rng.random() == twin.random()
    assert len(list(unread)) == 5


def test_near_equal_lengths_come_together_but_not_in_order() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 2000)
    encoded = encoded_of(lengths.tolist())
    made = list(batches(encoded, batch_size=10, rng=np.random.default_rng(0)))
    padded = sum(batch.inputs["input_ids"].numel() for batch in made)
    assert padded < 1.05 * lengths.sum()
    widths = [batch.inputs["input_ids"].shape[1] for batch in made]
    assert abs(np.corrcoef(widths, np.arange(len(widths)))[0, 1]) < 0.2


def test_another_pad_id() -> None:
    encoded = encoded_of([1, 5, 2])
    check(encoded, list(batches(encoded, batch_size=3, rng=None, pad_id=5)), pad=5)
    check(encoded, evaluation_batches(encoded, tokens=100, pad_id=6), pad=6)


def test_a_row_without_tokens_still_makes_a_batch() -> None:
    assert evaluation_batches(encoded_of([0]), tokens=10)[0].inputs["input_ids"].tolist() == [[PAD]]


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"batch_size": -3}, {"batch_size": 4, "bucket": 0}])
def test_bad_sizes(wrong: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="must be at least 1"):
        batches(encoded_of([1]), rng=None, **wrong)
    with pytest.raises(BadInput, match="at least 1 token"):
        evaluation_batches(encoded_of([1]), tokens=0)


@pytest.fixture(scope="module")
def tokenizer(minilm: Path) -> object:
    return AutoTokenizer.from_pretrained(minilm)


def test_encoding_is_the_tokenizers(tokenizer: object, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archwright.data.encoding.TEXTS_PER_CALL", 64)  # several calls
    rows = load_task("glue/RTE", data=data_dir / "glue", train_rows=200).splits["train"]
    encoded = encode(rows, tokenizer, max_length=40)
    assert len(encoded) == 200 and encoded.lengths.max() == 40 and encoded.pad_id == 0
    assert (encoded.ids.dtype, encoded.types.dtype) == (np.int32, np.int8)
    assert (encoded.targets == rows.targets).all()
    assert encoded.median_length == int(np.median(encoded.lengths)) <= 40
    for row in range(0, 200, 17):
        alone = tokenizer(rows.texts[row], rows.pairs[row], truncation=True, max_length=40)
        here = slice(encoded.offsets[row], encoded.offsets[row + 1])
        assert encoded.ids[here].tolist() == alone["input_ids"]
        assert encoded.types[here].tolist() == alone["token_type_ids"]


def test_one_text_and_regression_targets(tokenizer: object) -> None:
    rows = Rows(["a film", "a much longer film"], None, np.array([0.5, 4.0], dtype=np.float32))
    batch = evaluation_batches(encode(rows, tokenizer, max_length=16), tokens=100)[0]
    assert batch.targets.dtype == torch.float32 and batch.targets.tolist() == [0.5, 4.0]
    assert batch.inputs["input_ids"].tolist() == [[101, 1037, 2143, 102, 0, 0], [101, 1037, 2172, 2936, 2143, 102]]
    assert batch.inputs["attention_mask"].tolist() == [[1, 1, 1, 1, 0, 0], [1] * 6]


@pytest.mark.parametrize("length", [-1, 0, 2, 513])
def test_a_length_without_room_or_beyond_the_model(tokenizer: object, length: int) -> None:
    rows = Rows(["a film"], None, np.array([0]))
    with pytest.raises(BadInput, match=f"--max-length must be 3 to 512 for this tokenizer, got {length}"):
        encode(rows, tokenizer, max_length=length)
    assert len(encode(rows, tokenizer, max_length=3).ids) == 3
