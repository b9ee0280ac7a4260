"""ELECTRA's generator: the discriminator's design at a share of its width."""

import copy
from collections.abc import Callable
from typing import Any

import torch

from archwright.networks import flexibert, nlu
from archwright.networks.flexibert import FlexiBertConfig
from archwright.networks.nlu import NluConfig

QUARTER = 0.25
"""As in ELECTRA-Small."""
FEWEST_HEADS = 2
"""Every operator can work with two: a convolution takes half of them."""

Config = FlexiBertConfig | NluConfig


def generator_of(config: Config, size: float = QUARTER) -> Config:
    """The same layers with hidden states, FFNs and heads times `size`, and the masked tokens as their task.

    Embeddings stay as wide as they are, because both networks share them.
    """
    return DESIGNS[type(config)](config, size)


def narrow_flexibert(config: FlexiBertConfig, size: float) -> FlexiBertConfig:
    width = part(config.hidden_size, size)
    layers = [
        [operation, fitting(max(FEWEST_HEADS, part(heads, size)), width), [part(u, size) for u in widths], *rest]
        for operation, heads, widths, *rest in config.layers
    ]
    return changed(config, layers=layers, hidden_size=width, loss="mlm")


def narrow_nlu(config: NluConfig, size: float) -> NluConfig:
    width, inner = part(config.hidden_size, size), part(config.inner_size, size)
    layers = [[block, part(units, size)] for block, units in config.layers]
    heads = fitting(part(config.heads, size), width, inner)
    return changed(config, layers=layers, hidden_size=width, inner_size=inner, heads=heads, loss="mlm")


def part(number: int, size: float) -> int:
    return max(1, round(number * size))


def fitting(heads: int, *widths: int) -> int:
    """The largest number of heads up to this one that divides the widths."""
    return next(number for number in range(heads, 0, -1) if not any(width % number for width in widths))


def changed(config: Any, **values: Any) -> Any:
    copied = copy.deepcopy(config)
    for name, value in values.items():
        setattr(copied, name, value)
    return copied


DESIGNS: dict[type, Callable[[Any, float], Any]] = {FlexiBertConfig: narrow_flexibert, NluConfig: narrow_nlu}
UNTRAINED: dict[type, Callable[..., Any]] = {FlexiBertConfig: flexibert.untrained, NluConfig: nlu.untrained}


def untrained_generator(config: Config, *, generator: torch.Generator, size: float = QUARTER) -> Any:
    """A generator network for a discriminator of this config, in evaluation mode."""
    return UNTRAINED[type(config)](generator_of(config, size), generator=generator)
