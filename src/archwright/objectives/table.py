"""Latency inside a search: predicted from a table of what heads and units cost in a layer, measured once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import Timings, measure_latency
from archwright.subnet.anatomy import anatomy
from archwright.subnet.keep import Keep, LayerKeep, sizes

SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)
"""Of all heads or units of a layer: where the table measures, besides a single one."""

Timer = Callable[..., Timings]
"""`measure_latency`, or something with its signature."""


@dataclass(frozen=True)
class Curve:
    """Milliseconds in one layer over the number of heads or units left, linear between what was measured."""

    counts: tuple[int, ...]
    costs: tuple[float, ...]

    def at(self, count: int) -> float:
        """Nothing left costs nothing: the sub-layer is skipped."""
        return float(np.interp(count, (0, *self.counts), (0.0, *self.costs)))


@dataclass(frozen=True)
class LatencyTable:
    """Latency as a sum over the layers; never less for a larger sub-network."""

    base: float
    """Milliseconds without any layer: embeddings and head."""
    heads: Curve
    units: Curve
    batch: int
    length: int
    drift: float | None
    """Of the sentinel while the table was measured."""

    @classmethod
    def measure(
        cls,
        model: PrunedNetwork,
        *,
        batch: int,
        length: int,
        rounds: int = 30,
        seed: int = 0,
        timer: Timer = measure_latency,
    ) -> Self:
        """A table of this network on this device; all layers of a timed network are alike."""
        of = anatomy(model.config)
        heads, units = counts(of.heads), counts(of.units)
        alike = alike_layers(heads, units)
        keeps = {f"{h} heads, {u} units": (LayerKeep(h, u),) * of.layers for h, u in alike}
        timings = timer(model, keeps, batch=batch, length=length, rounds=rounds, seed=seed)
        times = np.array([timings[name].median for name in keeps])
        base, head_costs, unit_costs = fit(alike, times, layers=of.layers, heads=heads, units=units)
        return cls(base, Curve(heads, head_costs), Curve(units, unit_costs), batch, length, timings.drift)

    def predict(self, keep: Keep) -> float:
        """Milliseconds per batch of the extracted sub-network."""
        return self.base + sum(self.heads.at(heads) + self.units.at(units) for heads, units in sizes(keep))

    def check(
        self,
        model: PrunedNetwork,
        keeps: Sequence[Keep],
        *,
        rounds: int = 30,
        seed: int = 0,
        timer: Timer = measure_latency,
    ) -> list[tuple[float, float]]:
        """Predicted and measured milliseconds of every sub-network."""
        named = {str(place): keep for place, keep in enumerate(keeps)}
        timings = timer(model, named, batch=self.batch, length=self.length, rounds=rounds, seed=seed)
        return [(self.predict(keep), timings[name].median) for name, keep in named.items()]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        curves = {
            name: Curve(*(tuple(values[name][field]) for field in ("counts", "costs"))) for name in ("heads", "units")
        }
        return cls(**{**values, **curves})


def counts(full: int) -> tuple[int, ...]:
    """Where a curve is measured: at one, the price of having the sub-layer at all, and at shares of the whole."""
    return tuple(sorted({1, *(max(1, round(share * full)) for share in SHARES)}))


def alike_layers(heads: Sequence[int], units: Sequence[int]) -> list[tuple[int, int]]:
    """Heads and units of each timed network: the whole first, none, attention alone, FFN alone, and both together."""
    both = list(zip(heads[::-1], units[::-1], strict=False))
    return [*both, (0, 0), *((count, 0) for count in heads), *((0, count) for count in units)]


def fit(
    alike: Sequence[tuple[int, int]],
    times: NDArray[np.float64],
    *,
    layers: int,
    heads: tuple[int, ...],
    units: tuple[int, ...],
) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    """Base and costs with the least relative error, as sums of steps >= 0: noise makes no larger network faster."""
    h, u = np.array(alike).T
    steps = layers * np.concatenate([h[:, None] >= np.array(heads), u[:, None] >= np.array(units)], axis=1)
    matrix = np.concatenate([np.ones((len(times), 1)), steps], axis=1) / times[:, None]
    base, *rest = nonnegative(matrix, np.ones(len(times)))
    head_costs, unit_costs = np.cumsum(rest[: len(heads)]), np.cumsum(rest[len(heads) :])
    return float(base), tuple(head_costs.tolist()), tuple(unit_costs.tolist())


def nonnegative(matrix: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares with unknowns >= 0: those that come out negative are set to 0 until none does."""
    solution = np.zeros(matrix.shape[1])
    free = np.ones(len(solution), dtype=bool)
    while free.any():
        solution[free] = np.linalg.lstsq(matrix[:, free], target, rcond=None)[0]
        if (solution >= 0).all():
            break
        free &= solution > 0
        solution[~free] = 0.0
    return solution
