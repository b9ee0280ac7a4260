"""The classifier of peers and baselines: what archwright's own network computes, and trainings that end in time."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from experiments.peers.job import Job, TimeBudget, read_job
from experiments.peers.network import Classifier, TokenizedRows, finetune, predict


def tiny_classifier() -> Classifier:
    torch.manual_seed(0)
    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=24)
    return Classifier(BertModel(config, add_pooling_layer=False), 2).eval()


def tiny_rows(number: int = 64) -> TokenizedRows:
    rng = np.random.default_rng(0)
    encoded = [{"input_ids": rng.integers(1, 50, size=length).tolist()} for length in rng.integers(3, 9, size=number)]

    def pad(rows: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        longest = max(len(row["input_ids"]) for row in rows)
        ids = torch.tensor([row["input_ids"] + [0] * (longest - len(row["input_ids"])) for row in rows])
        return {"input_ids": ids, "attention_mask": (ids > 0).long()}

    return TokenizedRows(encoded, torch.arange(number) % 2, pad)


class Ticks:
    """A clock that moves by a second whenever it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_a_training_ends_with_its_seconds() -> None:
    budget = TimeBudget(100.0, Ticks())
    facts = finetune(tiny_classifier(), tiny_rows(), budget, seconds=5.0, seed=0)
    assert facts["steps"] == 5 and facts["epochs"] == 2.5


def test_a_training_ends_with_its_epochs() -> None:
    budget = TimeBudget(100.0, Ticks())
    facts = finetune(tiny_classifier(), tiny_rows(), budget, seconds=90.0, seed=0)
    assert (facts["steps"], facts["epochs"]) == (8, 4.0)
    assert budget.share(left=2) == pytest.approx((100 - budget.spent) / 2)


def test_training_leaves_the_word_vectors_and_learns() -> None:
    network, rows = tiny_classifier(), tiny_rows()
    words = network.body.embeddings.word_embeddings.weight.clone()
    before = predict(network, rows)
    finetune(network, rows, TimeBudget(100.0, Ticks()), seconds=90.0, seed=0)
    assert torch.equal(network.body.embeddings.word_embeddings.weight, words)
    assert not np.allclose(before, predict(network, rows))


def test_answers_are_in_the_order_of_the_rows() -> None:
    network, rows = tiny_classifier(), tiny_rows()
    with torch.inference_mode():
        alone = torch.cat([network(**rows.batch(np.array([i]))[0]) for i in range(len(rows.encoded))])
    np.testing.assert_allclose(predict(network, rows), alone, atol=1e-5)


def test_layers_above_are_dropped_and_counted() -> None:
    network = tiny_classifier()
    whole, shape = network.prunable_parameters(), network.shape()
    assert shape == [[2, 24]] * 3
    kept = network.keep_layers(1)
    assert kept.shape() == [[2, 24]] and kept.prunable_parameters() < whole


def test_the_original_costs_those_who_start_from_it(tmp_path: Path) -> None:
    job = Job("drop-top", "toy", 3, tmp_path / "rows", tmp_path / "original", tmp_path / "out", 2.0, clock="cpu")
    job.rows.mkdir()
    job.original.mkdir()
    (job.rows / "rows.json").write_text(json.dumps({"labels": ["a", "b"]}))
    (job.original / "original.json").write_text(json.dumps({"seconds": 50.0}))
    budget = TimeBudget.of(job, original=True)
    budget.spent = 5.0
    assert (budget.seconds, budget.total) == (70.0, 55.0)
    assert TimeBudget.of(job, original=False).seconds == 120.0
    assert read_job(job.write()) == job
