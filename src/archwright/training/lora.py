"""Low-rank adapters (LoRA, Hu et al. 2022): a network is trained through small matrices beside its linears."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import torch

from archwright.errors import BadInput
from archwright.networks.precision import at_least_float32
from archwright.networks.pruned import PrunedNetwork

ALPHA = 2
"""What the adapters write counts so many times, as a multiple of their rank."""


def check_lora(option: str = "--lora") -> None:
    """BadInput where peft is not installed."""
    if find_spec("peft") is None:
        raise BadInput(f"{option} needs the package peft, which is not installed; pip install 'archwright[peft]'.")


@contextmanager
def low_rank_adapters(network: PrunedNetwork, rank: int, *, seed: int) -> Iterator[None]:
    """Inside, only adapters of this rank beside the linears of all layers are trained, in float32.

    Afterwards what they learnt is in the weights, and the network is an ordinary one again; after an error it is as it
    was. Biases, norms, embeddings and head stay as they are.
    """
    trained = {name: parameter.requires_grad for name, parameter in network.named_parameters()}
    add_adapters(network, rank, seed)
    try:
        yield
    except BaseException:
        remove_adapters(network, merge=False)
        raise
    else:
        remove_adapters(network, merge=True)
    finally:
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(trained[name])


def add_adapters(network: PrunedNetwork, rank: int, seed: int) -> None:
    import peft

    config = peft.LoraConfig(r=rank, lora_alpha=ALPHA * rank, lora_dropout=0.0, target_modules=layer_linears(network))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        peft.inject_adapter_in_model(config, network)
    for name, parameter in network.named_parameters():
        if ".lora_" in name:  # peft gives them the precision of the weights, in which small updates are lost
            parameter.data = at_least_float32(parameter.data)


def layer_linears(network: PrunedNetwork) -> list[str]:
    """Names of all linears that write or read heads and units."""
    names, root = [], f"backbone.{network.config.family.layers}"
    for number, placed in enumerate(network.placed_layers()):
        parts = placed.parts
        heads = (*parts.query_writers, *parts.key_writers, parts.mix) if placed.heads else ()
        units = (*parts.unit_writers, parts.down) if placed.units else ()
        names += [f"{root}.{number}.{path}" for path in dict.fromkeys((*heads, *units))]
    return names


@torch.no_grad()
def remove_adapters(network: PrunedNetwork, *, merge: bool) -> None:
    """Plain linears in place of those with adapters, with what these add where it is to be kept."""
    from peft.tuners.lora.layer import Linear

    for name, module in list(network.named_modules()):
        if isinstance(module, Linear):
            linear = module.get_base_layer()
            if merge:
                change = sum(module.get_delta_weight(adapter) for adapter in module.active_adapters)
                linear.weight.copy_(at_least_float32(linear.weight) + change)
            network.set_submodule(name, linear)
    network.__dict__.pop("peft_config", None)
