"""What a network is made of, by role: the modules a probe listens to, and its counts."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class LayerSize:
    """Weights of the linears of one layer, biases and norms not counted; 0 for a role that the layer does not have."""

    heads: int
    """1 where nothing attends."""
    mixing: int
    """Of what mixes tokens: attention, transforms, convolutions, recurrent linears."""
    ffn: int

    @property
    def total(self) -> int:
        return self.mixing + self.ffn


@dataclass(frozen=True)
class Counts:
    """Size of an architecture with its whole vocabulary, whatever a network built for scoring has of it."""

    parameters: int
    nonembedding: int
    attention: int
    ffn: int
    flops: int
    """Multiply-adds times two of one forward pass per token, without embeddings and head, at 64 tokens a row."""
    depth: int
    width: int
    layers: tuple[LayerSize, ...] = ()
    """From the first layer to the last; empty where a space does not tell them."""

    def as_json(self) -> dict[str, int]:
        """The sizes of the whole, as documents have them."""
        return {name: value for name, value in vars(self).items() if name != "layers"}


@dataclass(frozen=True)
class LayerRoles:
    """Where in one layer each role is found; a role the layer does not have is empty."""

    output: nn.Module
    """Gives the hidden state after the layer, batch x time x width."""
    attention: Sequence[nn.Linear] = ()
    """Linears of the operator that mixes tokens: query, key, value, output, or a transform's or convolution's."""
    ffn: Sequence[nn.Linear] = ()
    recurrent: Sequence[nn.Linear] = ()
    pre_activation: nn.Module | None = None
    """The first FFN linear: gives the pre-activation, batch x time x units."""
    activations: Sequence[nn.Module] = ()
    """Give the outputs of the activation function inside the FFN (RNN: inside the cell)."""
    projections: Sequence[nn.Module] = ()
    """Give what the heads work on: query, key and value, or a transform's input; batch x time x width."""
    context: nn.Module | None = None
    """Gives the outputs of all heads side by side, before the output linear; batch x time x width."""
    probabilities: nn.Module | None = None
    """Gives the attention probabilities, batch x heads x time x time."""
    mixed: nn.Module | None = None
    """Gives the hidden state after the token-mixing sub-layer, residual and norm included; batch x time x its width."""
    heads: int = 0


@dataclass(frozen=True)
class Roles:
    """A whole network: what `roles()` of a network that can be probed returns."""

    embeddings: nn.Module
    """Gives the input of the first layer, batch x time x width; input gradients are taken here."""
    layers: Sequence[LayerRoles]
