"""What a space of whole architectures offers beside `choices`, `build` and `canonical`."""

from typing import Protocol

import numpy as np
import torch
from transformers import PreTrainedConfig

from archwright.networks.roles import Counts, Roled
from archwright.search import Config, Space


class ArchitectureSpace(Space, Protocol):
    """Architectures that can be counted, built untrained and scored."""

    @property
    def name(self) -> str: ...

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the losses a network of this space can be scored with, the default first."""

    @property
    def text(self) -> str:
        """Name of the tokens its networks read: one of data.TEXTS."""

    @property
    def batch(self) -> tuple[int, int]:
        """Texts, and tokens of each, that are enough to look at its networks with."""

    def check(self, config: Config) -> None:
        """Raises BadInput for a config outside the space: the rule, the value, the way out."""

    def plan(self, config: Config) -> PreTrainedConfig:
        """The Hugging Face config of a design."""

    def counts(self, config: Config) -> Counts:
        """Exact sizes with the whole vocabulary, without building any weights."""

    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> Roled:
        """Untrained network in evaluation mode with the head of this loss; `vocabulary` rows instead of all of them."""

    def sample(self, rng: np.random.Generator) -> Config:
        """A random config inside the space."""

    def traits(self, config: Config) -> Config:
        """What a reader would say about it: choices with an effect, or a few counts where these are many."""

    def size(self) -> dict[str, int]:
        """How many designs there are: raw, and distinct ones."""
