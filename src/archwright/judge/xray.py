"""What the best architectures have in common: mean trained score and share of the top per choice of the space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from archwright.errors import BadInput
from archwright.judge.top import best


@dataclass(frozen=True)
class Choice:
    """One value of one choice, over the architectures that have it."""

    choice: str
    value: Any
    n: int
    mean: float
    """Of their trained score."""
    share: float
    """Of all architectures that have the choice, 0 to 1."""
    top_share: float
    """Of the top 10 % by trained score that have the choice: above `share` it is favoured; 0 when there is none."""


def xray(configs: Sequence[Mapping[str, Any]], truth: ArrayLike) -> list[Choice]:
    """One row per choice and value, in the order of the configs' names, values ascending.

    A config without a name (a layer it does not have) is left out there. Configs should be canonical: values that
    have no effect would look like choices.
    """
    values = np.asarray(truth, dtype=np.float64)
    if len(configs) != len(values) or not len(values) or not np.isfinite(values).all():
        raise BadInput(f"one finite score per config: got {len(configs)} configs and scores of shape {values.shape}.")
    top, names = best(values), list(dict.fromkeys(name for config in configs for name in config))
    return [row for name in names for row in of_choice(name, configs, values, top)]


def of_choice(name: str, configs: Sequence[Mapping[str, Any]], truth: Any, top: Any) -> list[Choice]:
    """The rows of one choice."""
    having = np.array([name in config for config in configs])
    taken = [config.get(name) for config in configs]
    found = {repr(value): value for value, has in zip(taken, having, strict=True) if has}
    rows = []
    for value in sorted(found.values(), key=ordering):
        here = having & np.array([other == value for other in taken])
        shares = [float((here & among).sum() / max((having & among).sum(), 1)) for among in (np.ones_like(top), top)]
        rows.append(Choice(name, value, int(here.sum()), float(truth[here].mean()), *shares))
    return rows


def ordering(value: Any) -> tuple[str, Any]:
    """Numbers by size, words by letter, never one against the other."""
    return ("", value) if isinstance(value, (int, float)) else (type(value).__name__, str(value))
