"""What a design may cost: counted before anything is built, or timed on the network itself."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from time import thread_time
from typing import Any

import numpy as np
import torch

from archwright.configs import design as do
from archwright.configs.budget import parse_count
from archwright.errors import BadInput
from archwright.networks.roles import Counts
from archwright.objectives.latency import Timing, time_interleaved
from archwright.search import Bounds, Candidate, Config, Limit, smallest
from archwright.spaces.architectures import ArchitectureSpace
from archwright.store import Scores, digest

VOCABULARY = 8
"""Tokens of a network that is timed: the table is only looked up in, and the head of its loss is nothing then."""
QUICK, CAREFUL = 5, 30
"""Rounds of timing: for a limit, and for the report."""
PASSES = 2
"""Times that all choices are gone through to find the smallest design."""


@dataclass(frozen=True)
class Counting:
    """Counts of designs, each counted once."""

    space: ArchitectureSpace
    known: dict[str, Counts] = field(default_factory=dict)

    def of(self, config: Config) -> Counts:
        design = self.space.canonical(config)
        key = json.dumps(design, sort_keys=True)
        if key not in self.known:
            self.known[key] = self.space.counts(design)
        return self.known[key]


@dataclass(frozen=True)
class Ceilings:
    """Most that a design may have; None where there is no limit."""

    counting: Counting
    parameters: float | None
    flops: float | None
    latency_ms: float | None

    @property
    def counted(self) -> dict[str, float]:
        """Those that need no network, by the name of the count."""
        found = {"parameters": self.parameters, "flops": self.flops}
        return {name: limit for name, limit in found.items() if limit is not None}

    def allow(self, config: Config) -> bool:
        counts = self.counting.of(config)
        return all(getattr(counts, name) <= limit for name, limit in self.counted.items())

    def bounds(self) -> Bounds | None:
        """For a sampler; BadInput where not even the smallest design is allowed."""
        if not self.counted:
            return None
        within = [smallest_by(self.counting, name) for name in self.counted]
        for name, config in zip(self.counted, within, strict=True):
            self._check(name, config)
        inside = next((config for config in within if self.allow(config)), None)
        if inside is None:
            raise BadInput("--max-parameters and --max-flops together allow no design; raise one of them.")
        return Bounds(self.allow, inside)

    def _check(self, name: str, config: Config) -> None:
        least = getattr(self.counting.of(config), name)
        if least > self.counted[name]:
            raise BadInput(
                f"--max-{name} must be at least {least:,}, the smallest design of {self.counting.space.name}, "
                f"got {self.counted[name]:,.0f}."
            )

    def as_json(self) -> dict[str, float | None]:
        return {"parameters": self.parameters, "flops": self.flops, "latency_ms": self.latency_ms}


def ceilings_of(space: ArchitectureSpace, limits: do.LimitOptions) -> Ceilings:
    """As the user gave them; without --max-parameters the limit of the space."""
    usual = getattr(space, "limit", None)
    parameters = (
        usual if limits.max_parameters is None else parse_count(limits.max_parameters, option="--max-parameters")
    )
    flops = None if limits.max_flops is None else parse_count(limits.max_flops, option="--max-flops")
    if limits.max_latency_ms is not None and not limits.max_latency_ms > 0:
        raise BadInput(f"--max-latency-ms must be above 0, got {limits.max_latency_ms}.")
    return Ceilings(Counting(space), parameters, flops, limits.max_latency_ms)


def smallest_by(counting: Counting, name: str) -> Config:
    """The design with the least of a count, choice by choice."""
    choices = counting.space.choices
    config = smallest(choices)
    for _ in range(PASSES):
        before = config
        for choice, values in choices.items():
            options = [{**config, choice: value} for value in few(values)]
            config = min(options, key=lambda option: int(getattr(counting.of(option), name)))
        if config == before:
            break
    return config


def few(values: Any) -> list[Any]:
    """All of a short list, both ends of a long one."""
    return list(values) if len(values) <= VALUES else [values[0], values[-1]]


VALUES = 16
"""Values of a choice from which on only its ends are counted."""


@dataclass(frozen=True)
class Clock:
    """Milliseconds of designs, one text of so many tokens on one core; kept, so that a run goes on with the same."""

    space: ArchitectureSpace
    length: int
    known: Scores

    def limit(self, at_most: float) -> Limit:
        return Limit("latency_ms", lambda candidate: self.quick(candidate), at_most)

    def quick(self, candidate: Candidate) -> float:
        config = self.space.canonical(candidate.config)
        key = digest("latency", repr(self.space), json.dumps(config, sort_keys=True), str(self.length))
        if not self.known.of(key):
            self.known.add(key, {"latency": {"median": self.timed(config, rounds=QUICK).median}})
        return float(self.known.of(key)["latency"]["median"])

    def timed(self, config: Config, *, rounds: int = 0) -> Timing:
        """Carefully, if no rounds are named."""
        call = forward(self.space, config, self.length)
        timings = time_interleaved(
            {"design": call}, rounds=rounds or CAREFUL, rng=np.random.default_rng(0), clock=thread_time
        )
        return timings["design"]


def forward(space: ArchitectureSpace, config: Config, length: int) -> Callable[[], Any]:
    generator = torch.Generator().manual_seed(0)
    network = space.network(config, generator=generator, vocabulary=VOCABULARY)
    ids = torch.randint(VOCABULARY, (1, length), generator=generator)

    def call() -> Any:
        with torch.inference_mode():
            return network(ids)

    return call
