"""The words of a search: a space of designs, a candidate from it, what is measured and what is forbidden."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

from archwright.search.choices import Choices, Config


class Space(Protocol):
    """What may be chosen (data), how to build it, and which configs mean the same design."""

    @property
    def choices(self) -> Choices: ...

    def build(self, config: Config) -> Any:
        """A network, or a formula."""

    def canonical(self, config: Config) -> Config:
        """One config for all that describe the same design."""


@dataclass(frozen=True)
class Candidate:
    """A config of a space; what it describes is built when first asked for, and once."""

    space: Space
    config: Config

    @cached_property
    def built(self) -> Any:
        return self.space.build(self.config)


@dataclass(frozen=True)
class Objective:
    """A named measure with a direction."""

    name: str
    measure: Callable[[Candidate], float]
    direction: Literal["minimize", "maximize"] = "minimize"


@dataclass(frozen=True)
class Constraint:
    """A named measure with an upper bound; a candidate above it is never scored."""

    name: str
    measure: Callable[[Candidate], float]
    at_most: float
