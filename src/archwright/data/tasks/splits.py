"""Random splits and random parts of rows, the same for the same seed."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]


def cut(total: int, shares: Mapping[str, float], seed: int) -> dict[str, Positions]:
    """Positions of "train" and of each named share, disjoint, complete and in ascending order."""
    order = np.random.default_rng((seed, 0)).permutation(total)
    sizes = [max(1, round(share * total)) for share in shares.values()]
    *held_out, train = np.split(order, np.cumsum(sizes))
    return {split: np.sort(part) for split, part in zip([*shares, "train"], [*held_out, train], strict=True)}


def part(total: int, wanted: int, rng: np.random.Generator) -> Positions:
    """A random part of all positions in ascending order; with the same rng a larger part contains the smaller."""
    return np.sort(rng.permutation(total)[:wanted])


def split_note(shares: Mapping[str, float], how: str) -> str:
    """How train was cut, in words."""
    percent = "/".join(f"{100 * share:.0f}" for share in [1 - sum(shares.values()), *shares.values()])
    return f"train split {percent} into {', '.join(['train', *shares])} {how}" if shares else ""
