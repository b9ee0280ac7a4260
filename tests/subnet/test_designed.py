"""Sub-networks of networks whose layers differ: every way to run one agrees, and its cost is what it has."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from archwright.networks.families.flexibert import mixing
from archwright.networks.pruned import PrunedNetwork
from archwright.search import sample
from archwright.spaces.subnetwork import SPACES, large_config, subnet_space
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.importance import order_by_importance, reorder
from archwright.subnet.pruning.baselines import (
    drop_layers,
    head_pruning,
    magnitude_pruning,
    prune_by_fisher,
    random_pruning,
)
from archwright.subnet.pruning.repair import repair_least_squares
from archwright.subnet.pruning.streams import record_streams
from archwright.subnet.pruning.tuning import fold, tune_masks
from archwright.subnet.slicing import masked_subnetwork, subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec, flops, nonembedding_parameters, parameters, sizes
from archwright.training.losses import task_loss
from tests.designed import DESIGNED, designed, padded_batch

NETWORKS = {name: designed(name) for name in DESIGNED}


def logits(network: PrunedNetwork) -> torch.Tensor:
    with torch.no_grad():
        return network(**padded_batch().inputs).logits


def keep_of(name: str, space: str, seed: int) -> SubnetSpec:
    made = subnet_space(space, read_anatomy(NETWORKS[name].config))
    return made.build(sample(made.choices, np.random.default_rng(seed)))


def test_what_can_go_from_a_layer() -> None:
    """NLU: all heads, of 8 and of 2 features. FlexiBERT: no heads of an operator that is not attention or is bare."""
    of = {name: read_anatomy(network.config) for name, network in NETWORKS.items()}
    assert sizes(of["nlu"].full) == [(3, 10), (3, 6), (3, 14)]
    assert [layer.features for layer in of["nlu"].full_layers] == [8, 2, 2]
    assert sizes(of["flexibert"].full) == [(2, 10), (4, 8), (0, 5), (0, 7), (0, 3)]
    assert sizes(of["flexibert-bare"].full) == [(0, 6), (0, 5), (2, 4)]


@pytest.mark.covering
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", DESIGNED)
@settings(max_examples=4, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_masked_sliced_and_extracted_agree(name: str, space: str, seed: int) -> None:
    network, spec = NETWORKS[name], keep_of(name, space, seed)
    with subnetwork(network, spec):
        sliced = logits(network)
    with masked_subnetwork(network, spec):
        zeroed = logits(network)
    torch.testing.assert_close(sliced, zeroed, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(sliced, logits(extract(network, spec)), rtol=1e-9, atol=1e-9)


@pytest.mark.covering
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", DESIGNED)
@settings(max_examples=4, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_costs_are_those_of_the_extracted_network(name: str, space: str, seed: int) -> None:
    of, spec = read_anatomy(NETWORKS[name].config), keep_of(name, space, seed)
    small = extract(NETWORKS[name], spec)
    total = sum(p.numel() for p in small.parameters())
    embeddings = sum(p.numel() for n, p in small.named_parameters() if ".embeddings." in n)
    assert (parameters(of, spec), nonembedding_parameters(of, spec)) == (total, total - embeddings)
    linears = [m for n, m in small.named_modules() if isinstance(m, nn.Linear | nn.Conv1d) and not n.startswith("head")]
    rows = zip(of.full_layers, sizes(spec), strict=True)
    mixing = sum(layer.mixing_flops(heads, units, 7) for layer, (heads, units) in rows)
    assert flops(of, spec, length=7) == round(
        14 * sum(m.weight.numel() for m in linears) + mixing + 2 * of.head_matrices
    )


def test_an_operator_without_heads_costs_what_it_says_itself() -> None:
    """Beside its linears, in multiply-adds per token."""
    network = NETWORKS["flexibert"]
    for layer, plan in zip(network.backbone.layers, DESIGNED["flexibert"].plans, strict=True):
        once, by_length, by_logarithm = mixing(plan, 16)
        assert once + 6 * by_length + math.log2(6) * by_logarithm == pytest.approx(layer.mixer.products(6))


def test_small_caps_at_what_a_layer_has() -> None:
    space = subnet_space("small", read_anatomy(NETWORKS["flexibert"].config))
    found = sizes(space.build({"layers": 5, "heads": 3, "units": 7}))
    assert found == [(2, 7), (3, 7), (0, 5), (0, 7), (0, 3)]


@pytest.mark.parametrize("name", DESIGNED)
def test_large_can_say_every_keep(name: str) -> None:
    of = read_anatomy(NETWORKS[name].config)
    for seed in range(5):
        spec = keep_of(name, "large", seed)
        assert subnet_space("large", of).build(large_config(of, spec)) == spec


@pytest.mark.parametrize("name", DESIGNED)
def test_the_best_come_first_and_nothing_changes(name: str) -> None:
    network = designed(name)
    before, of = logits(network), read_anatomy(network.config)
    order = order_by_importance(network, [padded_batch(seed) for seed in range(2)], task_loss, torch.abs)
    assert [(len(heads), len(units)) for heads, units in zip(order.heads, order.units, strict=True)] == sizes(of.full)
    reorder(network, order)
    torch.testing.assert_close(logits(network), before, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", DESIGNED)
def test_every_baseline_prunes_them(name: str) -> None:
    network, batches, shares = NETWORKS[name], [padded_batch(seed) for seed in range(2)], (0.5, 0.8)
    of = read_anatomy(network.config)
    for found in (
        magnitude_pruning(network, shares),
        random_pruning(network, shares, np.random.default_rng(0)),
        head_pruning(network, batches, task_loss, shares),
    ):
        for share, spec in found.items():
            assert nonembedding_parameters(of, spec) <= share * nonembedding_parameters(of, of.full)
    assert sizes(drop_layers(network)[0])[-1] == (0, 0)
    recording = record_streams(network, batches)
    for spec in prune_by_fisher(network, batches, task_loss, [0.5], length=9).values():
        for small in (
            fold(network, tune_masks(network, spec, recording)),
            repair_least_squares(network, spec, recording),
        ):
            assert small.config.layers == [list(pair) for pair in sizes(spec) if any(pair)]
            assert torch.isfinite(logits(small)).all()


def test_a_layer_without_heads_goes_with_its_last_unit() -> None:
    network = NETWORKS["flexibert"]
    spec = (*read_anatomy(network.config).full[:2], LayerSpec(0, 0), LayerSpec(0, 1), LayerSpec(0, 0))
    small = extract(network, spec)
    assert small.config.places == [0, 1, 3]
    assert [type(layer.mixer).__name__ for layer in small.backbone.layers] == [
        "DotProductAttention",
        "MultiplicativeAttention",
        "SpanConvolution",
    ]
