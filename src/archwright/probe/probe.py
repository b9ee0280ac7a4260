"""What was recorded of a network: the only thing a proxy sees."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from archwright.errors import Failed
from archwright.networks.roles import Counts

ROLES = ("output", "pre_activation", "activations", "projections", "context", "probabilities")
"""What modules gave, as far as it is kept."""

Result = TypeVar("Result")

NOISE_LEVELS = (0.1, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class Signal:
    """Output of a module, batch x time x width (probabilities: batch x heads x time x time)."""

    value: torch.Tensor
    gradient: torch.Tensor | None = None
    """Of the loss, where the loss pass was recorded and the loss depends on it."""


@dataclass(frozen=True, eq=False)
class Weight:
    """A parameter, the network's own: not to be changed."""

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
    """What the passes recorded of one network."""

    passes: frozenset[str]
    """Those that were run, or tried."""
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

    def once(self, key: Any, function: "Callable[[Probe], Result]") -> "Result":
        """What the function gives of this probe, computed at most once; a failure is remembered, too."""
        if key not in self.memo:
            try:
                self.memo[key] = function(self)
            except Failed as failure:
                self.memo[key] = failure
        result: Result | Failed = self.memo[key]
        if isinstance(result, Failed):
            raise result
        return result
