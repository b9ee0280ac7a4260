"""A rule that proposes configs, as an Optuna sampler: random numbers, first configs, no needless repetition."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from archwright.errors import BadInput
from archwright.search.choices import Choices, Config
from archwright.search.encoding import distributions, encode, key_of, packed_names
from archwright.search.history import Memory, Tried, before

REDRAWS = 50


class Rule:
    """Proposes the next config from what was tried; one instance serves one study."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    def propose(self, tried: Sequence[Tried], rng: np.random.Generator) -> Config:
        """`tried` holds every counting trial so far, in order, also those still running elsewhere."""
        raise NotImplementedError

    def redraw(self, config: Config, tried: Sequence[Tried], rng: np.random.Generator) -> Config:
        """Another proposal when `config` was tried before."""
        return self.propose(tried, rng)


class RuleSampler(BaseSampler):
    """Asks a rule for a whole config per trial; parameters that are no part of the choices are drawn at random.

    Everything random in a trial comes from (seed, index), index being its place among the trials that count.
    """

    def __init__(self, rule: Callable[[Choices], Rule], choices: Choices, seed: int, first: Sequence[Config]) -> None:
        self._rule = rule
        self._choices = choices
        self._seed = seed
        self._first = tuple(first)
        self._space = distributions(choices)
        self._studies: WeakKeyDictionary[Study, tuple[Memory, Rule]] = WeakKeyDictionary()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {name: found for name, found in self._space.items() if not found.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters and, beside them, the packed values under their attribute names."""
        past = before(study, trial.number)
        params, attrs = encode(self._choices, self._config(study, past))
        strangers = [name for name in search_space if name not in params]
        drawn = {name: self._draw(study, trial, name, search_space[name], len(past)) for name in strangers}
        return {**params, **attrs, **drawn}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        index = len(before(study, trial.number))
        return self._draw(study, trial, param_name, param_distribution, index)

    def _config(self, study: Study, past: Sequence[FrozenTrial]) -> Config:
        if len(past) < len(self._first):
            return self._first[len(past)]
        if study not in self._studies:
            self._studies[study] = Memory(self._choices), self._rule(self._choices)
        memory, rule = self._studies[study]
        return _fresh(rule, memory.recall(past, study.directions), np.random.default_rng((self._seed, len(past))))

    def _draw(self, study: Study, trial: FrozenTrial, name: str, found: BaseDistribution, index: int) -> Any:
        rng = np.random.default_rng((self._seed, index, zlib.crc32(name.encode())))
        return RandomSampler(seed=seed_from(rng)).sample_independent(study, trial, name, found)


@dataclass(frozen=True)
class Strategy:
    """A member of SAMPLERS; called with the choices it gives an Optuna sampler."""

    description: str
    rule: Callable[[Choices], Rule]
    packed: bool = True
    """Whether it serves rows of switches that are too long to be parameters one by one."""

    def __call__(self, choices: Choices, *, seed: int, first: Sequence[Config] = ()) -> BaseSampler:
        """`first` are the configs to try before all others, in order."""
        if seed < 0:
            raise BadInput(f"seed must be 0 or larger, got {seed}; choose another seed.")
        if not self.packed and packed_names(choices):
            raise BadInput(self._refusal(choices))
        return RuleSampler(self.rule, choices, seed, first)

    def _refusal(self, choices: Choices) -> str:
        longest = max(getattr(choices[name], "length", 0) for name in packed_names(choices))
        summary = self.description.split(":")[0]
        return f"{summary} cannot model {longest} on/off switches at once; choose another sampler or a smaller space."


def seed_from(rng: np.random.Generator) -> int:
    """A seed for code that takes nothing but an integer."""
    return int(rng.integers(2**31 - 1))


def _fresh(rule: Rule, tried: Sequence[Tried], rng: np.random.Generator) -> Config:
    """A proposal not tried before, or the last of many attempts in a space that is all but used up."""
    known = {one.key for one in tried}
    config = rule.propose(tried, rng)
    for _ in range(REDRAWS):
        if key_of(config) not in known:
            return config
        config = rule.redraw(config, tried, rng)
    return config
