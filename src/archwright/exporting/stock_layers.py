"""The tensors of a pruned network as stock layers, which all have the same sizes.

What is left of a network is paired into as few stock layers as its order allows, and what is missing in a layer is
filled with zeros. Where a sub-layer norms what enters it and adds what leaves it (decoders, ModernBERT), one whose last
linear is zero is none. Other encoders norm what leaves a sub-layer, so stock layers always apply both of their norms,
and stock heads look at the first token only: dead sub-layers become norms that change nothing, and mean pooling becomes
one more layer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from archwright.errors import BadInput
from archwright.exporting.kinds import task_export
from archwright.networks.embeddings import LowRankEmbedding, embedding_path
from archwright.networks.families.family import AttentionShape, Family, LayerParts
from archwright.networks.pruned import POOLINGS, PrunedNetwork, find_path, normed_mean

State = dict[str, Tensor]

SHRINK = 2.0**-12
"""What enters the pooling layer is this much smaller, so that the first token hardly counts beside the mean."""
GROW = 2.0**10
"""The mean leaves the pooling layer's attention this much larger. The first token then weighs 2^-22 of the mean, below
float32 rounding of a whole network, and half precision does not overflow for means up to 64."""


@dataclass
class Block:
    """One stock layer to be: the numbers of the pruned layers whose attention and whose FFN stand in it, if any."""

    attention: int | None = None
    ffn: int | None = None

    @property
    def first(self) -> int:
        """The layer it begins with."""
        return next((place for place in (self.attention, self.ffn) if place is not None), 0)


def pair_sublayers(network: PrunedNetwork) -> list[Block]:
    """Sub-layers in as few stock layers as their order allows: an attention and the FFN of a later layer share one.

    A first stock layer without a norm can only have the attention that was first in the unpruned network, or none; and
    a family that cannot be without layers has one in which nothing is.
    """
    config, family = network.config, network.config.family
    first = bool(config.places) and config.places[0] == 0 and config.layers[0][0] > 0
    alone = not config.places and not pools_mean(network)  # the mean is a layer
    empty = (family.unnormed_first and not first) or (family.needs_layer and alone)
    blocks = [Block()] if empty else []
    for place, (heads, units) in enumerate(network.config.layers):
        if heads:
            blocks.append(Block(attention=place))
        if units and blocks and blocks[-1].ffn is None:
            blocks[-1].ffn = place
        elif units:
            blocks.append(Block(ffn=place))
    return blocks


def find_layer(network: PrunedNetwork, place: int | None) -> nn.Module | None:
    layers = network.backbone.get_submodule(network.config.family.layers)
    return None if place is None else layers[place]


def most_units(network: PrunedNetwork) -> int:
    return max((units for _, units in network.config.layers if units), default=1)


def most_heads(network: PrunedNetwork) -> int:
    return max((heads for heads, _ in network.config.layers), default=0)


def pools_mean(network: PrunedNetwork) -> bool:
    """Whether the head reads the mean of all tokens."""
    return task_export(network.config.kind).pools and POOLINGS[network.config.pooling] is normed_mean


def other_tensors(network: PrunedNetwork) -> State:
    """The backbone's tensors outside of its layers; a narrow table of word vectors is multiplied out."""
    root, backbone = f"{network.config.family.layers}.", network.backbone
    state = {name: tensor for name, tensor in backbone.state_dict().items() if not name.startswith(root)}
    table = backbone.get_input_embeddings()
    if isinstance(table, LowRankEmbedding):
        path = embedding_path(backbone)
        state = {name: tensor for name, tensor in state.items() if not name.startswith(f"{path}.")}
        state[f"{path}.weight"] = table.multiplied_out()
    return state


