"""The anatomy of a super-network, read off a network without weights."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace

import torch
from torch import nn
from transformers.initialization import no_init_weights

from archwright.networks.pruned import PlacedLayer, PrunedConfig, PrunedNetwork
from archwright.subnet.spec import Anatomy, LayerAnatomy, OutputHead, PrunableCost, WeightCount
from archwright.tasks import TASK_KINDS

Named = Mapping[str, torch.Tensor]


def read_anatomy(config: PrunedConfig) -> Anatomy:
    """The numbers of the *unpruned* network that `config` describes."""
    network, family = whole_network(config), config.family
    root = f"{family.layers}."
    outside = {name: tensor for name, tensor in network.backbone.named_parameters() if not name.startswith(root)}
    # what is outside of the layers are embeddings and, where norms come first, the norm after the last layer
    embedded = {name: p for name, p in outside.items() if not family.norms_first or within(name, family.embeddings)}
    named = network.backbone.named_modules()
    projections = [m for name, m in named if isinstance(m, nn.Linear) and not name.startswith(root)]
    labels, output_head = TASK_KINDS[config.kind].outputs.load()(config, len(outside) - len(embedded))
    return Anatomy(
        full_layers=tuple(layer_anatomy(placed, network.config) for placed in network.placed_layers()),
        width=config.stream_width,
        labels=labels,
        embedding=cost(embedded.values()),
        projection=sum(linear.weight.numel() for linear in projections),
        output_head=output_head,
        shared_layer=family.shared_layer,
    )


def whole_network(config: PrunedConfig) -> PrunedNetwork:
    """The unpruned network, without head and without memory for its weights."""
    whole = copy.copy(config)
    whole.places = list(range(config.depth))
    whole.layers = [config.whole_sizes(place) for place in whole.places]
    with torch.device("meta"), no_init_weights():
        return PrunedNetwork(whole)


def layer_anatomy(placed: PlacedLayer, config: PrunedConfig) -> LayerAnatomy:
    """Costs of one layer: what its heads take with them, what its units do, and the rest."""
    parts, weights = placed.parts, dict(placed.layer.named_parameters())
    attention = {name: tensor for name, tensor in weights.items() if within(name, parts.without_attention)}
    ffn = {name: tensor for name, tensor in weights.items() if within(name, parts.without_ffn)}
    rest = [tensor for name, tensor in weights.items() if name not in attention and name not in ffn]
    writers = (*parts.query_writers, *(parts.key_writers if config.heads_go_by.takes_keys else ()))
    return LayerAnatomy(
        heads=placed.heads,
        units=placed.units,
        attention=prunable_cost(attention, parts.mix, writers, placed.heads),
        ffn=prunable_cost(ffn, parts.down, parts.unit_writers, placed.units),
        features=placed.shape.inner // placed.heads if placed.heads else 0,
        rest=cost(rest),
        mixing=config.whole(placed.place).mixing,
        relative=relative_cost(config, placed),
    )


def relative_cost(config: PrunedConfig, placed: PlacedLayer) -> tuple[int, int]:
    """Multiply-adds of one head with relative positions, per text and per token, where the layer has such scores.

    The vectors of positions go through their linears once for a text. Linears of their own are among those that count
    for every token: that is taken back.
    """
    rows, kinds, projections, own = config.whole(placed.place).relative
    weights = projections * config.stream_width * placed.shape.size
    return rows * weights, rows * kinds * placed.shape.size - (weights if own else 0)


def prunable_cost(weights: Named, reader: str, writers: Iterable[str], count: int) -> PrunableCost:
    """The cost of each of so many heads or units, and of what goes with the last of them.

    With each of them goes a share of the linears that write it and of the weight that reads it.
    """
    shares = {f"{reader}.weight", *(f"{path}.{leaf}" for path in writers for leaf in ("weight", "bias"))}
    shared = cost(tensor for name, tensor in weights.items() if name in shares)
    each = WeightCount(shared.matrices // max(1, count), shared.vectors // max(1, count))
    return PrunableCost(each, cost(tensor for name, tensor in weights.items() if name not in shares))


def within(name: str, paths: Iterable[str]) -> bool:
    """Whether a parameter belongs to a module at one of these paths."""
    return any(name.startswith(f"{path}.") for path in paths)


def cost(weights: Iterable[torch.Tensor]) -> WeightCount:
    tensors = list(weights)
    vectors = sum(tensor.numel() for tensor in tensors if tensor.dim() < 2)
    return WeightCount(sum(tensor.numel() for tensor in tensors) - vectors, vectors)


def classification_outputs(config: PrunedConfig, norm: int) -> tuple[int, OutputHead]:
    """Number of outputs and shape of the head, with so many vectors of a norm after the last layer; as those below."""
    shape = config.family.head_shape(config.stock())
    dense = bool(shape.activation)
    return config.num_labels, OutputHead(norm + shape.norms, dense, dense, dense_bias=shape.dense_bias)


def score_outputs(config: PrunedConfig, norm: int) -> tuple[int, OutputHead]:
    return 1, classification_outputs(config, norm)[1]


def no_outputs(config: PrunedConfig, norm: int) -> tuple[int, OutputHead]:
    return 0, OutputHead(norm=norm, dense=False, bias=False)


def span_outputs(config: PrunedConfig, norm: int) -> tuple[int, OutputHead]:
    if config.family.token_head:
        return 2, replace(classification_outputs(config, norm)[1], per_token=True)
    return 2, OutputHead(norm=norm, dense=False, per_token=True)


def tag_outputs(config: PrunedConfig, norm: int) -> tuple[int, OutputHead]:
    return config.num_labels, span_outputs(config, norm)[1]


def token_outputs(config: PrunedConfig, norm: int) -> tuple[int, OutputHead]:
    rows = config.backbone["vocab_size"]
    return 0, OutputHead(norm=norm, dense=False, bias=False, table=rows, tied=config.tie_word_embeddings)
