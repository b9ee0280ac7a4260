"""A space: BERT encoders whose layers are all alike; depth, width and FFN width can be chosen."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from archwright.networks.nlu.config import NluConfig, nlu_counts
from archwright.networks.nlu.network import NluModel, NluNetwork, build_nlu
from archwright.networks.roles import Counts
from archwright.search import Choices, Config
from archwright.spaces.architectures import ArchitectureSpace, LayerSummary


@dataclass(frozen=True)
class EvenEncoders(ArchitectureSpace):
    """BERT encoders whose layers are all alike"""

    name = "even-encoder"
    text = "bert"
    losses = ("mlm", "electra")
    classes = (NluNetwork, NluModel)
    choices: ClassVar[Choices] = {"depth": (1, 2, 3, 4, 6), "width": (48, 96, 192), "widening": (1, 2, 4)}

    def layers(self, config: Config) -> list[LayerSummary]:
        units = config["widening"] * config["width"]
        return [LayerSummary(kind="base", width=units, label=f"base {units}")] * config["depth"]

    def plan(self, config: Config, **fields: Any) -> NluConfig:
        self.check(config)
        blocks = [[layer["kind"], layer["width"]] for layer in self.layers(config)]
        return NluConfig(blocks, hidden_size=config["width"], **fields)

    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> NluNetwork:
        rows = {} if vocabulary is None else {"vocab_size": vocabulary}
        return self.plan_network(self.plan(config, loss=self.check_loss(loss), **rows), generator=generator)

    def plan_counts(self, plan: NluConfig) -> Counts:
        return nlu_counts(plan)

    def plan_network(self, plan: NluConfig, *, generator: torch.Generator) -> NluNetwork:
        return build_nlu(plan, generator=generator)


EVEN_ENCODER = EvenEncoders()
