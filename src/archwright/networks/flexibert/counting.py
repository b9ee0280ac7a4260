"""Sizes of a FlexiBERT network, read off a network without weights."""

from collections.abc import Iterable

import torch
from torch import nn
from transformers.initialization import no_init_weights

from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.networks.flexibert.layers import FlexiBertLayer
from archwright.networks.flexibert.network import FlexiBertModel
from archwright.networks.roles import Counts

TOKENS = 64
"""Length of a row for which operations are counted."""


def flexibert_counts(config: FlexiBertConfig) -> Counts:
    """Sizes without the head of the loss; the lookup tables are what does not count as non-embedding.

    A convolution's depthwise kernel counts as attention, norms count as neither attention nor FFN.
    """
    with torch.device("meta"), no_init_weights():
        encoder = FlexiBertModel(config)
    tables = [module for module in encoder.embeddings.modules() if isinstance(module, nn.Embedding)]
    total, layers = numbers([encoder]), list(encoder.layers)
    return Counts(
        parameters=total,
        nonembedding=total - numbers(tables),
        attention=sum(numbers([layer.mixer]) + numbers(layer.mixed.linears) for layer in layers),
        ffn=sum(numbers(layer.ffn.linears) for layer in layers),
        flops=sum(operations(layer) for layer in layers),
        depth=len(layers),
        width=config.hidden_size,
    )


def numbers(modules: Iterable[nn.Module]) -> int:
    return sum(weight.numel() for module in modules for weight in module.parameters())


def operations(layer: FlexiBertLayer) -> int:
    """Per token: two for each number of a linear or convolution but its bias, and those of the operator itself."""
    kernels = [module for module in layer.modules() if isinstance(module, nn.Linear | nn.Conv1d)]
    return round(2 * (sum(module.weight.numel() for module in kernels) + layer.mixer.products(TOKENS)))
