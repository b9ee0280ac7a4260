"""What the best architectures have in common: mean trained score and share of the top per choice of the space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archwright.errors import BadInput
from archwright.statistics.ranks import Values
from archwright.statistics.top_k import best

Row = dict[str, Any]


def xray(configs: Sequence[Mapping[str, Any]], truth: ArrayLike) -> list[Row]:
    """One row per choice and value, in the order of the configs' names, values ascending.

    `n` architectures have the value; `mean` of their trained score; `share` of all architectures that have the choice;
    `top_share` of those among the top 10 % by trained score: above `share` the best favour the value.
    A config without a name (a layer it does not have) is left out there. Configs should be canonical: values that
    have no effect would look like choices.
    """
    values = np.asarray(truth, dtype=np.float64)
    if len(configs) != len(values) or not len(values) or not np.isfinite(values).all():
        raise BadInput(f"one finite score per config: got {len(configs)} configs and scores of shape {values.shape}.")
    top, names = best(values), list(dict.fromkeys(name for config in configs for name in config))
    return [row for name in names for row in of_choice(name, configs, values, top)]


def of_choice(name: str, configs: Sequence[Mapping[str, Any]], truth: Values, top: NDArray[np.bool_]) -> list[Row]:
    """The rows of one choice."""
    having = np.array([name in config for config in configs])
    taken = [config.get(name) for config in configs]
    found = {repr(value): value for value, has in zip(taken, having, strict=True) if has}
    rows = []
    for value in sorted(found.values(), key=ordering):
        here = having & np.array([repr(other) == repr(value) for other in taken])
        row = {"choice": name, "value": value, "n": int(here.sum()), "mean": float(truth[here].mean())}
        rows.append(row | {"share": part(here, having), "top_share": part(here & top, having & top)})
    return rows


def part(some: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:
    """Share of true ones, 0 when there is none to choose from."""
    return float(some.sum() / max(among.sum(), 1))


def ordering(value: Any) -> tuple[str, Any]:
    """Numbers by size, words by letter, never one against the other."""
    return ("", value) if isinstance(value, (int, float)) else (type(value).__name__, str(value))
