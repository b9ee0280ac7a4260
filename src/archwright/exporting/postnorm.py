"""The tensors of a pruned encoder as layers of equal size.

An encoder norms what leaves a sub-layer, so stock layers always apply both of their norms; and stock heads look at the
first token only. So dead sub-layers become norms that change nothing, and mean pooling becomes one more layer.
"""

from math import sqrt

import torch
from torch import nn
from transformers import PreTrainedModel

from archwright.errors import BadInput
from archwright.exporting.blocks import Block, State, corner, layer_of, other_tensors, pools_mean, widest
from archwright.networks.families.family import Family
from archwright.networks.pruned import PrunedNetwork

SHRINK = 2.0**-12
"""What enters the pooling layer is this much smaller, so that the first token hardly counts beside the mean."""
GROW = 2.0**10
"""The mean leaves the pooling layer's attention this much larger. The first token then weighs 2^-22 of the mean, below
float32 rounding of a whole network, and half precision does not overflow for means up to 64."""


def check_first_norm(network: PrunedNetwork, blocks: list[Block]) -> None:
    """A dead sub-layer borrows the norm before it; behind ELECTRA's projection there is none."""
    if blocks and blocks[0].attention is None and hasattr(network.backbone, "embeddings_project"):
        heads, units = network.config.layers[0]
        raise BadInput(
            "stock classes cannot begin with an FFN when the embeddings are projected to another width, "
            f"got a first layer of {heads} heads and {units} units; export to compact."
        )


def encoder_state(network: PrunedNetwork, blocks: list[Block], stock: PreTrainedModel) -> State:
    """The state dict of the stock backbone, but for a pooler, which belongs to the head."""
    family, width = network.config.family, network.config.backbone[network.config.family.width]
    state = other_tensors(network)
    norm = "embeddings_project" if hasattr(network.backbone, "embeddings_project") else family.embedding_norm
    for place, block in enumerate(blocks):
        root = f"{family.layers}.{place}"
        put(state, root, attention_state(layer_of(network, block.attention), family, width))
        norm = settle(state, norm, f"{root}.{family.attention_norm}", dead=block.attention is None)
        put(state, root, ffn_state(layer_of(network, block.ffn), family, width=width, units=widest(network)))
        norm = settle(state, norm, f"{root}.{family.ffn_norm}", dead=block.ffn is None)
    if pools_mean(network):
        scale(state, norm, SHRINK)
        put(state, f"{family.layers}.{len(blocks)}", pooling_state(network, width))
    return state


def put(state: State, root: str, tensors: State) -> None:
    state.update({f"{root}.{name}": tensor for name, tensor in tensors.items()})


def settle(state: State, before: str, norm: str, *, dead: bool) -> str:
    """Give a dead sub-layer's norm the scale and shift of the norm before it, which keeps none; returns `norm`.

    Normalising twice is normalising once, LN(LN(x)) = LN(x), when the first neither scales nor shifts.
    """
    if dead:
        for leaf, neutral in (("weight", torch.ones_like), ("bias", torch.zeros_like)):
            state[f"{norm}.{leaf}"] = state[f"{before}.{leaf}"]
            state[f"{before}.{leaf}"] = neutral(state[f"{before}.{leaf}"])
    return norm


def scale(state: State, path: str, factor: float) -> None:
    for leaf in ("weight", "bias"):
        state[f"{path}.{leaf}"] = state[f"{path}.{leaf}"] * factor


def attention_state(layer: nn.Module | None, family: Family, width: int) -> State:
    """Heads first, zeros behind; all zeros when there is none."""
    paths = (family.query, family.key, family.value, family.mix)
    shapes = dict.fromkeys(paths, (width, width))
    return padded(layer, shapes, norm=family.attention_norm)


def ffn_state(layer: nn.Module | None, family: Family, *, width: int, units: int) -> State:
    return padded(layer, {family.up: (units, width), family.down: (width, units)}, norm=family.ffn_norm)


def padded(layer: nn.Module | None, shapes: dict[str, tuple[int, int]], *, norm: str) -> State:
    """Linears and norm of a sub-layer, the linears as the upper left corner of zeros of these shapes."""
    if layer is None:
        dead = {f"{path}.weight": torch.zeros(shape) for path, shape in shapes.items()}
        return dead | {f"{path}.bias": torch.zeros(shape[0]) for path, shape in shapes.items()}
    state = {f"{norm}.{leaf}": tensor for leaf, tensor in layer.get_submodule(norm).state_dict().items()}
    for path, shape in shapes.items():
        linear = layer.get_submodule(path)
        state[f"{path}.weight"] = corner(linear.weight.detach(), shape)
        state[f"{path}.bias"] = corner(linear.bias.detach(), shape[:1])
    return state


def pooling_state(network: PrunedNetwork, width: int) -> State:
    """A layer after which every token, so the first too, is the normalised mean of all tokens that are not padding.

    Equal scores make attention a mean; it is so much larger than the residual that the norm sees only the mean.
    The FFN adds nothing, and its norm divides by sqrt(1 + eps), which its weight takes back.
    """
    family, eps = network.config.family, network.backbone.get_submodule(network.config.family.embedding_norm).eps
    attention = attention_state(None, family, width)
    attention[f"{family.value}.weight"] = torch.eye(width) / SHRINK
    attention[f"{family.mix}.weight"] = torch.eye(width) * GROW
    norms = {family.attention_norm: 1.0, family.ffn_norm: sqrt(1 + eps)}
    scales = {f"{path}.weight": torch.full((width,), factor) for path, factor in norms.items()}
    shifts = {f"{path}.bias": torch.zeros(width) for path in norms}
    return attention | ffn_state(None, family, width=width, units=widest(network)) | scales | shifts
