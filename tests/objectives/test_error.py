"""Errors against scikit-learn and scipy, in whatever order the batches come."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics
from torch import nn

from archwright.data.batching import Batch
from archwright.errors import Failed
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.error import measure_error, predict
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec

KEEP = (LayerSpec(2, 7), LayerSpec(0, 0), LayerSpec((0, 3), (1, 5, 6)))


class Answers(nn.Module):
    """A network that gives back its input."""

    device = torch.device("cpu")

    def forward(self, logits: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=logits)


def shuffled(logits: np.ndarray, targets: np.ndarray, rng: np.random.Generator) -> Iterator[Batch]:
    """The rows in random order, in batches of random sizes."""
    cuts = np.sort(rng.choice(np.arange(1, len(targets)), size=5, replace=False))
    for rows in np.split(rng.permutation(len(targets)), cuts):
        yield Batch({"logits": torch.from_numpy(logits[rows])}, torch.from_numpy(targets[rows]), rows)


ORACLES = {
    "accuracy": metrics.accuracy_score,
    "f1": metrics.f1_score,
    "matthews": metrics.matthews_corrcoef,
}


@pytest.mark.parametrize("metric", ORACLES)
@pytest.mark.parametrize("seed", range(5))
def test_error_of_classes_is_that_of_scikit_learn(metric: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits, targets = rng.normal(size=(60, 2)).astype(np.float32), rng.integers(2, size=60)
    expected = 1 - ORACLES[metric](targets, logits.argmax(1))
    assert measure_error(Answers(), shuffled(logits, targets, rng), metric=metric) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("metric", "oracle"), [("spearman", stats.spearmanr), ("pearson", stats.pearsonr)])
def test_error_of_numbers_is_that_of_scipy(metric: str, oracle: object) -> None:
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(size=(60, 1)).astype(np.float32), rng.normal(size=60).astype(np.float32)
    expected = 1 - oracle(logits[:, 0].astype(float), targets.astype(float)).statistic
    assert measure_error(Answers(), shuffled(logits, targets, rng), metric=metric) == pytest.approx(expected, abs=1e-9)


def test_predictions_come_in_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    numbers = np.arange(50, dtype=np.float32)[:, None]
    assert predict(Answers(), shuffled(numbers, numbers[:, 0], rng)).tolist() == list(range(50))


def token_batches(lengths: Sequence[int]) -> list[Batch]:
    rng = np.random.default_rng(0)
    rows = np.array_split(rng.permutation(3 * len(lengths)), len(lengths))
    inputs = [torch.from_numpy(rng.integers(1, 50, size=(3, length))) for length in lengths]
    return [
        Batch({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, torch.from_numpy(part % 3), part)
        for ids, part in zip(inputs, rows, strict=True)
    ]


def test_a_sub_network_answers_as_when_extracted(regressor: PrunedNetwork) -> None:
    batches = token_batches([3, 9, 5, 12, 7, 20])
    inside, outside = predict(regressor, batches, KEEP), predict(extract(regressor, KEEP), batches)
    assert inside.dtype == np.float32 and len(set(inside.tolist())) == 18
    np.testing.assert_allclose(inside, outside, atol=1e-5)
    assert abs(inside - predict(regressor, batches)).max() > 0.01


def test_several_outputs_are_a_class(bert: PrunedNetwork) -> None:
    answers = predict(bert, token_batches([4, 6]), KEEP)
    assert answers.dtype == np.int64 and answers.shape == (6,) and set(answers.tolist()) <= {0, 1, 2}


@pytest.mark.parametrize("spec", [None, KEEP])
def test_the_network_is_left_as_it_was(bert: PrunedNetwork, spec: object) -> None:
    bert.train()
    bert.head.eval()
    before = {name: (id(module), type(module), module.training) for name, module in bert.named_modules()}
    first = predict(bert, token_batches([4, 6]), spec)
    assert first.tolist() == predict(bert, token_batches([4, 6]), spec).tolist(), "dropout was on"
    assert before == {name: (id(module), type(module), module.training) for name, module in bert.named_modules()}
    bert(input_ids=torch.ones(1, 4, dtype=torch.long)).logits.sum().backward()
    assert all(p.grad is not None for p in bert.parameters())


def test_the_mode_comes_back_also_on_error(bert: PrunedNetwork) -> None:
    bert.train()
    (broken,) = token_batches([4])
    broken.inputs["input_ids"][0, 0] = 1000
    with pytest.raises(IndexError):
        measure_error(bert, [broken], KEEP, metric="accuracy")
    assert all(module.training for module in bert.modules()) and len(bert.backbone.encoder.layer) == 3


def test_a_network_that_answers_nan_has_no_error() -> None:
    logits = np.full((20, 2), np.nan, dtype=np.float32)
    with pytest.raises(Failed, match="NaN"):
        measure_error(Answers(), shuffled(logits, np.zeros(20, np.int64), np.random.default_rng(0)), metric="accuracy")
