"""ELECTRA's generator: the discriminator's design at a quarter of its width."""

import copy
from collections.abc import Callable
from typing import Any

import torch

from archwright.networks import flexibert, nlu
from archwright.networks.flexibert import FlexiBertConfig
from archwright.networks.nlu import NluConfig

SHARE = 4
"""How many times narrower it is, as in ELECTRA-Small."""
FEWEST_HEADS = 2
"""Every operator can work with two."""

Config = FlexiBertConfig | NluConfig


def generator_of(config: Config) -> Config:
    """The same layers with hidden states, FFNs and heads a quarter as many, and the masked tokens as their task.

    Embeddings stay as wide as they are, because both networks share them.
    """
    return DESIGNS[type(config)](config)


def narrow_flexibert(config: FlexiBertConfig) -> FlexiBertConfig:
    layers = [
        [operation, max(FEWEST_HEADS, heads // SHARE), [quarter(width) for width in widths], *rest]
        for operation, heads, widths, *rest in config.layers
    ]
    return changed(config, layers=layers, hidden_size=quarter(config.hidden_size), loss="mlm")


def narrow_nlu(config: NluConfig) -> NluConfig:
    return changed(
        config,
        layers=[[block, quarter(units)] for block, units in config.layers],
        hidden_size=quarter(config.hidden_size),
        inner_size=quarter(config.inner_size),
        heads=quarter(config.heads),
        loss="mlm",
    )


def quarter(number: int) -> int:
    return max(1, number // SHARE)


def changed(config: Any, **values: Any) -> Any:
    copied = copy.deepcopy(config)
    for name, value in values.items():
        setattr(copied, name, value)
    return copied


DESIGNS: dict[type, Callable[[Any], Any]] = {FlexiBertConfig: narrow_flexibert, NluConfig: narrow_nlu}
UNTRAINED: dict[type, Callable[..., Any]] = {FlexiBertConfig: flexibert.untrained, NluConfig: nlu.untrained}


def untrained_generator(config: Config, *, generator: torch.Generator) -> Any:
    """A generator network for a discriminator of this config, in evaluation mode."""
    return UNTRAINED[type(config)](generator_of(config), generator=generator)
