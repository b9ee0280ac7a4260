"""What the program must know of a space of whole architectures: one class in one file, listed in `ARCHITECTURES`."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypedDict

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from archwright.errors import BadInput
from archwright.networks.roles import Counts
from archwright.search import Bits, Choices, Config, sample


class LayerSummary(TypedDict):
    """A layer as it is drawn and compared between designs."""

    kind: str
    """What is compared."""
    width: int
    """What is drawn."""
    label: str


class PrefixLayers(Protocol):
    """The parts of all networks of one seed: a layer at a place is the same in all designs that have it there.

    So designs with equal first layers have the same activations behind them, and these need to be computed once.
    """

    embeddings: nn.Module
    """Gives the input of the first layer for token ids."""
    head: nn.Module

    def words(self, config: Config) -> tuple[str, ...]:
        """What every layer of this design is, in order."""

    def layer(self, place: int, word: str) -> Any:
        """A module with `roles()`, called with hidden states, batch x time x width; new at every call."""


@dataclass(frozen=True)
class ArchitectureSpace(ABC):
    """Architectures that can be counted, built untrained, scored, searched and trained.

    A package adds one with an entry point of the group `archwright.spaces` whose object is an instance.
    """

    variant: str = "default"
    """How a config becomes a network, where a space knows several ways: one of `variants`."""

    revision = 1
    """Raise it when the same config and seed give another network: scores that were kept are then computed again."""
    prefix_layers: ClassVar[type[Any] | None] = None
    """Class of its `PrefixLayers`, called with (space, config, seed=, loss=, vocabulary=); None: nothing is shared."""
    has_supernet = False
    """Whether `supernet` gives all designs in one network, for one-shot search."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    def variants(self) -> tuple[str, ...]:
        """The default first."""
        return ("default",)

    def with_variant(self, variant: str | None) -> Self:
        """The space in this variant, the default one for None."""
        name = self.variants[0] if variant is None else variant
        if name not in self.variants:
            raise BadInput(f"--variant must be one of {', '.join(self.variants)}, got {name!r}.")
        return replace(self, variant=name)

    @property
    @abstractmethod
    def losses(self) -> tuple[str, ...]:
        """Names of the losses a network of this space can be scored and trained with, the default first."""

    @property
    @abstractmethod
    def text(self) -> str:
        """How its networks read a text, one of `data.text.kinds`: bert | gpt2 | words."""

    @property
    def batch(self) -> tuple[int, int]:
        """Texts, and tokens of each, that are enough to score its networks with."""
        return 8, 64

    @property
    def limit(self) -> int | None:
        """Parameters a designed network may have, if nobody says otherwise."""
        return None

    @property
    @abstractmethod
    def choices(self) -> Choices: ...

    def check(self, config: Config) -> None:
        """Raises BadInput for a config outside the space: the rule, the value, the way out."""
        for name in sorted({*config, *self.choices}):
            values: Any = self.choices.get(name, ())
            if name not in config or config[name] not in values:
                known = f"one of {', '.join(map(str, values))}" if values else f"left out of a config of {self.name}"
                raise BadInput(f"{name} must be {known}, got {config.get(name)!r}; correct it.")

    def canonical(self, config: Config) -> Config:
        """One config for all that describe the same design; by default no two configs do."""
        return {name: config[name] for name in self.choices}

    def sample(self, rng: np.random.Generator) -> Config:
        """A random config inside the space; by default every choice by itself, each value with the same chance."""
        return sample(self.choices, rng)

    def traits(self, config: Config) -> Config:
        """What a reader would say about it: choices with an effect, or a few counts where these are many."""
        return self.canonical(config)

    @abstractmethod
    def layers(self, config: Config) -> list[LayerSummary]:
        """What a design looks like from layer to layer."""

    def size(self) -> dict[str, int]:
        """How many designs there are: raw, and distinct ones; by default all are distinct."""
        raw = prod(len(values) for values in self.choices.values() if not isinstance(values, Bits))
        return {"raw": raw, "distinct": raw}

    @abstractmethod
    def plan(self, config: Config) -> PreTrainedConfig:
        """The Hugging Face config of a design."""

    def counts(self, config: Config) -> Counts:
        """Exact sizes with the whole vocabulary, without building any weights."""
        return self.plan_counts(self.plan(config))

    @abstractmethod
    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> Any:
        """Untrained network in evaluation mode with the head of this loss; `vocabulary` rows instead of all of them.

        It is a Hugging Face model that also tells its `roles()`, for a probe.
        """

    def build(self, config: Config) -> Any:
        """The network with its whole vocabulary, from seed 0."""
        return self.network(config, generator=torch.Generator().manual_seed(0))

    def check_loss(self, loss: str | None) -> str:
        """The loss, the default one for None; BadInput where networks of the space have no such head."""
        if loss not in (None, *self.losses):
            raise BadInput(f"loss must be one of {', '.join(self.losses)} here, got {loss!r}; take one of these.")
        return loss or self.losses[0]

    @property
    @abstractmethod
    def classes(self) -> tuple[type[PreTrainedModel], ...]:
        """Classes of its networks in a checkpoint: with the head of a loss, then, if there is one, the body alone."""

    @property
    def model_type(self) -> str:
        """What config.json of its networks says."""
        return str(self.classes[0].config_class.model_type)

    @abstractmethod
    def plan_counts(self, plan: Any) -> Counts:
        """Counts of a Hugging Face config, which may lie outside the space."""

    @abstractmethod
    def plan_network(self, plan: Any, *, generator: torch.Generator) -> Any:
        """The untrained network of a Hugging Face config, in evaluation mode."""

    def scaled_fields(self, plan: Any, factor: int) -> Mapping[str, Any] | None:
        """Fields of a plan that change when it is scaled up, with their new values; None: it cannot be."""
        return None

    def scale_up(self, plan: PreTrainedConfig, factor: int) -> PreTrainedConfig:
        """So many times as wide and as deep: every width times the factor, every layer repeated in its place.

        What is chosen per layer stays with its layer. Heads stay as many and become wider, embeddings stay as narrow
        as they were, as from W-PCA-Small to W-PCA-Large. The result lies outside the space.
        """
        if isinstance(factor, bool) or not isinstance(factor, int) or factor < 1:
            raise BadInput(f"the factor to scale up by must be a whole number from 1, got {factor!r}; try 2.")
        fields = self.scaled_fields(plan, factor)
        if fields is None:
            raise BadInput(f"networks of {self.name} cannot be scaled up; leave --scale-up out.")
        return change_plan(plan, fields)

    def generator_fields(self, plan: Any, size: float) -> Mapping[str, Any] | None:
        """Fields of a plan with every width times `size`, for ELECTRA's generator; None: there is no such network."""
        return None

    def generator_plan(self, plan: PreTrainedConfig, size: float = 0.25) -> PreTrainedConfig | None:
        """ELECTRA's generator for this discriminator, by default a quarter as wide, as in ELECTRA-Small.

        The same layers with hidden states, FFNs and heads times `size`, and masked tokens as their task. Embeddings
        stay as wide as they are, because both networks share them.
        """
        fields = self.generator_fields(plan, size)
        return None if fields is None else change_plan(plan, {**fields, "loss": "mlm"})

    def supernet(self, *, generator: torch.Generator, vocabulary: int) -> Any:
        """All designs in one untrained network, of which `networks.nlu.supernet.path` runs one."""
        raise NotImplementedError(self.name)


