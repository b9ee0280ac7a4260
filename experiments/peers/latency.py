"""Latency of all networks of a comparison, timed in one process by their heads and units per layer.

Every shape is cut out of the same checkpoint and run by the same code, so methods differ by their shapes alone.
"""

import json
from collections.abc import Iterable
from pathlib import Path

Shape = tuple[tuple[int, int], ...]
"""Heads and units of every layer that is left."""
LENGTH = 24
"""Tokens of the one text of a batch."""
ROUNDS = 30


def measure_shapes(shapes: Iterable[Shape], cache: Path) -> dict[Shape, float]:
    """Median milliseconds of each; all are timed again, interleaved, when one of them is new to the cache."""
    wanted = sorted(set(shapes), reverse=True)
    known = {tuple(map(tuple, shape)): value for shape, value in read_cache(cache)}
    if set(wanted) <= set(known):
        return known
    from archwright.data.public_data import resolve_model
    from archwright.networks.load import load_supernet
    from archwright.objectives.latency import measure_latency
    from archwright.subnet.spec import LayerSpec

    model = load_supernet(resolve_model("minilm"), labels=("no", "yes"))
    depth = len(model.config.layers)
    specs = {str(i): tuple(LayerSpec(*layer) for layer in shape) for i, shape in enumerate(wanted)}
    specs = {name: (*spec, *(LayerSpec(0, 0),) * (depth - len(spec))) for name, spec in specs.items()}
    timings = measure_latency(model, specs, batch=1, length=LENGTH, rounds=ROUNDS)
    measured = {shape: timings[str(i)].median for i, shape in enumerate(wanted)}
    cache.write_text(json.dumps(list(measured.items())))
    return measured


def read_cache(cache: Path) -> list[tuple[list[list[int]], float]]:
    return [tuple(entry) for entry in json.loads(cache.read_text())] if cache.exists() else []


def as_shape(layers: Iterable[Iterable[int]]) -> Shape:
    """Without layers of which nothing is left."""
    counts = [tuple(layer) for layer in layers]
    return tuple((heads, units) for heads, units in counts if heads or units)
