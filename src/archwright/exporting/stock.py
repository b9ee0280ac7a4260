"""A pruned network as one of the stock Hugging Face classes, without code of its own in the checkpoint.

Stock layers all have the same sizes, so what is missing in some of them is filled with zeros.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from archwright.errors import BadInput
from archwright.exporting.blocks import Block, State, most_heads, paired, pools_mean, widest
from archwright.exporting.compact import logits_of
from archwright.exporting.kinds import KINDS
from archwright.exporting.postnorm import check_first_norm, encoder_state
from archwright.exporting.prenorm import decoder_state
from archwright.networks.families.family import AttentionShape
from archwright.networks.pruned import PrunedNetwork
from archwright.networks.stock_heads import STOCK_HEADS

STATES: dict[bool, Callable[[PrunedNetwork, list[Block], PreTrainedModel], State]] = {
    False: encoder_state,
    True: decoder_state,
}
"""The tensors of the stock backbone, by whether the family is causal."""


def write_stock(network: PrunedNetwork, folder: Path) -> None:
    """A checkpoint of the exact sizes; BadInput names what a stock config cannot say."""
    check_reading(network)
    check_expressible(network)
    as_stock(network).save_pretrained(folder)


def write_padded(network: PrunedNetwork, folder: Path) -> None:
    """A checkpoint of the largest layer's units and of as many heads as stock layers need, the rest zeros."""
    check_reading(network)
    as_stock(network).save_pretrained(folder)


def load_stock(folder: Path, kind: str) -> Callable[[Mapping[str, Tensor]], Tensor]:
    return logits_of(STOCK_HEADS[kind].auto.from_pretrained(folder), KINDS[kind].stock_logits)


def as_stock(network: PrunedNetwork) -> PreTrainedModel:
    """The stock network that computes the same; its tensors are new or shared, never changed in place."""
    blocks = paired(network)
    check_first_norm(network, blocks)
    stock = empty_stock(network, stock_config(network, blocks))
    backbone = STATES[network.config.family.causal](network, blocks, stock.base_model)
    state = {f"{stock.base_model_prefix}.{name}": tensor for name, tensor in backbone.items()}
    stock.load_state_dict(state | head_state(network), assign=True)
    if network.can_generate():
        stock.tie_weights()
        stock.generation_config = network.generation_config
    return stock.eval()


def empty_stock(network: PrunedNetwork, config: PreTrainedConfig) -> PreTrainedModel:
    """The stock class of this kind of task, without time and random numbers for weights that are replaced at once."""
    auto = STOCK_HEADS[network.config.kind].auto
    try:
        with torch.device("meta"):
            return auto.from_config(config, dtype=network.dtype)
    except ValueError as error:
        if "Unrecognized configuration class" not in str(error):
            raise
        raise BadInput(
            f"stock classes must exist for the kind of task, got {network.config.kind} with {config.model_type}, "
            "for which there is none; export to compact."
        ) from error


def head_state(network: PrunedNetwork) -> State:
    """The head's tensors where the stock class has them."""
    paths = STOCK_HEADS[network.config.kind].paths(network.config.family)
    parts = {theirs: network.get_submodule(ours) for ours, theirs in paths.items() if theirs}
    return {f"{path}.{leaf}": value for path, part in parts.items() for leaf, value in part.state_dict().items()}


def stock_config(network: PrunedNetwork, blocks: list[Block]) -> PreTrainedConfig:
    """The family's own config for these layers, and for one more where the mean is a layer."""
    config = sized_config(network, [block.first for block in blocks], smallest_shape(network))
    setattr(config, network.config.family.depth, len(blocks) + pools_mean(network))
    return config


def sized_config(network: PrunedNetwork, layers: Sequence[int], shape: AttentionShape) -> PreTrainedConfig:
    """The family's own config for these layers, all with heads of this shape; raises what the config has against it."""
    pruned, family = copy.copy(network.config), network.config.family
    free = {family.heads: shape.groups * shape.queries, family.key_heads: shape.groups, "head_dim": shape.size}
    pruned.backbone = {**pruned.backbone, family.units: widest(network), **(free if family.key_heads else {})}
    return labelled(pruned.stock_of(layers), network)


def labelled_config(network: PrunedNetwork) -> PreTrainedConfig:
    """The family's own config with the names of our labels."""
    return labelled(network.config.stock(), network)


def labelled(config: PreTrainedConfig, network: PreTrainedModel) -> PreTrainedConfig:
    """The config with the names of the network's labels."""
    ours = network.config
    config.id2label, config.label2id = dict(ours.id2label), dict(ours.label2id)
    config.problem_type, config.pad_token_id = ours.problem_type, getattr(ours, "pad_token_id", None)
    return config


def smallest_shape(network: PrunedNetwork) -> AttentionShape:
    """The fewest heads that hold those of every layer and that the stock config accepts."""
    config = network.config
    whole, _ = config.whole_sizes(0)
    least = max(1, most_heads(network)) if config.family.key_heads else whole
    shapes = (config.attention(0, heads) for heads in range(least, whole))
    return next((shape for shape in shapes if rejection(network, shape) is None), config.whole(0).attention)


def rejection(network: PrunedNetwork, shape: AttentionShape) -> str | None:
    """What the stock config has against heads of this shape, in its own words."""
    try:
        sized_config(network, (), shape)
    except StrictDataclassError as error:
        return " ".join(str(error).split("Error: ")[-1].split())
    return None


def check_reading(network: PrunedNetwork) -> None:
    """Raises BadInput unless stock heads read what this one reads; the mean of an encoder can be made a layer."""
    config = network.config
    readable = {config.family.pooling, *(() if config.family.causal else ("mean",))}
    if KINDS[config.kind].pools and config.pooling not in readable:
        raise BadInput(
            f"stock heads of {config.backbone['model_type']} need the pooling {' or '.join(sorted(readable))}, "
            f"got {config.pooling}; export to compact."
        )


def check_expressible(network: PrunedNetwork) -> None:
    """Raises BadInput, one line, unless stock layers can have exactly these sizes."""
    config, sizes = network.config, network.config.layers
    whole, _ = config.whole_sizes(0)
    heads = most_heads(network) if config.family.key_heads else whole
    equal = f"all {whole} heads" if heads == whole else f"equally many heads (here {heads})"
    if any(block.attention is None or block.ffn is None for block in paired(network)):
        refuse("both heads and units in every layer", next(size for size in sizes if 0 in size))
    for size in sizes:
        if size[0] not in (0, heads):
            refuse(f"{equal} in every layer", size)
        if size[1] not in (0, widest(network)):
            refuse(f"equally many units in every layer, here {widest(network)}", size)
    against = rejection(network, config.attention(0, heads)) if sizes else None
    if against:
        refuse(f"sizes that the stock config accepts ({against.rstrip('.')})", sizes[0])


def refuse(rule: str, size: list[int]) -> None:
    raise BadInput(
        f"hf needs {rule}, got a layer of {size[0]} heads and {size[1]} units; export to hf-padded or compact."
    )
