"""The tensors of a pruned decoder as layers of equal size.

A decoder norms what enters a sub-layer and adds what leaves it, so a sub-layer whose last linear is zero is none.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from archwright.exporting.blocks import Block, State, corner, layer_of, other_tensors
from archwright.networks.families.family import AttentionShape, Family
from archwright.networks.pruned import PrunedNetwork


def decoder_state(network: PrunedNetwork, blocks: list[Block], stock: PreTrainedModel) -> State:
    """The state dict of the stock backbone, which says by its own tensors how large they must be."""
    family, shape = network.config.family, shape_of(network, stock)
    state = other_tensors(network)
    wanted = family.from_stock(stock.state_dict())
    for number, block in enumerate(blocks):
        root = f"{family.layers}.{number}."
        ours = dict(block_tensors(network, block, shape, stock_layer=stock.get_submodule(root[:-1])))
        for name in (name.removeprefix(root) for name in wanted if name.startswith(root)):
            state[root + name] = fitted(name, ours.get(name), wanted[root + name])
    return family.to_stock(state)


def shape_of(network: PrunedNetwork, stock: PreTrainedModel) -> AttentionShape:
    """The heads of the stock layers."""
    family, config = network.config.family, stock.config
    heads = getattr(config, family.heads)
    groups = getattr(config, family.key_heads) if family.key_heads else heads
    return AttentionShape(groups, heads // groups, network.config.whole(0).attention.size)


def block_tensors(
    network: PrunedNetwork, block: Block, shape: AttentionShape, *, stock_layer: nn.Module
) -> Iterator[tuple[str, Tensor]]:
    """Names and tensors of what is alive, heads in the places where the stock layer has them."""
    family, attention, ffn = network.config.family, layer_of(network, block.attention), layer_of(network, block.ffn)
    if attention is not None and block.attention is not None:
        old = network.placed_layers()[block.attention].shape
        faster = attention.get_submodule(family.attention).scaling / stock_layer.get_submodule(family.attention).scaling
        for name, tensor in attention.state_dict().items():
            if in_attention(name, family):
                yield name, placed(scaled(name, tensor, family, faster), name.rpartition(".")[0], family, old, shape)
    if ffn is not None:
        yield from ((name, tensor) for name, tensor in ffn.state_dict().items() if not in_attention(name, family))


def in_attention(name: str, family: Family) -> bool:
    return name.startswith((f"{family.attention}.", f"{family.attention_norm}."))


def scaled(name: str, tensor: Tensor, family: Family, factor: float) -> Tensor:
    """Queries as much larger as the stock layer makes their scores smaller, which may depend on its number."""
    return tensor * factor if factor != 1 and name.startswith(f"{family.query}.") else tensor


def placed(tensor: Tensor, path: str, family: Family, old: AttentionShape, new: AttentionShape) -> Tensor:
    """Groups in front of groups of zeros, and in every group its query heads in front of those that are zeros."""
    before, after = folded(path, family, old), folded(path, family, new)
    if before is None or after is None:
        return tensor
    if path == family.mix:  # its inputs are heads, and its bias has none
        return tensor if tensor.dim() < 2 else corner(tensor.unflatten(1, before), (len(tensor), *after)).flatten(1)
    apart = corner(tensor.unflatten(0, before), (*after, *tensor.shape[1:]))
    return apart.flatten(0, len(after) - 1)


def folded(path: str, family: Family, shape: AttentionShape) -> tuple[int, ...] | None:
    """The features of a linear apart: groups, query heads of each, features of a head; none if there are no heads."""
    queries, keys = tuple(shape), (shape.groups, shape.size)
    return {family.query: queries, family.key: keys, family.value: keys, family.mix: queries}.get(path)


def fitted(name: str, tensor: Tensor | None, wanted: Tensor) -> Tensor:
    """The tensor with zeros behind it; of a dead sub-layer zeros, and norms that scale by one."""
    if tensor is not None:
        return corner(tensor, wanted.shape)
    norm = wanted.dim() == 1 and name.endswith(".weight")
    return torch.ones(wanted.shape) if norm else torch.zeros(wanted.shape)
