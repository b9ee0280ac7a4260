"""How a super-network is trained: which sub-networks take part in a step, and what each of them learns from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from archwright.registry import Registry
from archwright.subnet.spec import SubnetSpec

RANDOM_PER_STEP = 2
"""k of the papers: random sub-networks in one step of sandwich, kd and full."""

WHOLE_STEPS = 0.25
"""Share of the steps in which the whole network takes part where it is not the teacher."""


class SubnetUpdate(NamedTuple):
    spec: SubnetSpec
    distil: bool
    """Whether the sub-network also learns from a teacher's answer: the full network's (Equation 2) or a fixed one's."""


@dataclass(frozen=True)
class SubnetDraws:
    """What a strategy may choose from: the two corners, random sub-networks, and those near the current front."""

    largest: SubnetSpec
    smallest: SubnetSpec
    random: Callable[[np.random.Generator, float], SubnetSpec]
    """Random numbers and the progress of training, 0 to 1."""
    near: Callable[[np.random.Generator], SubnetSpec]


def standard(draw: SubnetDraws, rng: np.random.Generator, progress: float) -> list[SubnetUpdate]:
    """The whole network, as in ordinary fine-tuning."""
    return [SubnetUpdate(draw.largest, False)]


def random(draw: SubnetDraws, rng: np.random.Generator, progress: float) -> list[SubnetUpdate]:
    """One random sub-network."""
    return [SubnetUpdate(draw.random(rng, progress), False)]


def random_linear(draw: SubnetDraws, rng: np.random.Generator, progress: float) -> list[SubnetUpdate]:
    """The whole network at first, a random sub-network ever more often (probability rises from 0 to 1)."""
    return [SubnetUpdate(draw.random(rng, progress) if rng.random() < progress else draw.largest, False)]


def sandwich(draw: SubnetDraws, rng: np.random.Generator, progress: float) -> list[SubnetUpdate]:
    """Largest, smallest and k random ones."""
    others = [draw.smallest, *(draw.random(rng, progress) for _ in range(RANDOM_PER_STEP))]
    return [SubnetUpdate(draw.largest, False), *(SubnetUpdate(spec, False) for spec in others)]


def kd(draw: SubnetDraws, rng: np.random.Generator, progress: float) -> list[SubnetUpdate]:
    """The whole network, and k random ones that learn from it."""
    return [
        SubnetUpdate(draw.largest, False),
        *(SubnetUpdate(draw.random(rng, progress), True) for _ in range(RANDOM_PER_STEP)),
    ]


def full(draw: SubnetDraws, rng: np.random.Generator, progress: float) -> list[SubnetUpdate]:
    """Sandwich with in-place distillation: the largest learns from labels, all others from labels and the largest."""
    return [SubnetUpdate(update.spec, place > 0) for place, update in enumerate(sandwich(draw, rng, progress))]


def front(draw: SubnetDraws, rng: np.random.Generator, progress: float) -> list[SubnetUpdate]:
    """Like full, but all random ones but one are drawn near the front of what did well for its size so far."""
    others = [draw.smallest, draw.random(rng, progress), *(draw.near(rng) for _ in range(RANDOM_PER_STEP - 1))]
    return [SubnetUpdate(draw.largest, False), *(SubnetUpdate(spec, True) for spec in others)]


def teacher(draw: SubnetDraws, rng: np.random.Generator, progress: float) -> list[SubnetUpdate]:
    """Smallest and k random ones, all learning from a fixed teacher; the whole network only in one step of four.

    With a fixed teacher nobody learns from the whole network, which costs as much as all others together.
    """
    whole = [draw.largest] if rng.random() < WHOLE_STEPS else []
    others = [draw.smallest, *(draw.random(rng, progress) for _ in range(RANDOM_PER_STEP))]
    return [SubnetUpdate(spec, True) for spec in (*whole, *others)]


Strategy = Callable[[SubnetDraws, np.random.Generator, float], list[SubnetUpdate]]
"""What may be drawn, random numbers and the progress of training (0 to 1) -> the updates of one step."""
STRATEGIES: Registry[Strategy] = Registry(
    "strategy",
    {
        "standard": standard,
        "random": random,
        "random-linear": random_linear,
        "sandwich": sandwich,
        "kd": kd,
        "full": full,
        "front": front,
        "teacher": teacher,
    },
)
