"""Search: spaces as data, objectives and limits, samplers, and the loop that joins them. Knows no torch."""

from archwright.search.batch_loop import search_together
from archwright.search.choices import (
    EPOCHS,
    Bits,
    Choices,
    Config,
    Value,
    crossover,
    distinct,
    every,
    largest,
    middle,
    mutate,
    sample,
    smallest,
)
from archwright.search.encoding import config_of, distributions, encode
from archwright.search.front import front
from archwright.search.loop import search
from archwright.search.samplers import SAMPLERS
from archwright.search.samplers.asha import rungs
from archwright.search.samplers.sampler import Bounds
from archwright.search.space import Candidate, Limit, Objective, Space
from archwright.search.workers import revive

__all__ = [
    "EPOCHS",
    "SAMPLERS",
    "Bits",
    "Bounds",
    "Candidate",
    "Choices",
    "Config",
    "Limit",
    "Objective",
    "Space",
    "Value",
    "config_of",
    "crossover",
    "distinct",
    "distributions",
    "encode",
    "every",
    "front",
    "largest",
    "middle",
    "mutate",
    "revive",
    "rungs",
    "sample",
    "search",
    "search_together",
    "smallest",
]
