"""Scores of many designs of one space from layer to layer: a beginning that was seen before is not run again.

Two designs that begin with the same blocks have the same hidden state there, because blocks share their weights. Kept
are, by the blocks up to a layer: what that layer contributes to each score, for good, for it is a few numbers; and the
hidden state behind it, as long as there is room. The scores are those of `look`, which runs whole networks.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from time import process_time
from typing import Generic, TypeVar

import torch

from archwright.designing.layer_terms import LAYERWISE, Layerwise, Terms
from archwright.designing.prefix_stacks import STACKS, OneLayer, Prefix, Stack
from archwright.probe import Layer, Probe, Signal, Weight, record
from archwright.proxies import Unscored, passes_of, roles_of
from archwright.proxies.pca import Factor, factor_of
from archwright.random_streams import generator
from archwright.scoring.request import NOISE, ScoreRequest, ScoreResult, chosen_proxies
from archwright.store import digest

MEGABYTE = 1 << 20
STATES, LAYERS = 512 * MEGABYTE, 640 * MEGABYTE
"""Most memory of hidden states, and of weights, that a process keeps: about all blocks of nlu-small."""
DEEP = 0.75
"""Share of the layers up to which hidden states are kept: a child seldom has all but the last blocks of its parent."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Measure = Callable[[str], float]
"""Score by the name of a proxy."""


class Kept(Generic[Key, Value]):
    """What was asked for last, up to so many bytes."""

    def __init__(self, most: int, size: Callable[[Value], int]) -> None:
        self._most, self._size, self._held = most, size, 0
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def find(self, key: Key) -> Value | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def keep(self, key: Key, value: Value) -> Value:
        self._values[key] = value
        self._held += self._size(value)
        while self._held > self._most and len(self._values) > 1:
            _, oldest = self._values.popitem(last=False)
            self._held -= self._size(oldest)
        return value


@dataclass
class Work:
    """What was done so far."""

    runs: int = 0
    """Layers that were run."""
    asked: int = 0
    """Layers of all designs asked for."""


class PrefixCache:
    """All designs of one space, one batch and one seed, for the same proxies."""

    def __init__(self, at: ScoreRequest) -> None:
        self.work, self._counts = Work(), at.space.counts
        self._stack: Stack = STACKS[type(at.space)](at)
        self._proxies, self._depth = chosen_proxies(at), len(self._stack.words(at.config))
        self._draw = float(torch.rand((), generator=generator(at.seed[0], NOISE, at.seed[1]), dtype=torch.float64))
        self._judge = self._by_terms if set(at.proxies) <= set(LAYERWISE) else self._by_probe
        self._roles = tuple({"output", *roles_of(self._proxies.values())})
        self._states: Kept[Prefix, torch.Tensor] = Kept(STATES, lambda state: state.nbytes)
        self._records: Kept[Prefix, Probe] = Kept(STATES, signal_bytes)
        self._path: dict[Prefix, torch.Tensor] = {(): self._stack.first()}
        self._layers: Kept[tuple[int, str], OneLayer] = Kept(LAYERS, weight_bytes)
        self._factors: dict[tuple[int, str], torch.Tensor | None] = {}
        self._terms: dict[tuple[str, Prefix], Terms | Unscored] = {}

    def look(self, at: ScoreRequest) -> ScoreResult:
        """The scores of this design; what cannot be computed is missing, with the reason."""
        begun, words = process_time(), self._stack.words(at.config)
        scores, missing = {}, {}
        self._path = {prefix: state for prefix, state in self._path.items() if prefix in ((), words[: len(prefix)])}
        measure = self._judge(words, at)
        for name in at.proxies:
            try:
                scores[name] = finite(measure(name))
            except Unscored as reason:
                missing[name] = str(reason)
        return ScoreResult(scores, missing, process_time() - begun, None, {})

    def _by_terms(self, words: Prefix, at: ScoreRequest) -> Measure:
        """Of what each layer contributes."""
        prefixes = [words[: depth + 1] for depth in range(len(words))]
        self.work.asked += len(words)

        def measure(name: str) -> float:
            of = LAYERWISE[name]
            terms = [term for prefix in prefixes for term in self._layer_terms(of.of, prefix)]
            return of.joined(terms, self._counts(at.config))

        return measure

    def _layer_terms(self, name: str, prefix: Prefix) -> Terms:
        """What the last layer of this beginning contributes."""
        if (name, prefix) not in self._terms:
            probe = self._recorded(prefix)
            for of in {LAYERWISE[one].of: LAYERWISE[one] for one in self._proxies}.values():
                self._terms[of.of, prefix] = attempted(of, probe, lambda weight: self._factor(prefix, weight))
        found = self._terms[name, prefix]
        if isinstance(found, Unscored):
            raise found
        return found

    def _by_probe(self, words: Prefix, at: ScoreRequest) -> Measure:
        """Of one probe, put together from recordings of its layers."""
        passes = passes_of(self._proxies.values())
        prefixes = [words[: depth + 1] for depth in range(len(words)) if passes]
        self.work.asked += len(prefixes)
        records = [
            self._records.find(prefix) or self._records.keep(prefix, self._recorded(prefix)) for prefix in prefixes
        ]
        before, behind = self._stack.ends()
        weights = [*map(as_weight, before), *(w for one in records for w in one.parameters), *map(as_weight, behind)]
        probe = Probe(
            passes=frozenset(passes),
            failures={name: why for one in records for name, why in one.failures.items()},
            counts=self._counts(at.config),
            layers=tuple(one.layers[0] for one in records),
            parameters=tuple(weights),
            inputs=None,
            noisy={},
            draw=self._draw,
        )
        return lambda name: self._proxies[name].measure(probe)

    def _recorded(self, prefix: Prefix) -> Probe:
        """The last layer of this beginning, run and recorded."""
        self.work.runs += 1
        given, layer = self._state(prefix[:-1]), self._layer(len(prefix) - 1, prefix[-1])
        found = record(layer, {"input_ids": given}, passes=("forward",), keep=self._roles)
        self._reached(prefix, output_of(found))
        return found

    def _state(self, prefix: Prefix) -> torch.Tensor:
        """What the layer behind this beginning is given."""
        kept = self._states.find(prefix)
        found = self._path.get(prefix) if kept is None else kept
        if found is not None:
            return found
        self.work.runs += 1
        given, layer = self._state(prefix[:-1]), self._layer(len(prefix) - 1, prefix[-1])
        with torch.no_grad():
            return self._reached(prefix, layer(given))

    def _reached(self, prefix: Prefix, state: torch.Tensor) -> torch.Tensor:
        """Keeps a state for this design, and for later ones where it is likely to be of use."""
        self._path[prefix] = state
        if len(prefix) <= DEEP * self._depth:
            self._states.keep(prefix, state)
        return state

    def _factor(self, prefix: Prefix, weight: torch.Tensor) -> torch.Tensor | None:
        """What `factor_of` gives for the layer at the end of this beginning."""
        key = (len(prefix) - 1, prefix[-1])
        if key not in self._factors:
            self._factors[key] = factor_of(weight)
        return self._factors[key]

    def _layer(self, place: int, word: str) -> OneLayer:
        return self._layers.find((place, word)) or self._layers.keep((place, word), self._stack.layer(place, word))


