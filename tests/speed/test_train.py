"""What `python -m experiments.speed train` compares is what it says; speed itself is no unit test."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from archwright.data.epochs import Epoch, masking
from archwright.data.text.corpus import Corpus, encode_corpus
from archwright.data.text.tokenizer import load_tokenizer
from archwright.random_streams import generator
from archwright.spaces.flexibert import FlexiBertSpace
from archwright.training.objectives.mlm import mlm_update
from experiments.speed.train import DESIGN, LENGTH, Full, by_hand_masked, our_loop, plain_loop


def network() -> nn.Module:
    made = FlexiBertSpace().network(DESIGN, generator=generator(0), loss="mlm")
    for module in made.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return made


def test_both_loops_learn_from_the_same_batches(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = load_tokenizer(str(minilm))
    rows = encode_corpus(Corpus("", ["the film was good and long"] * 40), tokenizer, layout="lines", max_length=LENGTH)
    parts = [np.arange(0, 8), np.arange(8, 16), np.arange(16, 24)]
    chosen = Epoch(rows, parts, masking(tokenizer), (0,))
    ours, plain = network(), network()
    our_loop(ours, chosen, mlm_update(ours))
    plain_loop(plain, chosen, partial(by_hand_masked, plain))
    moved = [(a - b).abs().max() for a, b in zip(ours.parameters(), network().parameters(), strict=True)]
    apart = [(a - b).abs().max() for a, b in zip(ours.parameters(), plain.parameters(), strict=True)]
    assert max(moved) > 1e-4
    assert max(apart) < 1e-3  # the hand-written loop has no warm-up


def test_padding_to_the_full_length_changes_no_row(minilm: Path) -> None:
    tokenizer = load_tokenizer(str(minilm))
    rows = encode_corpus(Corpus("", ["the film", "the film was good"]), tokenizer, layout="lines", max_length=LENGTH)
    batch = Full(rows, [np.array([0, 1])], masking(tokenizer), (0,))[0]
    assert batch.inputs["input_ids"].shape == (2, LENGTH)
    assert batch.inputs["attention_mask"].sum(1).tolist() == [4, 6]
    assert torch.equal(batch.inputs["input_ids"][:, 6:], torch.zeros(2, LENGTH - 6, dtype=torch.long))
