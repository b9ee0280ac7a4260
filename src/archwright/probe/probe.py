"""What was recorded of a network: the only thing a proxy sees."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import torch

from archwright.errors import Failed
from archwright.networks.roles import Counts

PASSES: dict[str, str] = {
    "forward": "one forward pass without a graph",
    "loss": "forward and backward pass of the loss: gradients of weights, activations, contexts and hidden states",
    "inputs": "the gradient at the input embeddings alone; part of the loss pass when both are wanted",
    "noise": "the same at embeddings with noise, once per level",
    "synflow": "absolute weights, embeddings of ones, no loss, normalisations left out",
    "hessian": "Hessian times gradient",
}
"""Name of each pass to what it does."""

GRADIENT_FREE = frozenset({"forward"})
"""Passes that run nothing backwards."""

ROLES = ("output", "pre_activation", "activations", "projections", "context", "probabilities")
"""What modules gave, as far as it is kept."""

Found = TypeVar("Found")

NOISE_LEVELS = (0.1, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class Signal:
    """What a module gave, batch x time x width (probabilities: batch x heads x time x time)."""

    value: torch.Tensor
    gradient: torch.Tensor | None = None
    """Of the loss, where the loss pass was recorded and the loss depends on it."""


@dataclass(frozen=True, eq=False)
class Weight:
    """A parameter, the network's own: look, do not touch."""

    value: torch.Tensor
    gradient: torch.Tensor | None = None
    """Of the loss."""
    curvature: torch.Tensor | None = None
    """Hessian of the loss times its gradient, both over the linears of the layers."""
    flow: torch.Tensor | None = None
    """Gradient of the SynFlow output at the absolute weight."""


@dataclass(frozen=True, eq=False)
class Layer:
    """What was recorded of one layer; what it does not have is empty."""

    attention: tuple[Weight, ...]
    ffn: tuple[Weight, ...]
    recurrent: tuple[Weight, ...]
    output: Signal | None
    pre_activation: Signal | None
    ffn_input: torch.Tensor | None
    """What the first FFN linear was given; its weight is `first`."""
    first: torch.Tensor | None
    activations: tuple[Signal, ...]
    projections: tuple[Signal, ...]
    context: Signal | None
    probabilities: Signal | None
    heads: int

    @property
    def linears(self) -> tuple[Weight, ...]:
        return (*self.attention, *self.ffn, *self.recurrent)


@dataclass(frozen=True, eq=False)
class Probe:
    """One look at a network."""

    passes: frozenset[str]
    """Those that were wanted."""
    failures: Mapping[str, str]
    """Passes that did not work on this network, with the reason."""
    counts: Counts | None
    layers: tuple[Layer, ...]
    parameters: tuple[Weight, ...]
    """All of the network, embeddings, normalisations and head included."""
    inputs: torch.Tensor | None
    """Gradient of the loss at the input embeddings, batch x time x width."""
    noisy: Mapping[float, torch.Tensor]
    """The same at embeddings with noise, by level."""
    draw: float | None
    """A number between 0 and 1 that has nothing to do with the network."""
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def linears(self) -> tuple[Weight, ...]:
        """Linears of all layers, by layer."""
        return tuple(linear for layer in self.layers for linear in layer.linears)

    def once(self, key: Any, function: "Callable[[Probe], Found]") -> "Found":
        """What the function gives of this probe, found at most once; a failure is remembered, too."""
        if key not in self.memo:
            self.memo[key] = attempted(function, self)
        found = self.memo[key]
        if isinstance(found, Failed):
            raise found
        result: Found = found
        return result


def attempted(function: Callable[[Probe], Found], probe: Probe) -> Found | Failed:
    try:
        return function(probe)
    except Failed as failure:
        return failure


def shared(function: Callable[[Probe], Found]) -> Callable[[Probe], Found]:
    """An intermediate result that several proxies need, found once per probe."""

    @wraps(function)
    def found(probe: Probe) -> Found:
        return probe.once(function, function)

    return found
