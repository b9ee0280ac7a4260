"""A rule that proposes configs, as an Optuna sampler: random numbers, first configs, no needless repetition."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from archwright.errors import BadInput
from archwright.search.choices import EPOCHS, Choices, Config
from archwright.search.encoding import config_key, distributions, encode, is_complete, packed_names
from archwright.search.heartbeat import WORKER, has_ended
from archwright.search.history import PastTrial, TrialHistory, trials_before

REDRAWS = 50
DRAW_SECONDS, POLL_SECONDS = 10.0, 0.02
NEEDS_EPOCHS = (
    "chooses how many epochs each sub-network is trained for, and with weight sharing nothing is trained per trial; "
    "it needs standard NAS (--method standard), or choose another sampler."
)


class ProposalRule:
    """Proposes the next config from what was tried; one instance serves one study."""

    one_at_a_time: ClassVar[bool] = False
    """Whether it must know what all earlier trials draw, also those that are being drawn at this moment."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    def propose(self, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        """`tried` holds every counting trial so far, in order, also those still running elsewhere."""
        raise NotImplementedError

    def opening(self, config: Config) -> Config:
        """One of the first configs, as this rule begins with it."""
        return config

    def redraw(self, config: Config, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        """Another proposal when `config` was tried before."""
        return self.propose(tried, rng)


@dataclass(frozen=True)
class Bounds:
    """Cheap limits that a proposal must keep: one that does not is drawn again instead of being tried."""

    allowed: Callable[[Config], bool]
    within: Config
    """One that is allowed. Where drawing again does not help, a proposal takes over its values one by one."""

    def repair(self, config: Config, rng: np.random.Generator) -> Config:
        for name in rng.permutation(list(config)):
            if self.allowed(config):
                return config
            config = {**config, str(name): self.within[str(name)]}
        return config


class RuleSampler(BaseSampler):
    """Asks a rule for a whole config per trial; parameters that are no part of the choices are drawn at random.

    Everything random in a trial comes from (seed, index), index being its place among the trials that count.
    """

    def __init__(
        self,
        rule: Callable[[Choices], ProposalRule],
        choices: Choices,
        seed: int,
        first: Sequence[Config],
        *,
        bounds: Bounds | None = None,
        repeats: bool = False,
    ) -> None:
        self._rule = rule
        self._choices = choices
        self._seed = seed
        self._first = tuple(first)
        self._bounds = bounds
        self._repeats = repeats
        self._space = distributions(choices)
        self._studies: WeakKeyDictionary[Study, tuple[TrialHistory, ProposalRule]] = WeakKeyDictionary()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {name: found for name, found in self._space.items() if not found.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters and, beside them, the packed values under their attribute names."""
        memory, rule = self._history_and_rule(study)
        if rule.one_at_a_time:
            wait_for_draws(study, trial.number, self._choices)
        past = trials_before(study, trial.number)
        params, attrs = encode(self._choices, self._config(memory.recall(past, study.directions), rule, len(past)))
        strangers = [name for name in search_space if name not in params]
        drawn = {name: self._draw(study, trial, name, search_space[name], len(past)) for name in strangers}
        return {**params, **attrs, **drawn}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        index = len(trials_before(study, trial.number))
        return self._draw(study, trial, param_name, param_distribution, index)

    def _history_and_rule(self, study: Study) -> tuple[TrialHistory, ProposalRule]:
        if study not in self._studies:
            self._studies[study] = TrialHistory(self._choices), self._rule(self._choices)
        return self._studies[study]

    def _config(self, tried: Sequence[PastTrial], rule: ProposalRule, index: int) -> Config:
        if index < len(self._first):
            return rule.opening(self._first[index])
        rng, bounds = np.random.default_rng((self._seed, index)), self._bounds
        known = set() if self._repeats else {trial.key for trial in tried}
        config = rule.propose(tried, rng)
        for _ in range(REDRAWS):  # a new one within bounds, or the last of many attempts where next to none is
            if (bounds is None or bounds.allowed(config)) and config_key(config) not in known:
                break
            config = rule.redraw(config, tried, rng)
        return config if bounds is None else bounds.repair(config, rng)

    def _draw(self, study: Study, trial: FrozenTrial, name: str, found: BaseDistribution, index: int) -> Any:
        rng = np.random.default_rng((self._seed, index, zlib.crc32(name.encode())))
        return RandomSampler(seed=seed_from(rng)).sample_independent(study, trial, name, found)


@dataclass(frozen=True)
class Sampler:
    """A member of SAMPLERS; called with the choices it gives an Optuna sampler."""

    description: str
    rule: Callable[..., ProposalRule]
    """Called with the choices, and with the population where `together`."""
    packed: bool = True
    """Whether it serves rows of switches that are too long to be parameters one by one."""
    rungs: bool = False
    """Whether it decides how long a design is trained; with all others every design is trained to the end."""
    together: bool = False
    """Whether a whole population may be asked for before any of it is told: what comes of it matters to later ones."""

    def __call__(
        self,
        choices: Choices,
        *,
        seed: int,
        first: Sequence[Config] = (),
        population: int | None = None,
        bounds: Bounds | None = None,
        repeats: bool = False,
    ) -> BaseSampler:
        """`first` are the configs to try before all others, in order; `repeats` lets a rule propose one again.

        `population` is the size of a generation, for rules that have generations.
        """
        if seed < 0:
            raise BadInput(f"seed must be 0 or larger, got {seed}; choose another seed.")
        name, packed = self.description.split(":")[0], packed_names(choices)
        if packed and not self.packed:
            switches = max(getattr(choices[choice], "length", 0) for choice in packed)
            way = "choose another sampler or a smaller space"
            raise BadInput(f"{name} cannot model {switches} on/off switches at once; {way}.")
        if self.rungs and EPOCHS not in choices:
            raise BadInput(f"{name} {NEEDS_EPOCHS}")
        rule = partial(self.rule, population=population) if self.together else self.rule
        return RuleSampler(rule, choices, seed, first, bounds=bounds, repeats=repeats)

    def epochs(self, rungs: Sequence[float]) -> Sequence[float]:
        """Those of the ascending rungs that this sampler may choose from: all, or only the last."""
        return rungs if self.rungs else rungs[-1:]


def wait_for_draws(study: Study, number: int, choices: Choices) -> None:
    """Waits until all earlier trials of living workers have their whole config; a draw takes milliseconds.

    A worker of another machine that died while drawing cannot be told from a slow one: then the wait ends by itself,
    and at worst a config is tried twice.
    """

    def is_drawing(trial: FrozenTrial) -> bool:
        running = trial.state is TrialState.RUNNING and WORKER in trial.user_attrs
        return running and not is_complete(choices, trial) and not has_ended(trial)

    until = time.monotonic() + DRAW_SECONDS
    while time.monotonic() < until and any(map(is_drawing, trials_before(study, number))):
        time.sleep(POLL_SECONDS)


def seed_from(rng: np.random.Generator) -> int:
    """A seed for code that takes nothing but an integer."""
    return int(rng.integers(2**31 - 1))