def attempted(of: Layerwise, probe: Probe, factor: Factor) -> Terms | Unscored:
    try:
        return of.terms(probe, factor)
    except Unscored as reason:
        return reason


def finite(score: float) -> float:
    if not math.isfinite(score):
        raise Unscored(f"The score is {score}, not a finite number.")
    return float(score)


def output_of(probe: Probe) -> torch.Tensor:
    """The hidden state behind the one layer of this probe."""
    (layer,) = probe.layers
    assert layer.output is not None
    return layer.output.value


def as_weight(parameter: torch.nn.Parameter) -> Weight:
    return Weight(parameter.detach())


def weight_bytes(layer: OneLayer) -> int:
    return sum(parameter.nbytes for parameter in layer.parameters())


def signal_bytes(probe: Probe) -> int:
    """Of what the layers gave; their weights are counted elsewhere."""
    found = [getattr(layer, field.name) for layer in probe.layers for field in fields(Layer)]
    signals = [one for value in found for one in (value if isinstance(value, tuple) else (value,))]
    return sum(one.value.nbytes for one in signals if isinstance(one, Signal))


@dataclass(frozen=True)
class PrefixScoring:
    """A look that a process does beside others of the same walk; calling it looks."""

    at: ScoreRequest

    def __call__(self) -> ScoreResult:
        return walk_of(self.at).look(self.at)


def walk_of(at: ScoreRequest) -> PrefixCache:
    """The walk of this process that the look belongs to; one at a time, for its memory is large."""
    same = [(field.name, getattr(at, field.name)) for field in fields(ScoreRequest) if field.name not in OWN]
    key = digest(repr(same), at.batch.input_ids.tobytes())
    if key not in WALKS:
        WALKS.clear()
        WALKS[key] = PrefixCache(at)
    return WALKS[key]


OWN = frozenset({"config", "batch"})
"""What looks of one walk do not share, or what has no text that tells it from others."""
WALKS: dict[str, PrefixCache] = {}
"""The walk this process is on: what it keeps between looks, and nothing that a score depends on."""
