"""A pruned network as one of the stock Hugging Face classes, without code of its own in the checkpoint.

Stock layers all have the same sizes, always apply both of their norms, and stock heads look at the first token only.
So dead heads and units become zeros, dead sub-layers become norms that change nothing, and mean pooling becomes one
more layer.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedConfig, PreTrainedModel

from archwright.errors import BadInput
from archwright.export.compact import logits_of
from archwright.networks.pruned import POOLINGS, Family, PrunedNetwork, normed_mean

State = dict[str, Tensor]

SHRINK = 2.0**-12
"""What enters the pooling layer is this much smaller, so that the first token hardly counts beside the mean."""
GROW = 2.0**10
"""The mean leaves the pooling layer's attention this much larger. The first token then weighs 2^-22 of the mean, below
float32 rounding of a whole network, and half precision does not overflow for means up to 64."""


@dataclass
class Block:
    """One stock layer to be: the pruned layers whose attention and whose FFN stand in it, if any."""

    attention: nn.Module | None = None
    ffn: nn.Module | None = None


def write_stock(network: PrunedNetwork, folder: Path) -> None:
    """A checkpoint of the exact sizes; BadInput names what a stock config cannot say."""
    check_expressible(network)
    as_stock(network).save_pretrained(folder)


def write_padded(network: PrunedNetwork, folder: Path) -> None:
    """A checkpoint of the original's heads and the largest layer's units, the rest zeros."""
    as_stock(network).save_pretrained(folder)


def load_stock(folder: Path) -> Callable[[Mapping[str, Tensor]], Tensor]:
    return logits_of(AutoModelForSequenceClassification.from_pretrained(folder))


def as_stock(network: PrunedNetwork) -> PreTrainedModel:
    """The stock classifier that computes the same; its tensors are new or shared, never changed in place."""
    blocks = paired(network)
    check_first_norm(network, blocks)
    config = stock_config(network, blocks)
    with torch.device("meta"):  # no time and no random numbers for weights that are replaced at once
        stock = AutoModelForSequenceClassification.from_config(config, dtype=network.dtype)
    stock.load_state_dict(stock_state(network, blocks, prefix=stock.base_model_prefix), assign=True)
    return stock.eval()


def sublayers(network: PrunedNetwork) -> Iterator[Block]:
    """What is left, in the order in which it is computed: each block holds one sub-layer."""
    layers = network.backbone.get_submodule(network.config.family.layers)
    for layer, (heads, units) in zip(layers, network.config.layers, strict=True):
        if heads:
            yield Block(attention=layer)
        if units:
            yield Block(ffn=layer)


def paired(network: PrunedNetwork) -> list[Block]:
    """Sub-layers in as few stock layers as their order allows: an attention and the FFN of a later layer share one."""
    blocks: list[Block] = []
    for part in sublayers(network):
        if part.ffn is not None and blocks and blocks[-1].ffn is None:
            blocks[-1].ffn = part.ffn
        else:
            blocks.append(part)
    return blocks


def stock_config(network: PrunedNetwork, blocks: list[Block]) -> PreTrainedConfig:
    family, config = network.config.family, labelled_config(network)
    setattr(config, family.depth, len(blocks) + has_pooling_layer(network))
    setattr(config, family.units, widest(network))
    return config


def labelled_config(network: PrunedNetwork) -> PreTrainedConfig:
    """The family's own config with the names of our labels."""
    pruned, config = network.config, network.config.stock()
    config.id2label, config.label2id = dict(pruned.id2label), dict(pruned.label2id)
    config.problem_type = pruned.problem_type
    return config


def widest(network: PrunedNetwork) -> int:
    return max((units for _, units in network.config.layers if units), default=1)


def has_pooling_layer(network: PrunedNetwork) -> bool:
    return POOLINGS[network.config.pooling] is normed_mean


def check_expressible(network: PrunedNetwork) -> None:
    """Raises BadInput, one line, unless stock layers can have exactly these sizes."""
    sizes, full = network.config.layers, network.config.backbone[network.config.family.heads]
    if any(block.attention is None or block.ffn is None for block in paired(network)):
        refuse("both heads and units in every layer", next(size for size in sizes if 0 in size))
    for size in sizes:
        if size[0] not in (0, full):
            refuse(f"all {full} heads in every layer", size)
        if size[1] not in (0, widest(network)):
            refuse(f"equally many units in every layer, here {widest(network)}", size)


def refuse(rule: str, size: list[int]) -> None:
    raise BadInput(f"hf needs {rule}, got a layer of {described(size)}; export to hf-padded or compact.")


def described(size: list[int]) -> str:
    return f"{size[0]} heads and {size[1]} units"


def check_first_norm(network: PrunedNetwork, blocks: list[Block]) -> None:
    """A dead sub-layer borrows the norm before it; behind ELECTRA's projection there is none."""
    if blocks and blocks[0].attention is None and hasattr(network.backbone, "embeddings_project"):
        raise BadInput(
            "stock classes cannot begin with an FFN when the embeddings are projected to another width, "
            f"got a first layer of {described(network.config.layers[0])}; export to compact."
        )


def stock_state(network: PrunedNetwork, blocks: list[Block], *, prefix: str) -> State:
    """The state dict of the stock classifier."""
    family, width = network.config.family, network.head.dense.in_features
    backbone = network.backbone.state_dict()
    state = {name: tensor for name, tensor in backbone.items() if not name.startswith(f"{family.layers}.")}
    norm = "embeddings_project" if hasattr(network.backbone, "embeddings_project") else family.embedding_norm
    for place, block in enumerate(blocks):
        root = f"{family.layers}.{place}"
        put(state, root, attention_state(block.attention, family, width))
        norm = settle(state, norm, f"{root}.{family.attention_norm}", dead=block.attention is None)
        put(state, root, ffn_state(block.ffn, family, width=width, units=widest(network)))
        norm = settle(state, norm, f"{root}.{family.ffn_norm}", dead=block.ffn is None)
    if has_pooling_layer(network):
        scale(state, norm, SHRINK)
        put(state, f"{family.layers}.{len(blocks)}", pooling_state(network, width))
    return {f"{prefix}.{name}": tensor for name, tensor in state.items()} | head_state(network, family)


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


def corner(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The tensor in the upper left corner of zeros."""
    room = tensor.new_zeros(shape)
    room[tuple(slice(size) for size in tensor.shape)] = tensor
    return room


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


def head_state(network: PrunedNetwork, family: Family) -> State:
    parts = {family.head_dense: network.head.dense, family.head_out: network.head.out}
    return {f"{path}.{leaf}": value for path, part in parts.items() for leaf, value in part.state_dict().items()}
