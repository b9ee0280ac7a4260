"""Multi-objective asynchronous successive halving: most designs are trained shortly, the best of them longer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from archwright.search.choices import EPOCHS, Choices, Config, sample
from archwright.search.encoding import config_key
from archwright.search.front import standing
from archwright.search.history import PastTrial
from archwright.search.samplers.sampler import ProposalRule, Sampler

ETA = 3


def rungs(least: float, most: float, eta: int = ETA) -> tuple[float, ...]:
    """Epochs after which designs are compared: least * eta^k as long as that is below `most`, then `most`."""
    found, epochs = [], least
    while epochs < most:
        found.append(epochs)
        epochs *= eta
    return (*found, most)


class Asha(ProposalRule):
    """MO-ASHA (Schmucker et al. 2021; Klein et al. 2024, D): a trial is one design trained up to one rung's epochs.

    Of the designs told at a rung the best third (1 / eta, rounded down) go on to the next rung, the highest rung
    first; when nobody may go on, a new random design begins at the lowest. Better is: lower rank by non-dominated
    sorting, then more room around it. Nobody waits for a rung to fill, and all there is to know is in the study.
    """

    one_at_a_time = True  # a promotion follows from the history alone: two that draw at once would draw the same

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices)
        epochs: Any = choices[EPOCHS]
        self._rungs: list[Any] = sorted(epochs)

    def propose(self, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        return next(self._promotions(tried), None) or self.opening(sample(self.choices, rng))

    def redraw(self, config: Config, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        return self.opening(sample(self.choices, rng))  # only a new design can be known; a promotion never is

    def opening(self, config: Config) -> Config:
        return {**config, EPOCHS: self._rungs[0]}

    def _promotions(self, tried: Sequence[PastTrial]) -> Iterator[Config]:
        """Designs that may go on, each with its next rung; the furthest first, then the best."""
        higher = set(self._at(self._rungs[-1], tried))
        for rung, following in reversed(list(zip(self._rungs, self._rungs[1:], strict=False))):
            here = self._at(rung, tried)
            yield from ({**here[name].config, EPOCHS: following} for name in leaders(here) if name not in higher)
            higher |= set(here)

    def _at(self, rung: Any, tried: Sequence[PastTrial]) -> dict[str, PastTrial]:
        """The trials of this rung by design, also those still running; the first told one of a design counts."""
        found: dict[str, PastTrial] = {}
        for trial in tried:
            if trial.config[EPOCHS] == rung:
                name = design_of(trial.config)
                if name not in found or not found[name].finished:
                    found[name] = trial
        return found


def leaders(rung: Mapping[str, PastTrial], eta: int = ETA) -> list[str]:
    """The designs in the top 1 / eta of those with losses, best first."""
    scored = [(name, trial.losses) for name, trial in rung.items() if trial.losses is not None]
    if len(scored) < eta:
        return []
    rank, room = standing(np.array([losses for _, losses in scored]))
    return [scored[place][0] for place in np.lexsort((-room, rank))[: len(scored) // eta]]


def design_of(config: Config) -> str:
    """The same text for the same design, however long it was trained."""
    return config_key({name: value for name, value in config.items() if name != EPOCHS})


SAMPLER = Sampler("MO-ASHA: the best third is trained longer; only for standard NAS", Asha, rungs=True)
