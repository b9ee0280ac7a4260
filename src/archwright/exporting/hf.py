"""A pruned network as one of the stock Hugging Face classes, without code of its own in the checkpoint.

Stock layers all have the same sizes, so what is missing in some of them is filled with zeros.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from archwright.errors import BadInput
from archwright.exporting.compact import run_logits
from archwright.exporting.formats import ExportFormat
from archwright.exporting.kinds import task_export
from archwright.exporting.stock_layers import (
    Block,
    State,
    check_first_norm,
    most_heads,
    most_units,
    norms_first_state,
    norms_last_state,
    pair_sublayers,
    pools_mean,
)
from archwright.networks.families.family import AttentionShape
from archwright.networks.pruned import PrunedNetwork
from archwright.networks.stock_heads import stock_head

POOLED = """\
The network pools by the mean over all tokens. Stock heads look at the first token only, so the last layer of this
checkpoint is not a trained one: it computes the mean. Run it as it is, also in half precision; to train on, export to
`compact`.
"""


def write_stock(
    network: PrunedNetwork, folder: Path, batch: Mapping[str, Tensor] | None = None, *, padded: bool = False
) -> None:
    """A checkpoint of the exact sizes; BadInput names what a stock config cannot say.

    Or, `padded`, of the largest layer's units and of as many heads as stock layers need, the rest zeros.
    """
    check_pooling(network)
    if network.config.width is not None:
        raise BadInput(
            f"stock classes have as many channels as all heads together, got a hidden width of {network.config.width}; "
            "export to compact."
        )
    if not padded:
        check_expressible(network)
    as_stock(network).save_pretrained(folder)


def load_stock(folder: Path, kind: str) -> Callable[[Mapping[str, Tensor]], Tensor]:
    return run_logits(stock_head(kind).auto.from_pretrained(folder), task_export(kind).stock_logits)


HF = ExportFormat(
    write=write_stock,
    load=load_stock,
    keeps_bfloat16=True,
    stock=True,
    notes={"mean": POOLED},
    otherwise="export to compact",
)
HF_PADDED = replace(HF, write=partial(write_stock, padded=True))


def as_stock(network: PrunedNetwork) -> PreTrainedModel:
    """The stock network that computes the same; its tensors are new or shared, never changed in place."""
    blocks, family = pair_sublayers(network), network.config.family
    check_first_norm(network, blocks)
    stock = empty_stock(network, stock_config(network, blocks))
    if family.norms_first:
        backbone = norms_first_state(network, blocks, stock.base_model)
    else:
        backbone = norms_last_state(network, blocks)
    prefix = "" if stock.base_model is stock else f"{stock.base_model_prefix}."
    state: State = {f"{prefix}{name}": tensor for name, tensor in backbone.items()}
    if stock.base_model is stock and family.pooler:  # nobody reads it; left out, it would be drawn at random
        state |= {
            k: v.new_zeros(v.shape, device="cpu") for k, v in stock.state_dict().items() if k.startswith("pooler.")
        }
    for ours, theirs in stock_head(network.config.kind).paths(family).items():
        if theirs:
            head = network.get_submodule(ours).state_dict()
            state |= {f"{theirs}.{leaf}": tensor for leaf, tensor in head.items()}
    stock.load_state_dict(state, assign=True)
    if network.can_generate():
        stock.tie_weights()
        stock.generation_config = network.generation_config
    return stock.eval()


def empty_stock(network: PrunedNetwork, config: PreTrainedConfig) -> PreTrainedModel:
    """The stock class of this kind of task, without time and random numbers for weights that are replaced at once."""
    auto = stock_head(network.config.kind).auto
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


def stock_config(network: PrunedNetwork, blocks: list[Block]) -> PreTrainedConfig:
    """The family's own config for these layers, and for one more where the mean is a layer."""
    config = sized_config(network, [block.first for block in blocks], smallest_shape(network))
    setattr(config, network.config.family.depth, len(blocks) + pools_mean(network))
    network.config.family.set_pooling(config, network.config.pooling)
    return config


