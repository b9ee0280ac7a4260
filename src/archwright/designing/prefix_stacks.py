"""Spaces whose networks share weights: what stands at a place is the same in all designs that begin alike."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import nn

from archwright.networks.nlu import HEADS, block, embeddings
from archwright.networks.nlu.stack import HEAD, drawn
from archwright.networks.roles import LayerRoles, Roles
from archwright.random_streams import generator
from archwright.scoring.request import INITIALS, WEIGHTS, ScoreRequest, tensors
from archwright.search import Config
from archwright.spaces.nlu import NluSpace

Prefix = tuple[str, ...]
"""What the first layers are."""


class Stack(Protocol):
    """All networks of one look: embeddings, and for each place and choice one layer."""

    def words(self, config: Config) -> Prefix:
        """What every layer of this design is, in order."""

    def first(self) -> torch.Tensor:
        """What the first layer is given, batch x time x width."""

    def layer(self, place: int, word: str) -> "OneLayer": ...

    def ends(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """Parameters before the layers, and behind them."""


class OneLayer(nn.Module):
    """A layer as a network of its own, which reads hidden states instead of tokens."""

    def __init__(self, layer: nn.Module, roles: LayerRoles) -> None:
        super().__init__()
        self.entry, self.layer = nn.Identity(), layer
        self._roles = roles

    def roles(self) -> Roles:
        return Roles(self.entry, [self._roles])

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layer(self.entry(hidden))
        return found


class NluStack:
    """Blocks of the NLU space, as `space.network` would have them."""

    def __init__(self, at: ScoreRequest) -> None:
        assert isinstance(at.space, NluSpace)
        self._at, self._space = at, at.space
        self._plan = at.space.plan(at.config, loss=at.loss, vocab_size=at.batch.vocabulary)
        self._seed = generator(at.seed[0], WEIGHTS, at.seed[1]).initial_seed()
        self._embeddings = self._begun(embeddings(self._plan, seed=self._seed))

    def words(self, config: Config) -> Prefix:
        return tuple(config[name] for name in self._space.choices)

    def first(self) -> torch.Tensor:
        with torch.no_grad():
            found: torch.Tensor = self._embeddings(tensors(self._at.batch)["input_ids"])
        return found

    def layer(self, place: int, word: str) -> OneLayer:
        made = block(self._plan, place, word, seed=self._seed)
        return OneLayer(self._begun(made), made.roles())

    def ends(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        head = drawn(HEADS[self._at.loss](self._plan), self._plan, HEAD, seed=self._seed)
        return list(self._embeddings.parameters()), list(self._begun(head).parameters())

    def _begun(self, part: nn.Module) -> nn.Module:
        INITIALS[self._at.initial](part)
        return part


STACKS: dict[type, Callable[[ScoreRequest], Stack]] = {NluSpace: NluStack}
"""Kinds of spaces to their stacks; networks of all other spaces are looked at one by one."""
