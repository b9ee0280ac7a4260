"""Adapters: what they compute is what the merged weights compute, also in slices; errors leave no trace."""

import pytest
import torch

from archwright.errors import BadInput
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.slicing import masked_subnetwork, subnetwork
from archwright.subnet.spec import LayerSpec
from archwright.training import lora
from archwright.training.loop import train_network
from archwright.training.lora import check_lora, layer_linears, low_rank_adapters
from archwright.training.losses import task_loss
from archwright.training.schedule import Schedule
from tests.tiny import text_batch, tiny

pytest.importorskip("peft")

SPEC = (LayerSpec(2, (1, 5, 8)), LayerSpec((1, 3), 4), LayerSpec(0, 7))
ROUNDED = 2**-4
"""Of bfloat16, as a share of the largest logit."""


def randomise_adapters(network: PrunedNetwork) -> None:
    """What they write is zero at first."""
    draws = torch.Generator().manual_seed(5)
    for name, parameter in network.named_parameters():
        if "lora_B" in name:
            parameter.data = torch.randn(parameter.shape, generator=draws, dtype=torch.float64).to(parameter) / 4


def logits(network: PrunedNetwork, name: str) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = network(**text_batch(name).inputs).logits
    return found


@pytest.mark.parametrize("name", ["llama-groups", "llama", "gpt2", "phi3"])
def test_merged_is_what_unmerged_was(name: str) -> None:
    network = tiny(name, kind="lm")
    keys, before = list(network.state_dict()), logits(network, name)
    with low_rank_adapters(network, 3, seed=0):
        trained = [key for key, parameter in network.named_parameters() if parameter.requires_grad]
        assert len(trained) == 2 * len(layer_linears(network)) and all("lora_" in key for key in trained)
        torch.testing.assert_close(logits(network, name), before)  # nothing is learnt yet
        randomise_adapters(network)
        unmerged = logits(network, name)
    assert list(network.state_dict()) == keys and all(p.requires_grad for p in network.parameters())
    assert float((unmerged - before).abs().max()) > 1e-3
    torch.testing.assert_close(logits(network, name), unmerged, rtol=1e-9, atol=1e-9)


def test_merged_is_what_unmerged_was_in_bfloat16() -> None:
    name = "llama-groups"
    network = tiny(name, kind="lm").float()
    for parameter in network.parameters():
        parameter.data = parameter.data.bfloat16()
    with low_rank_adapters(network, 3, seed=0):
        adapters = {p.dtype for key, p in network.named_parameters() if "lora_" in key}
        assert adapters == {torch.float32}
        randomise_adapters(network)
        unmerged = logits(network, name).float()
    assert {parameter.dtype for parameter in network.parameters()} == {torch.bfloat16}
    scale = max(1.0, float(unmerged.abs().max()))
    assert float((logits(network, name).float() - unmerged).abs().max()) <= ROUNDED * scale


def test_slices_go_through_adapters() -> None:
    """The slice of a network with adapters is the slice of the merged one."""
    name = "llama-groups"
    network = tiny(name, kind="lm")
    with low_rank_adapters(network, 2, seed=0):
        randomise_adapters(network)
        with subnetwork(network, SPEC):
            frozen = logits(network, name)
        with torch.enable_grad(), subnetwork(network, SPEC):
            answer = network(**text_batch(name).inputs).logits
            answer.square().mean().backward()
        gradients = [p.grad for key, p in network.named_parameters() if "lora_" in key]
        assert sum(gradient is not None and bool(gradient.any()) for gradient in gradients) > 20
        torch.testing.assert_close(answer.detach(), frozen)
    with masked_subnetwork(network, SPEC):
        torch.testing.assert_close(frozen, logits(network, name), rtol=1e-9, atol=1e-9)


def test_training_moves_the_merged_weights_and_nothing_else() -> None:
    name = "llama-groups"
    network, batch = tiny(name, kind="lm").float(), text_batch(name)
    before = {key: value.clone() for key, value in network.state_dict().items()}

    def update(_: object, rng: object, progress: float) -> torch.Tensor:
        loss = task_loss(network(**batch.inputs).logits, batch.targets)
        loss.backward()
        return loss.detach()

    first = float(update(None, None, 0.0))
    network.zero_grad()
    with low_rank_adapters(network, 4, seed=0):
        train_network(network, lambda _: [0] * 30, update, Schedule(steps=30, learning_rate=3e-2), seed=0)
    last = float(update(None, None, 0.0))
    assert last < 0.9 * first
    changed = {key for key, value in network.state_dict().items() if not torch.equal(value, before[key])}
    assert changed and changed == {f"{path}.weight" for path in layer_linears(network)}


def test_an_error_leaves_the_network_as_it_was() -> None:
    network = tiny("llama", kind="lm")
    before = {key: value.clone() for key, value in network.state_dict().items()}
    with pytest.raises(ValueError, match="stop"), low_rank_adapters(network, 2, seed=0):
        randomise_adapters(network)
        raise ValueError("stop")
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_without_peft_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lora, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"--lora needs the package peft.*pip install 'archwright\[peft\]'"):
        check_lora()
