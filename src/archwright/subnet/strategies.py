"""How a super-network is trained: which sub-networks take part in a step, and what each of them learns from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from archwright.subnet.spec import SubnetSpec

RANDOM_PER_STEP = 2
"""k of the papers: random sub-networks in one step of sandwich, kd and full."""


class Update(NamedTuple):
    keep: SubnetSpec
    distil: bool
    """Whether the sub-network also learns from the full network's answer (Equation 2)."""


@dataclass(frozen=True)
class Draw:
    """What a strategy may choose from: the two corners, random sub-networks, and those near the current front."""

    largest: SubnetSpec
    smallest: SubnetSpec
    random: Callable[[np.random.Generator], SubnetSpec]
    near: Callable[[np.random.Generator], SubnetSpec]


def standard(draw: Draw, rng: np.random.Generator, progress: float) -> list[Update]:
    """The whole network, as in ordinary fine-tuning."""
    return [Update(draw.largest, False)]


def random(draw: Draw, rng: np.random.Generator, progress: float) -> list[Update]:
    """One random sub-network."""
    return [Update(draw.random(rng), False)]


def random_linear(draw: Draw, rng: np.random.Generator, progress: float) -> list[Update]:
    """The whole network at first, a random sub-network ever more often (probability rises from 0 to 1)."""
    return [Update(draw.random(rng) if rng.random() < progress else draw.largest, False)]


def sandwich(draw: Draw, rng: np.random.Generator, progress: float) -> list[Update]:
    """Largest, smallest and k random ones."""
    others = [draw.smallest, *(draw.random(rng) for _ in range(RANDOM_PER_STEP))]
    return [Update(draw.largest, False), *(Update(keep, False) for keep in others)]


def kd(draw: Draw, rng: np.random.Generator, progress: float) -> list[Update]:
    """The whole network, and k random ones that learn from it."""
    return [Update(draw.largest, False), *(Update(draw.random(rng), True) for _ in range(RANDOM_PER_STEP))]


def full(draw: Draw, rng: np.random.Generator, progress: float) -> list[Update]:
    """Sandwich with in-place distillation: the largest learns from labels, all others from labels and the largest."""
    return [Update(update.keep, place > 0) for place, update in enumerate(sandwich(draw, rng, progress))]


def front(draw: Draw, rng: np.random.Generator, progress: float) -> list[Update]:
    """Like full, but all random ones but one are drawn near the front of what did well for its size so far."""
    others = [draw.smallest, draw.random(rng), *(draw.near(rng) for _ in range(RANDOM_PER_STEP - 1))]
    return [Update(draw.largest, False), *(Update(keep, True) for keep in others)]


Strategy = Callable[[Draw, np.random.Generator, float], list[Update]]
STRATEGIES: dict[str, Strategy] = {
    "standard": standard,
    "random": random,
    "random-linear": random_linear,
    "sandwich": sandwich,
    "kd": kd,
    "full": full,
    "front": front,
}