def change_plan(plan: PreTrainedConfig, fields: Mapping[str, Any]) -> PreTrainedConfig:
    """A copy with these fields changed."""
    changed = deepcopy(plan)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def repeat_layers(layers: list[Any], factor: int) -> list[Any]:
    """a, b becomes a, a, b, b: what stood low stays low."""
    return [deepcopy(layer) for layer in layers for _ in range(factor)]


def narrow(number: int, size: float) -> int:
    """A width or a number of heads times `size`, at least 1."""
    return max(1, round(number * size))


def most_heads(heads: int, *widths: int) -> int:
    """The largest number of heads up to this one that divides the widths."""
    return next(number for number in range(heads, 0, -1) if not any(width % number for width in widths))


def read_configs(file: Path) -> list[Config]:
    """The configs of a file: one, a list, or one per line; of a design.json of `archwright design` its config."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--config must be a readable JSON file, got {file} ({error}).") from error
    try:
        entries = json.loads(text)
    except RecursionError as error:
        raise BadInput(f"--config must be JSON of ordinary depth, {file} is not.") from error
    except json.JSONDecodeError:
        entries = read_lines(text, file)
    configs = [
        entry["config"] if isinstance(entry, dict) and {"schema", "config"} <= set(entry) else entry
        for entry in (entries if isinstance(entries, list) else [entries])
    ]
    if not configs or not all(isinstance(config, dict) for config in configs):
        raise BadInput(f"--config must hold a JSON object, or a list of them, got something else in {file}.")
    return configs


def read_lines(text: str, file: Path) -> list[Any]:
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadInput(f"--config must be JSON, or JSON on every line, {file} is not ({error}).") from error
