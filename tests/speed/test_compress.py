"""The yardsticks of `python -m experiments.speed` are what they say they are; speed itself is no unit test."""

import numpy as np
import pytest
import torch

from archwright.data.batching import Encoded
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.slicing import masked_subnetwork, zeroed_subnetwork
from archwright.subnet.spec import LayerSpec, flops
from experiments.speed.compress import PADDED_LENGTH, encoded_part, half_of, padded_batch
from experiments.speed.ratios import Ratio, ratio
from tests.tiny import tiny, tiny_batch


@pytest.fixture
def encoded() -> Encoded:
    ids = np.arange(1, 13, dtype=np.int32)
    return Encoded(ids, np.array([0, 3, 8, 12]), None, np.array([0, 1, 0]), pad_id=0)


def test_zeroed_computes_what_masked_computes_where_nothing_is_empty() -> None:
    model, batch = tiny("bert").eval(), tiny_batch()
    of = read_anatomy(model.config)
    keep = (LayerSpec(1, of.units // 2),) * of.layers
    with torch.no_grad():
        with masked_subnetwork(model, keep):
            wanted = model(**batch.inputs).logits
        with zeroed_subnetwork(model, keep):
            found = model(**batch.inputs).logits
        whole = model(**batch.inputs).logits
    assert torch.equal(found, wanted) and not torch.equal(found, whole)


def test_zeroed_computes_every_layer() -> None:
    model, batch, seen = tiny("bert").eval(), tiny_batch(), []
    of = read_anatomy(model.config)
    layers = model.backbone.get_submodule(model.config.family.layers)
    for layer in layers:
        layer.register_forward_hook(lambda *_: seen.append(1))
    with torch.no_grad(), zeroed_subnetwork(model, (LayerSpec(0, 0),) * of.layers):
        model(**batch.inputs)
    assert len(seen) == of.layers


def test_half_of_has_half_the_flops() -> None:
    of = read_anatomy(tiny("bert").config)
    share = flops(of, half_of(of, 16), length=16) / flops(of, of.full, length=16)
    assert 0.4 < share <= 0.5


def test_parts_and_padding(encoded: Encoded) -> None:
    part = encoded_part(encoded, np.array([2, 0]))
    assert part.ids.tolist() == [9, 10, 11, 12, 1, 2, 3] and part.targets.tolist() == [0, 0]
    batch = padded_batch(part, 0)
    assert batch.inputs["input_ids"].shape == (2, PADDED_LENGTH)
    assert batch.inputs["attention_mask"].sum(1).tolist() == [4, 3]


def test_ratios_are_taken_inside_a_round() -> None:
    rounds = [{"a": 2.0, "b": 1.0}, {"a": 30.0, "b": 10.0}, {"a": 4.0, "b": 1.0}]
    found = ratio("a / b", rounds, "a", "b", ">= 3")
    assert (found.median, found.low, found.high, found.met) == (3.0, 2.0, 4.0, True)
    assert not Ratio("x", 0.6, 0.5, 0.7, "<= 0.58").met
