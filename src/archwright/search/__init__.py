"""Search: spaces as data, objectives and constraints, samplers, and the loop that joins them. Knows no torch."""

from archwright.search.choices import (
    EPOCHS,
    Bits,
    Choices,
    Config,
    Listed,
    Value,
    crossover,
    enumerate_configs,
    largest,
    middle,
    mutate,
    sample,
    smallest,
)
from archwright.search.encoding import config_of, distributions, encode
from archwright.search.front import front
from archwright.search.loop import EvaluateBatch, ObjectiveValues, search, search_batches
from archwright.search.samplers import SAMPLERS
from archwright.search.samplers.asha import rungs
from archwright.search.samplers.sampler import Bounds
from archwright.search.space import Candidate, Constraint, Objective, Space
from archwright.search.workers import settle_trials

__all__ = [
    "EPOCHS",
    "SAMPLERS",
    "Bits",
    "Bounds",
    "Candidate",
    "Choices",
    "Config",
    "Constraint",
    "EvaluateBatch",
    "Listed",
    "Objective",
    "ObjectiveValues",
    "Space",
    "Value",
    "config_of",
    "crossover",
    "distributions",
    "encode",
    "enumerate_configs",
    "front",
    "largest",
    "middle",
    "mutate",
    "rungs",
    "sample",
    "search",
    "search_batches",
    "settle_trials",
    "smallest",
]
