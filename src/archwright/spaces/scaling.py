"""A found architecture made larger: every width times a factor, every layer repeated so many times in its place.

What is chosen per layer stays with its layer. Heads stay as many and become wider, embeddings stay as narrow as they
were, as from W-PCA-Small to W-PCA-Large. The result lies outside the space: a Hugging Face config and no design.
Recurrent cells have no such reading: all of them are three layers of 600 units already.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from archwright.errors import BadInput
from archwright.networks import flexibert, lts_gpt2, nlu
from archwright.networks.roles import Counts
from archwright.spaces import lts_gpt2 as gpt2_space


@dataclass(frozen=True)
class Scaling:
    """What is known of one kind of config."""

    fields: Callable[[Any, int], dict[str, Any]]
    """Those that change, with their new values."""
    counts: Callable[[Any], Counts]
    network: Callable[[Any, torch.Generator], PreTrainedModel]


def scaled_up(plan: PreTrainedConfig, factor: int) -> PreTrainedConfig:
    """So many times as wide and as deep; a whole vocabulary and everything else stay."""
    if isinstance(factor, bool) or not isinstance(factor, int) or factor < 1:
        raise BadInput(f"the factor to scale up by must be a whole number from 1, got {factor!r}; try 2.")
    larger = deepcopy(plan)
    for name, value in scaling_of(plan).fields(plan, factor).items():
        setattr(larger, name, value)
    return larger


def counts_of(plan: PreTrainedConfig) -> Counts:
    """As its space counts."""
    return scaling_of(plan).counts(plan)


def network_of(plan: PreTrainedConfig, *, generator: torch.Generator) -> PreTrainedModel:
    """Untrained, in evaluation mode, as its space builds."""
    return scaling_of(plan).network(plan, generator)


def scaling_of(plan: PreTrainedConfig) -> Scaling:
    if type(plan) not in SCALINGS:
        known = ", ".join(kind.model_type for kind in SCALINGS)
        raise BadInput(f"only {known} networks can be scaled up, got {plan.model_type!r}; leave --scale-up out.")
    return SCALINGS[type(plan)]


def repeated(layers: Iterable[Any], factor: int) -> list[Any]:
    """a, b becomes a, a, b, b: what stood low stays low."""
    return [deepcopy(layer) for layer in layers for _ in range(factor)]


def nlu_fields(plan: nlu.NluConfig, factor: int) -> dict[str, Any]:
    layers = repeated([[block, factor * units] for block, units in plan.layers], factor)
    return {"layers": layers, "hidden_size": factor * plan.hidden_size, "inner_size": factor * plan.inner_size}


def flexibert_fields(plan: flexibert.FlexiBertConfig, factor: int) -> dict[str, Any]:
    wider = [[what, heads, [factor * units for units in widths], *rest] for what, heads, widths, *rest in plan.layers]
    return {"layers": repeated(wider, factor), "hidden_size": factor * plan.hidden_size}


def gpt2_fields(plan: lts_gpt2.LtsGpt2Config, factor: int) -> dict[str, Any]:
    return {
        "d_model": factor * plan.d_model,
        "d_inner": repeated([factor * units for units in plan.d_inner], factor),
        "n_head": repeated(plan.n_head, factor),
        "n_layer": factor * plan.n_layer,
    }


SCALINGS: dict[type[PreTrainedConfig], Scaling] = {
    nlu.NluConfig: Scaling(nlu_fields, nlu.counted, lambda plan, rng: nlu.untrained(plan, generator=rng)),
    flexibert.FlexiBertConfig: Scaling(
        flexibert_fields, flexibert.counted, lambda plan, rng: flexibert.untrained(plan, generator=rng)
    ),
    lts_gpt2.LtsGpt2Config: Scaling(gpt2_fields, gpt2_space.counted, lts_gpt2.untrained),
}