def pad_zeros(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The tensor in the upper left corner of zeros; itself when it fills them."""
    if tensor.shape == shape:
        return tensor
    room = tensor.new_zeros(shape)
    room[tuple(slice(size) for size in tensor.shape)] = tensor
    return room


def check_first_norm(network: PrunedNetwork, blocks: list[Block]) -> None:
    """A dead sub-layer borrows the norm before it; behind ELECTRA's projection there is none, nor in a shared layer."""
    shared = network.config.family.shared_layer
    if shared and not (blocks and all(block.attention is not None and block.ffn is not None for block in blocks)):
        heads, units = network.config.layers[0] if network.config.layers else (0, 0)
        raise BadInput(
            f"stock classes of {network.config.backbone['model_type']} always run heads and units of the shared layer, "
            f"got {heads} heads and {units} units; export to compact."
        )
    if blocks and blocks[0].attention is None and hasattr(network.backbone, "embeddings_project"):
        heads, units = network.config.layers[0]
        raise BadInput(
            "stock classes cannot begin with an FFN when the embeddings are projected to another width, "
            f"got a first layer of {heads} heads and {units} units; export to compact."
        )


def norms_last_state(network: PrunedNetwork, blocks: list[Block]) -> State:
    """The state dict of a stock backbone that norms what leaves a sub-layer, without the pooler, a part of the head."""
    family, width = network.config.family, network.config.backbone[network.config.family.width]
    parts = network.config.parts(0)
    state = other_tensors(network)
    norm = "embeddings_project" if hasattr(network.backbone, "embeddings_project") else family.embedding_norm
    for place, block in enumerate(blocks[:1] if family.shared_layer else blocks):
        root = f"{family.layers}.{place}"
        attention = attention_state(find_layer(network, block.attention), parts, network.config.whole(0).attention)
        ffn = ffn_state(find_layer(network, block.ffn), parts, width=width, units=most_units(network))
        state |= {f"{root}.{name}": tensor for name, tensor in (attention | ffn).items()}
        norm = move_norm(state, norm, f"{root}.{family.attention_norm}", dead=block.attention is None)
        norm = move_norm(state, norm, f"{root}.{family.ffn_norm}", dead=block.ffn is None)
    if pools_mean(network):
        for leaf in ("weight", "bias"):
            state[f"{norm}.{leaf}"] = state[f"{norm}.{leaf}"] * SHRINK
        root = f"{family.layers}.{len(blocks)}"
        state |= {f"{root}.{name}": tensor for name, tensor in pooling_state(network, width).items()}
    return family.to_stock(state)


def move_norm(state: State, before: str, norm: str, *, dead: bool) -> str:
    """Give a dead sub-layer's norm the scale and shift of the norm before it, which keeps none; returns `norm`.

    Normalising twice is normalising once, LN(LN(x)) = LN(x), when the first neither scales nor shifts.
    """
    if dead:
        for leaf, neutral in (("weight", torch.ones_like), ("bias", torch.zeros_like)):
            state[f"{norm}.{leaf}"] = state[f"{before}.{leaf}"]
            state[f"{before}.{leaf}"] = neutral(state[f"{before}.{leaf}"])
    return norm


def attention_state(layer: nn.Module | None, parts: LayerParts, shape: AttentionShape) -> State:
    """Heads first, zeros behind; all zeros when there is none.

    Where all layers share a table with an entry for every head, heads stand where that table has theirs.
    """
    width = shape.inner
    paths = (*parts.query_writers, *parts.key_writers, parts.mix)
    state = sublayer_state(layer, dict.fromkeys(paths, (width, width)), norm=parts.attention_norm)
    if layer is None or not parts.head_places:
        return state
    owner, name = find_path(layer, parts.head_places)
    places = getattr(owner, name).tolist()
    rest = [head for head in range(shape.groups) if head not in places]
    order = torch.tensor([*places, *rest]).argsort()  # for each head of the stock layer the one that comes there
    for path in paths:
        leaves = ("weight",) if path == parts.mix else ("weight", "bias")
        for key in (f"{path}.{leaf}" for leaf in leaves):
            dim = 1 if path == parts.mix else 0
            apart = state[key].unflatten(dim, (shape.groups, shape.size))
            state[key] = apart.index_select(dim, order).flatten(dim, dim + 1)
    return state


def ffn_state(layer: nn.Module | None, parts: LayerParts, *, width: int, units: int) -> State:
    return sublayer_state(layer, {parts.up: (units, width), parts.down: (width, units)}, norm=parts.ffn_norm)


def sublayer_state(layer: nn.Module | None, shapes: dict[str, tuple[int, int]], *, norm: str) -> State:
    """Linears and norm of a sub-layer, the linears as the upper left corner of zeros of these shapes."""
    if layer is None:
        dead = {f"{path}.weight": torch.zeros(shape) for path, shape in shapes.items()}
        return dead | {f"{path}.bias": torch.zeros(shape[0]) for path, shape in shapes.items()}
    state = {f"{norm}.{leaf}": tensor for leaf, tensor in layer.get_submodule(norm).state_dict().items()}
    for path, shape in shapes.items():
        linear = layer.get_submodule(path)
        state[f"{path}.weight"] = pad_zeros(linear.weight.detach(), shape)
        state[f"{path}.bias"] = pad_zeros(linear.bias.detach(), shape[:1])
    return state


def pooling_state(network: PrunedNetwork, width: int) -> State:
    """A layer after which every token, so the first too, is the normalised mean of all tokens that are not padding.

    Equal scores make attention a mean; it is so much larger than the residual that the norm sees only the mean.
    The FFN adds nothing, and its norm divides by sqrt(1 + eps), which its weight takes back.
    """
    family, eps = network.config.family, network.backbone.get_submodule(network.config.family.embedding_norm).eps
    parts = network.config.parts(0)
    attention = attention_state(None, parts, network.config.whole(0).attention)
    attention[f"{family.value}.weight"] = torch.eye(width) / SHRINK
    attention[f"{family.mix}.weight"] = torch.eye(width) * GROW
    norms = {family.attention_norm: 1.0, family.ffn_norm: sqrt(1 + eps)}
    scales = {f"{path}.weight": torch.full((width,), factor) for path, factor in norms.items()}
    shifts = {f"{path}.bias": torch.zeros(width) for path in norms}
    return attention | ffn_state(None, parts, width=width, units=most_units(network)) | scales | shifts


def norms_first_state(network: PrunedNetwork, blocks: list[Block], stock: PreTrainedModel) -> State:
    """The state dict of a stock backbone that norms what enters a sub-layer; its own tensors say how large they are."""
    family, config = network.config.family, stock.config
    heads = getattr(config, family.heads)
    groups = getattr(config, family.key_heads) if family.key_heads else heads
    shape = AttentionShape(groups, heads // groups, network.config.whole(0).attention.size)
    state = other_tensors(network)
    stock_state = family.from_stock(stock.state_dict(), config.to_dict())
    for number, block in enumerate(blocks):
        root = f"{family.layers}.{number}."
        ours = dict(block_tensors(network, block, shape, stock_layer=stock.get_submodule(root[:-1])))
        for name in (name for name in stock_state if name.startswith(root)):
            tensor, size = ours.get(name.removeprefix(root)), stock_state[name].shape
            if tensor is not None:
                state[name] = pad_zeros(tensor, size)
            else:  # of a dead sub-layer zeros, and norms that scale by one
                scales = len(size) == 1 and name.endswith(".weight")
                state[name] = torch.ones(size) if scales else torch.zeros(size)
    return family.to_stock(state)


def block_tensors(
    network: PrunedNetwork, block: Block, shape: AttentionShape, *, stock_layer: nn.Module
) -> Iterator[tuple[str, Tensor]]:
    """Names and tensors of what is alive, heads in the places where the stock layer has them.

    Queries are as much larger as the stock layer makes their scores smaller, which may depend on its number.
    """
    family, attention, ffn = network.config.family, find_layer(network, block.attention), find_layer(network, block.ffn)
    in_attention = tuple(f"{path}." for path in family.without_attention)
    if attention is not None and block.attention is not None:
        old = network.placed_layers()[block.attention].shape
        ours, stock = (each.get_submodule(family.attention) for each in (attention, stock_layer))
        factor = getattr(ours, "scaling", 1.0) / getattr(stock, "scaling", 1.0)
        for name, tensor in attention.state_dict().items():
            if name.startswith(in_attention):
                grown = tensor * factor if factor != 1 and name.startswith(f"{family.query}.") else tensor
                yield name, place_heads(grown, name.rpartition(".")[0], family, old, shape)
    if ffn is not None:
        yield from ((name, tensor) for name, tensor in ffn.state_dict().items() if not name.startswith(in_attention))


def place_heads(tensor: Tensor, path: str, family: Family, old: AttentionShape, new: AttentionShape) -> Tensor:
    """Groups in front of groups of zeros, and in every group its query heads in front of those that are zeros.

    The features of queries and of what mixes heads are groups x query heads x features of a head, those of keys and
    values groups x features; what has no heads stays as it is.
    """
    if path in (family.query, family.mix):
        before, after = tuple(old), tuple(new)
    elif path in (family.key, family.value):
        before, after = (old.groups, old.size), (new.groups, new.size)
    else:
        return tensor
    if path == family.mix:  # its inputs are heads, and its bias has none
        return tensor if tensor.dim() < 2 else pad_zeros(tensor.unflatten(1, before), (len(tensor), *after)).flatten(1)
    apart = pad_zeros(tensor.unflatten(0, before), (*after, *tensor.shape[1:]))
    return apart.flatten(0, len(after) - 1)
