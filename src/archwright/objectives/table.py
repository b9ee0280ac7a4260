"""Latency inside a search: predicted from a table of what heads and units cost in a layer, measured once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import Timings, measure_latency
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import LayerAnatomy, LayerSpec, SubnetSpec, sizes

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
class LayerCosts:
    """One kind of layer: layers with the same sizes and operators cost the same."""

    heads: Curve
    units: Curve
    rest: float = 0.0
    """Milliseconds of what stays as long as the layer does."""

    def at(self, heads: int, units: int) -> float:
        return self.heads.at(heads) + self.units.at(units) + (self.rest if heads or units else 0.0)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        curves = [Curve(*(tuple(values[name][key]) for key in ("counts", "costs"))) for name in ("heads", "units")]
        return cls(curves[0], curves[1], values["rest"])


@dataclass(frozen=True)
class LatencyTable:
    """Latency as a sum over the layers; never less for a larger sub-network."""

    base: float
    """Milliseconds without any layer: embeddings and head."""
    kinds: tuple[LayerCosts, ...]
    of: tuple[int, ...]
    """The kind of every layer."""
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
        depth: int | None = None,
    ) -> Self:
        """A table of this network on this device; a timed network has layers of one kind, all alike.

        `depth` is how many layers it has at most, beside the whole network: all of the kind if not said, few where it
        takes long to get one ready.
        """
        full_layers = read_anatomy(model.config).full_layers
        kinds = list(dict.fromkeys(full_layers))
        of = tuple(kinds.index(layer) for layer in full_layers)
        specs = {str(sizes(spec)): spec for spec in timed_specs(kinds, of, depth)}
        timings = timer(model, specs, batch=batch, length=length, rounds=rounds, seed=seed)
        times = np.array([timings[name].median for name in specs])
        base, costs = fit(kinds, of, list(specs.values()), times)
        return cls(base, costs, of, batch, length, timings.drift)

    def predict(self, spec: SubnetSpec) -> float:
        """Milliseconds per batch of the extracted sub-network."""
        rows = zip(self.of, sizes(spec), strict=True)
        return self.base + sum(self.kinds[kind].at(heads, units) for kind, (heads, units) in rows)

    def curves(self, layer: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Milliseconds of 0, 1, 2, ... heads of this layer, and of its units."""
        costs = self.kinds[self.of[layer]]
        return tuple(  # type: ignore[return-value]
            np.interp(np.arange(max((0, *curve.counts)) + 1), (0, *curve.counts), (0.0, *curve.costs))
            for curve in (costs.heads, costs.units)
        )

    def check(
        self,
        model: PrunedNetwork,
        specs: Sequence[SubnetSpec],
        *,
        rounds: int = 30,
        seed: int = 0,
        timer: Timer = measure_latency,
    ) -> list[tuple[float, float]]:
        """Predicted and measured milliseconds of every sub-network."""
        named = {str(place): spec for place, spec in enumerate(specs)}
        timings = timer(model, named, batch=self.batch, length=self.length, rounds=rounds, seed=seed)
        return [(self.predict(spec), timings[name].median) for name, spec in named.items()]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        kinds = tuple(LayerCosts.from_json(kind) for kind in values["kinds"])
        return cls(**{**values, "kinds": kinds, "of": tuple(values["of"])})


def measured_counts(full: int) -> tuple[int, ...]:
    """Where a curve is measured: at one, the price of having the sub-layer at all, and at shares of the whole."""
    return tuple(sorted({1, *(max(1, round(share * full)) for share in SHARES)})) if full else ()


def timed_specs(kinds: Sequence[LayerAnatomy], of: Sequence[int], depth: int | None = None) -> Iterator[SubnetSpec]:
    """The whole network, and for every kind networks that have (at most `depth`) layers of it alone, all alike.

    Those have attention and FFN together, the whole first, or nothing, or attention alone, or FFN alone.
    """
    yield tuple(LayerSpec(kinds[kind].heads, kinds[kind].units) for kind in of)
    for number, layer in enumerate(kinds):
        heads, units = measured_counts(layer.heads), measured_counts(layer.units)
        both = zip(heads[::-1], units[::-1], strict=False)
        here = [place for place, kind in enumerate(of) if kind == number][:depth]
        for pair in [*both, (0, 0), *((count, 0) for count in heads), *((0, count) for count in units)]:
            yield tuple(LayerSpec(*pair) if place in here else LayerSpec(0, 0) for place in range(len(of)))


def fit(
    kinds: Sequence[LayerAnatomy], of: Sequence[int], specs: Sequence[SubnetSpec], times: NDArray[np.float64]
) -> tuple[float, tuple[LayerCosts, ...]]:
    """Base and costs with the least relative error, as sums of steps >= 0: noise makes no larger network faster."""

    def steps(kind: LayerAnatomy, heads: int, units: int) -> NDArray[np.float64]:
        """Which steps of its curves a layer of these sizes has climbed; and whether it is there, if that costs."""
        climbed = [heads >= np.array(measured_counts(kind.heads)), units >= np.array(measured_counts(kind.units))]
        return np.concatenate([*climbed, [bool(heads or units)] * stays(kind)]).astype(float)

    places = [[place for place, kind in enumerate(of) if kind == number] for number in range(len(kinds))]
    blocks = [
        np.array([sum(steps(kind, *sizes(spec)[place]) for place in where) for spec in specs])
        for kind, where in zip(kinds, places, strict=True)
    ]
    matrix = np.concatenate([np.ones((len(times), 1)), *blocks], axis=1) / times[:, None]
    base, *rest = nonnegative(matrix, np.ones(len(times)))
    ends = np.cumsum([block.shape[1] for block in blocks])
    parts = np.split(np.array(rest), ends[:-1])
    return float(base), tuple(costs_of(kind, part) for kind, part in zip(kinds, parts, strict=True))


def stays(kind: LayerAnatomy) -> bool:
    """Whether a layer has something that goes only with the whole layer."""
    return bool(kind.rest.matrices)


def costs_of(kind: LayerAnatomy, steps: NDArray[np.float64]) -> LayerCosts:
    heads, units = measured_counts(kind.heads), measured_counts(kind.units)
    climbed = np.cumsum(steps[: len(heads)]), np.cumsum(steps[len(heads) : len(heads) + len(units)])
    curves = [Curve(at, tuple(costs.tolist())) for at, costs in zip((heads, units), climbed, strict=True)]
    return LayerCosts(curves[0], curves[1], float(steps[-1]) if stays(kind) else 0.0)


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