def sized_config(network: PrunedNetwork, layers: Sequence[int], shape: AttentionShape) -> PreTrainedConfig:
    """The family's own config for these layers, all with heads of this shape; raises what the config has against it."""
    pruned, family = copy.copy(network.config), network.config.family
    free = {family.heads: shape.groups * shape.queries, family.key_heads: shape.groups, "head_dim": shape.size}
    pruned.backbone = {**pruned.backbone, family.units: most_units(network), **(free if family.key_heads else {})}
    return copy_labels(pruned.stock_of(layers), network)


def copy_labels(config: PreTrainedConfig, network: PreTrainedModel) -> PreTrainedConfig:
    """The config with the names of the network's labels, and their thresholds where they have some."""
    ours = network.config
    config.id2label, config.label2id = dict(ours.id2label), dict(ours.label2id)
    config.problem_type, config.pad_token_id = ours.problem_type, getattr(ours, "pad_token_id", None)
    if getattr(ours, "thresholds", None):
        config.thresholds = dict(ours.thresholds)
    return config


def smallest_shape(network: PrunedNetwork) -> AttentionShape:
    """The fewest heads that hold those of every layer and that the stock config accepts."""
    config = network.config
    whole, _ = config.whole_sizes(0)
    least = max(1, most_heads(network)) if config.family.key_heads else whole
    shapes = (config.attention(0, heads) for heads in range(least, whole))
    return next((shape for shape in shapes if config_complaint(network, shape) is None), config.whole(0).attention)


def config_complaint(network: PrunedNetwork, shape: AttentionShape) -> str | None:
    """What the stock config has against heads of this shape, in its own words."""
    try:
        sized_config(network, (), shape)
    except StrictDataclassError as error:
        return " ".join(str(error).split("Error: ")[-1].split())
    return None


def check_pooling(network: PrunedNetwork) -> None:
    """Raises BadInput unless stock heads read what this one reads; the mean of an encoder can be made a layer."""
    config = network.config
    readable = set(config.family.stock_poolings())
    if task_export(config.kind).pools and config.pooling not in readable:
        raise BadInput(
            f"stock heads of {config.backbone['model_type']} need the pooling {' or '.join(sorted(readable))}, "
            f"got {config.pooling}; export to compact."
        )


def check_expressible(network: PrunedNetwork) -> None:
    """Raises BadInput, one line, unless stock layers can have exactly these sizes."""
    config, sizes = network.config, network.config.layers
    if config.embedding_rank is not None:
        raise BadInput(
            f"hf needs one table of word vectors, got one of rank {config.embedding_rank} and its projection; "
            "export to compact, or to hf-padded, which multiplies them out."
        )
    whole, _ = config.whole_sizes(0)
    heads = most_heads(network) if config.family.key_heads else whole
    equal = f"all {whole} heads" if heads == whole else f"equally many heads (here {heads})"
    if any(block.attention is None or block.ffn is None for block in pair_sublayers(network)):
        uneven = next((size for size in sizes if 0 in size), None)
        if uneven is None:
            raise BadInput(
                f"hf needs the first layer of {config.backbone['model_type']}, which differs from the others, got the "
                f"layers {config.places} without it; export to hf-padded or compact."
            )
        refuse("both heads and units in every layer", uneven)
    for size in sizes:
        if size[0] not in (0, heads):
            refuse(f"{equal} in every layer", size)
        if size[1] not in (0, most_units(network)):
            refuse(f"equally many units in every layer, here {most_units(network)}", size)
    against = config_complaint(network, config.attention(0, heads)) if sizes else None
    if against:
        refuse(f"sizes that the stock config accepts ({against.rstrip('.')})", sizes[0])


def refuse(rule: str, size: list[int]) -> None:
    raise BadInput(
        f"hf needs {rule}, got a layer of {size[0]} heads and {size[1]} units; export to hf-padded or compact."
    )
