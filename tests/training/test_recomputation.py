"""Gradient checkpointing: the same gradients, with every layer run twice, also inside slices."""

import numpy as np
import pytest
import torch

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import LayerSpec
from archwright.subnet.strategies import STRATEGIES, SubnetDraws
from archwright.subnet.supernet import supernet_update
from archwright.training.losses import distillation, task_loss
from archwright.training.recomputation import can_recompute, recompute_layers
from tests.tiny import BATCHES, tiny

KINDS = {"llama-groups": "lm", "gpt2": "lm", "gemma2": "lm", "bert": "classification"}


def gradients(network: PrunedNetwork, name: str, kind: str, recompute: bool) -> tuple[dict[str, torch.Tensor], int]:
    """Of one step of the strategy `full`, and how often the first layer was run."""
    network.zero_grad()
    network.train()
    full = read_anatomy(network.config).full
    small = (LayerSpec(2, 5), LayerSpec((1, 3), (0, 4, 9)), LayerSpec(0, 3))
    draw = SubnetDraws(
        full,
        (LayerSpec(1, 1), LayerSpec(0, 0), LayerSpec(1, 0)),
        lambda rng, progress: small,
        lambda rng: small,
    )
    step = supernet_update(
        *(network, draw, STRATEGIES["full"]), loss=task_loss, distil=lambda x, y: distillation(x, y, 2.0)
    )
    runs: list[int] = []
    layer = network.placed_layers()[0].layer
    handle = layer.register_forward_pre_hook(lambda *_: runs.append(1))
    with recompute_layers(network, recompute), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # of dropout
        step(BATCHES[kind](name), np.random.default_rng(0), 0.5)
    handle.remove()
    return {key: p.grad.clone() for key, p in network.named_parameters() if p.grad is not None}, len(runs)


@pytest.mark.parametrize("name", KINDS)
def test_gradients_are_the_same_and_layers_run_twice(name: str) -> None:
    network = tiny(name, kind=KINDS[name])
    kept, once = gradients(network, name, KINDS[name], recompute=False)
    recomputed, twice = gradients(network, name, KINDS[name], recompute=True)
    assert twice == 2 * once and kept.keys() == recomputed.keys() and len(kept) > 10
    for key, gradient in kept.items():
        torch.testing.assert_close(recomputed[key], gradient, rtol=1e-9, atol=1e-12)
    assert gradients(network, name, KINDS[name], recompute=False)[1] == once  # it undoes itself


def test_who_can() -> None:
    assert all(can_recompute(tiny(name).config) for name in ("bert", "gpt2", "llama", "qwen3", "phi3", "gemma3_text"))
