"""What a design may cost: counted before anything is built, or timed on the network itself."""

import json
from dataclasses import dataclass, field
from time import thread_time
from typing import Any

import numpy as np
import torch

from archwright.configs import design as do
from archwright.configs.budget import parse_count
from archwright.errors import BadInput
from archwright.networks.roles import Counts
from archwright.objectives.latency import Timing, time_calls
from archwright.search import Bounds, Candidate, Config, Constraint, smallest
from archwright.spaces.architectures import ArchitectureSpace
from archwright.store import ScoreStore, digest

VOCABULARY = 8
"""Tokens of a network that is timed: the table is only looked up in, and the head of its loss is nothing then."""
QUICK, CAREFUL = 5, 30
"""Rounds of timing: for a limit, and for the report."""
PASSES = 2
"""Times that all choices are gone through to find the smallest design."""
VALUES = 16
"""Values of a choice from which on only its ends are counted."""


@dataclass(frozen=True)
class DesignLimits:
    """Most that a design of a space may have; None where there is no limit."""

    space: ArchitectureSpace
    parameters: float | None = None
    flops: float | None = None
    latency_ms: float | None = None
    _counts: dict[str, Counts] = field(default_factory=dict, repr=False)
    """Each design is counted once."""

    @classmethod
    def from_options(cls, space: ArchitectureSpace, options: do.LimitOptions) -> "DesignLimits":
        """As the user gave them; without --max-parameters the limit of the space."""
        given = options.max_parameters
        parameters = space.limit if given is None else parse_count(given, option="--max-parameters")
        flops = None if options.max_flops is None else parse_count(options.max_flops, option="--max-flops")
        return cls(space, parameters, flops, options.max_latency_ms)

    def counts(self, config: Config) -> Counts:
        design = self.space.canonical(config)
        key = json.dumps(design, sort_keys=True)
        if key not in self._counts:
            self._counts[key] = self.space.counts(design)
        return self._counts[key]

    @property
    def of_counts(self) -> dict[str, float]:
        """The limits that need no network, by the name of the count."""
        limits = {"parameters": self.parameters, "flops": self.flops}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def allow(self, config: Config) -> bool:
        counts = self.counts(config)
        return all(getattr(counts, name) <= limit for name, limit in self.of_counts.items())

    def bounds(self) -> Bounds | None:
        """For a sampler; BadInput where not even the smallest design is allowed."""
        if not self.of_counts:
            return None
        smallest_designs = [self.smallest(name) for name in self.of_counts]
        for (name, limit), config in zip(self.of_counts.items(), smallest_designs, strict=True):
            least = getattr(self.counts(config), name)
            if least > limit:
                raise BadInput(
                    f"--max-{name} must be at least {least:,}, the smallest design of {self.space.name}, "
                    f"got {limit:,.0f}."
                )
        inside = next((config for config in smallest_designs if self.allow(config)), None)
        if inside is None:
            raise BadInput("--max-parameters and --max-flops together allow no design; raise one of them.")
        return Bounds(self.allow, inside)

    def smallest(self, name: str) -> Config:
        """The design with the least of a count, choice by choice."""
        choices: Any = self.space.choices
        config = smallest(choices)
        for _ in range(PASSES):
            before = config
            for choice, values in choices.items():
                ends = list(values) if len(values) <= VALUES else [values[0], values[-1]]
                options = [{**config, choice: value} for value in ends]
                config = min(options, key=lambda option: int(getattr(self.counts(option), name)))
            if config == before:
                break
        return config

    def as_json(self) -> dict[str, float | None]:
        return {"parameters": self.parameters, "flops": self.flops, "latency_ms": self.latency_ms}


@dataclass(frozen=True)
class LatencyMeter:
    """Milliseconds of designs, one text of so many tokens on one core; kept, so that a run goes on with the same."""

    space: ArchitectureSpace
    length: int
    known: ScoreStore

    def limit(self, at_most: float) -> Constraint:
        return Constraint("latency_ms", self.median, at_most)

    def median(self, candidate: Candidate) -> float:
        """Timed quickly, once per design."""
        config = self.space.canonical(candidate.config)
        key = digest("latency", repr(self.space), json.dumps(config, sort_keys=True), str(self.length))
        if not self.known.of(key):
            self.known.add(key, {"latency": {"median": self.measure(config, rounds=QUICK).median}})
        return float(self.known.of(key)["latency"]["median"])

    def measure(self, config: Config, *, rounds: int | None = None) -> Timing:
        """Carefully, if no rounds are named."""
        generator = torch.Generator().manual_seed(0)
        network = self.space.network(config, generator=generator, vocabulary=VOCABULARY)
        ids = torch.randint(VOCABULARY, (1, self.length), generator=generator)

        def forward() -> Any:
            with torch.inference_mode():
                return network(ids)

        rng = np.random.default_rng(0)
        return time_calls({"design": forward}, rounds=rounds or CAREFUL, rng=rng, clock=thread_time)["design"]
