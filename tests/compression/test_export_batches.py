"""The batches on which an export proves itself."""

from pathlib import Path

import numpy as np
import pytest
import torch

from archwright.compression.export import block_batches, mixed_batches, text_batches
from archwright.data.encoding import Encoded
from archwright.data.text.tokenizer import load_tokenizer
from archwright.exporting.exportable import NetworkTraits
from archwright.exporting.kinds import WITHOUT_TASK
from archwright.tasks import TASK_KINDS


def encoded(lengths: list[int], choices: int = 1) -> Encoded:
    total = sum(lengths)
    ids = np.arange(1, total + 1, dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Encoded(ids, offsets, None, np.zeros(len(lengths) // choices, dtype=np.int64), choices=choices)


def shapes(batches: list[dict[str, torch.Tensor]]) -> list[tuple[int, ...]]:
    return [tuple(batch["input_ids"].shape) for batch in batches]


def test_blocks_of_text_are_cut_to_several_lengths() -> None:
    made = block_batches(encoded([64] * 5))
    assert shapes(made) == [(1, 64), (1, 4), (3, 16), (2, 1)]
    assert made[0]["input_ids"].tolist() == [list(range(1, 65))]
    assert made[1]["input_ids"].tolist() == [[257, 258, 259, 260]]
    assert made[3]["input_ids"].tolist() == [[1], [257]]
    assert all(tensor.is_contiguous() and batch["attention_mask"].all() for batch in made for tensor in batch.values())


def test_a_single_short_block_is_enough() -> None:
    assert shapes(block_batches(encoded([2]))) == [(1, 2), (1, 1), (1, 1), (1, 1)]


def test_texts_of_all_lengths() -> None:
    assert shapes(mixed_batches(encoded(list(range(1, 41))))) == [(1, 1), (1, 40), (3, 23), (8, 37), (16, 40)]


def test_choices_stay_together() -> None:
    made = mixed_batches(encoded([3, 5, 2, 2, 9, 1], choices=2))
    assert shapes(made) == [(1, 2, 2), (1, 2, 9), (2, 2, 9), (2, 2, 9), (3, 2, 9)]
    assert made[0]["input_ids"].tolist() == [[[9, 10], [11, 12]]]


@pytest.mark.parametrize("kind", [*TASK_KINDS, *WITHOUT_TASK])
def test_texts_for_a_trained_network_are_as_its_kind_reads_them(kind: str, minilm: Path) -> None:
    traits = NetworkTraits(kind, "bert", [], causal=False, room=512)
    for batch in text_batches(load_tokenizer(str(minilm)), traits):
        assert ("context_mask" in batch) == (kind == "qa")
        assert batch["input_ids"].ndim == (3 if kind == "choice" else 2)
        assert len({tensor.shape for tensor in batch.values()}) == 1
