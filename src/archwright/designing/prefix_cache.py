"""PrefixCache: scores of many designs of one space, where equal first layers are run once.

Two designs that begin with the same layers have the same hidden state behind them, because a space with
`prefix_layers` gives a layer at a place the same weights in all designs. Kept are, by the layers up to a place: what
the last of them contributes to each score, for good, for it is a few numbers; and the hidden state behind it, as long
as there is room. The scores are those of `score_network`, which runs whole networks.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from time import process_time
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from archwright.environment import available_memory
from archwright.networks.linear_kernel import fast_linears
from archwright.networks.roles import Counts, Roles
from archwright.parallel.pool import WorkerPool, worker_pool
from archwright.probe import Layer, Probe, Signal, Weight, record
from archwright.proxies import PROXIES, Proxy, Unscored, passes_of, roles_of
from archwright.proxies.pca import Factor, dimensions, factor_of, spectrum
from archwright.proxies.proxy import average, total
from archwright.random_streams import INITIAL_WEIGHTS, PROBE_NOISE, generator
from archwright.scoring.initial_weights import INITIALS
from archwright.scoring.request import ScoreRequest, ScoreResult, batch_tensors
from archwright.search import Config
from archwright.spaces.architectures import PrefixLayers
from archwright.store import digest
from archwright.threads import available_cores

MEGABYTE = 1 << 20
STATES, LAYERS = 1024 * MEGABYTE, 1024 * MEGABYTE
"""Most memory of hidden states, and of weights, that a process keeps: all blocks of nlu-small, a third of nlu-large."""
MEMORY_SHARE = 0.25
"""Of a core's share of the free memory, the most for either of them."""
DEEP = 0.5
"""Share of the layers up to which hidden states are kept: a child seldom has all but the last blocks of its parent.

Room is short: of a search of 50 x 40 in nlu-large 233 states fit. In a simulation of its order (1,864 designs, two
processes) 1,908 layers were run again with 0.5 and 2,227 with 0.75, beside 13,283 that had to be recorded in any case;
with half of the memory 2,761 and 3,568.
"""

Prefix = tuple[str, ...]
"""What the first layers are."""
Terms = Sequence[Any]
"""What one layer contributes to a score."""
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True)
class LayerwiseProxy:
    """A proxy whose score follows from what each layer contributes."""

    proxy: str
    """The proxy whose terms, on a recording of one layer, are its contributions."""
    combine: Callable[[Terms, Counts], float]
    """The score, of the terms of all layers in order."""

    def terms(self, probe: Probe, factor: Factor) -> Terms:
        """Of a recording of one layer; the factor of its FFN is given, because one layer serves many designs."""
        if self.proxy == "v_pca":
            return [dimensions(spectrum(layer, factor)) for layer in probe.layers]
        terms = PROXIES[self.proxy].terms(probe)
        return terms if isinstance(terms, list | tuple) else (terms,)


SUMS = (
    "v_pca",
    "activation_distance",
    "activation_distance_published",
    "attention_confidence",
    "attention_confidence_published",
    "softmax_confidence",
    "softmax_confidence_published",
)
LAYERWISE: dict[str, LayerwiseProxy] = {
    **{name: LayerwiseProxy(name, lambda terms, _, name=name: PROXIES[name].join(terms)) for name in SUMS},  # type: ignore[misc]
    **{f"{name}_normalised": LayerwiseProxy(name, lambda terms, _: average(terms)) for name in SUMS},
    "w_pca": LayerwiseProxy("v_pca", lambda terms, counts: counts.parameters * total(terms)),
    "w_pca_nonembedding": LayerwiseProxy("v_pca", lambda terms, counts: counts.nonembedding * total(terms)),
    "hidden_covariance": LayerwiseProxy("hidden_covariance", lambda terms, _: average(terms)),
    "hidden_covariance_inputs": LayerwiseProxy("hidden_covariance_inputs", lambda terms, _: average(terms)),
}
"""Of all others with a forward pass alone, whole recordings are kept."""


class LruCache(Generic[Key, Value]):
    """What was used last, up to so many bytes."""

    def __init__(self, most: float, size: Callable[[Value], int]) -> None:
        self._most, self._size, self._bytes = most, size, 0
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: Key, value: Value) -> Value:
        if key in self._values:
            self._bytes -= self._size(self._values.pop(key))
        self._values[key] = value
        self._bytes += self._size(value)
        while self._bytes > self._most and len(self._values) > 1:
            _, oldest = self._values.popitem(last=False)
            self._bytes -= self._size(oldest)
        return value


@dataclass
class LayerRuns:
    """What was done so far."""

    run: int = 0
    """Layers that were run."""
    requested: int = 0
    """Layers of all designs whose score was requested."""


class SingleLayer(nn.Module):
    """A layer as a network of its own, which reads hidden states instead of tokens."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.entry, self.layer = nn.Identity(), layer

    def roles(self) -> Roles:
        return Roles(self.entry, [self.layer.roles()])

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.layer(self.entry(hidden))
        return output

    @property
    def weight_bytes(self) -> int:
        return sum(parameter.nbytes for parameter in self.parameters())


class PrefixCache:
    """All designs of one space, one batch and one seed, for the proxies of the first request or some of them."""

    def __init__(self, request: ScoreRequest) -> None:
        assert request.space.prefix_layers is not None
        seed = generator(request.seed[0], INITIAL_WEIGHTS, request.seed[1]).initial_seed()
        self._parts: PrefixLayers = request.space.prefix_layers(
            request.space, request.config, seed=seed, loss=request.loss, vocabulary=request.batch.vocabulary
        )
        self._initialise, self._counts = INITIALS[request.initial], request.space.counts
        self._initialise(self._parts.embeddings)
        with torch.no_grad(), fast_linears():
            first: torch.Tensor = self._parts.embeddings(batch_tensors(request.batch)["input_ids"])
        self.runs, self._depth = LayerRuns(), len(self._parts.words(request.config))
        self._proxies = request.proxies
        self._roles = tuple({"output", *roles_of(self._proxies.values())})
        draws = generator(request.seed[0], PROBE_NOISE, request.seed[1])
        self._draw = float(torch.rand((), generator=draws, dtype=torch.float64))
        self._layerwise = set(request.proxies) <= set(LAYERWISE)
        states, layers = (min(most, room_for_a_process()) for most in (STATES, LAYERS))
        self._states: LruCache[Prefix, torch.Tensor] = LruCache(states, lambda state: state.nbytes)
        self._records: LruCache[Prefix, Probe] = LruCache(states, signal_bytes)
        self._path: dict[Prefix, torch.Tensor] = {(): first}
        self._layers: LruCache[tuple[int, str], SingleLayer] = LruCache(layers, lambda layer: layer.weight_bytes)
        self._factors: dict[tuple[int, str], torch.Tensor | None] = {}
        self._terms: dict[tuple[str, Prefix], Terms | Unscored] = {}

    def score(self, request: ScoreRequest) -> ScoreResult:
        """The scores of this design; what cannot be computed is missing, with the reason."""
        begun, words = process_time(), self._parts.words(request.config)
        scores, missing = {}, {}
        self._path = {prefix: state for prefix, state in self._path.items() if prefix in ((), words[: len(prefix)])}
        measure = self._measure_by_terms if self._layerwise else self._measure_by_probe
        measure_proxy = measure(words, request)
        for name in request.proxies:
            try:
                score = measure_proxy(name)
                if not math.isfinite(score):
                    raise Unscored(f"The score is {score}, not a finite number.")
                scores[name] = float(score)
            except Unscored as reason:
                missing[name] = str(reason)
        return ScoreResult(scores, missing, process_time() - begun, None, {})

    def _measure_by_terms(self, words: Prefix, request: ScoreRequest) -> Callable[[str], float]:
        """Score by the name of a proxy, of what each layer contributes."""
        prefixes = [words[: depth + 1] for depth in range(len(words))]
        self.runs.requested += len(words)

        def measure(name: str) -> float:
            layerwise = LAYERWISE[name]
            terms = [term for prefix in prefixes for term in self._layer_terms(layerwise.proxy, prefix)]
            return layerwise.combine(terms, self._counts(request.config))

        return measure

    def _layer_terms(self, name: str, prefix: Prefix) -> Terms:
        """What the last layer of this prefix contributes, to all proxies at once."""
        if (name, prefix) not in self._terms:
            probe = self._record(prefix)
            for layerwise in {LAYERWISE[each].proxy: LAYERWISE[each] for each in self._proxies}.values():
                key = (layerwise.proxy, prefix)
                try:
                    self._terms[key] = layerwise.terms(probe, lambda weight: self._factor(prefix, weight))
                except Unscored as reason:
                    self._terms[key] = reason
        terms = self._terms[name, prefix]
        if isinstance(terms, Unscored):
            raise terms
        return terms

    def _factor(self, prefix: Prefix, weight: torch.Tensor) -> torch.Tensor | None:
        """What `factor_of` gives for the last layer of this prefix."""
        key = (len(prefix) - 1, prefix[-1])
        if key not in self._factors:
            self._factors[key] = factor_of(weight)
        return self._factors[key]

    def _measure_by_probe(self, words: Prefix, request: ScoreRequest) -> Callable[[str], float]:
        """Score by the name of a proxy, of one probe put together from recordings of its layers."""
        passes = passes_of(request.proxies.values())
        reads = not all(proxy.closed_form for proxy in request.proxies.values())
        prefixes = [words[: depth + 1] for depth in range(len(words)) if reads]
        if passes:
            self.runs.requested += len(prefixes)
            records = [
                self._records.get(prefix) or self._records.put(prefix, self._record(prefix)) for prefix in prefixes
            ]
        else:
            records = [self._record_weights(prefix) for prefix in prefixes]
        head = self._parts.head
        self._initialise(head)
        before, behind = (
            [Weight(parameter.detach()) for parameter in part.parameters()] for part in (self._parts.embeddings, head)
        )
        probe = Probe(
            passes=frozenset(passes),
            failures={name: why for each in records for name, why in each.failures.items()},
            counts=self._counts(request.config),
            layers=tuple(each.layers[0] for each in records),
            parameters=(*before, *(weight for each in records for weight in each.parameters), *behind),
            inputs=None,
            noisy={},
            draw=self._draw,
        )
        return lambda name: self._proxies[name].measure(probe)

    def _record(self, prefix: Prefix) -> Probe:
        """The last layer of this prefix, run and recorded."""
        self.runs.run += 1
        hidden, layer = self._state(prefix[:-1]), self._layer(len(prefix) - 1, prefix[-1])
        probe = record(layer, {"input_ids": hidden}, passes=("forward",), keep=self._roles)
        output = probe.layers[0].output
        assert output is not None
        self._keep_state(prefix, output.value)
        return probe

    def _record_weights(self, prefix: Prefix) -> Probe:
        """The last layer of this prefix without running it, for proxies that read weights alone."""
        return record(self._layer(len(prefix) - 1, prefix[-1]), {"input_ids": self._path[()]}, passes=())

    def _state(self, prefix: Prefix) -> torch.Tensor:
        """What the layer behind this prefix is given."""
        recent = self._states.get(prefix)
        state = self._path.get(prefix) if recent is None else recent
        if state is None:
            self.runs.run += 1
            hidden, layer = self._state(prefix[:-1]), self._layer(len(prefix) - 1, prefix[-1])
            with torch.no_grad(), fast_linears():
                state = layer(hidden)
            self._keep_state(prefix, state)
        return state

    def _keep_state(self, prefix: Prefix, state: torch.Tensor) -> None:
        """For this design, and for later ones where it is likely to be of use."""
        self._path[prefix] = state
        if len(prefix) <= DEEP * self._depth:
            self._states.put(prefix, state)

    def _layer(self, place: int, word: str) -> SingleLayer:
        layer = self._layers.get((place, word))
        if layer is None:
            layer = SingleLayer(self._parts.layer(place, word))
            self._initialise(layer)
            self._layers.put((place, word), layer)
        return layer


def room_for_a_process() -> float:
    """Bytes that a process may keep of one kind of thing, when one runs on every core."""
    free = available_memory()
    return math.inf if free is None else MEMORY_SHARE * free / available_cores()


def signal_bytes(probe: Probe) -> int:
    """Of what the layers gave; their weights are counted elsewhere."""
    values = [getattr(layer, field.name) for layer in probe.layers for field in fields(Layer)]
    signals = [signal for value in values for signal in (value if isinstance(value, tuple) else (value,))]
    return sum(signal.value.nbytes for signal in signals if isinstance(signal, Signal))


@dataclass(frozen=True)
class PrefixScoring:
    """A score request that a process answers with its PrefixCache; calling it scores."""

    request: ScoreRequest
    proxies: Mapping[str, Proxy] | None = None
    """Those of the whole search, where the request is for what a folder does not know of this design."""

    @property
    def config(self) -> Config:
        return self.request.config

    def __call__(self) -> ScoreResult:
        whole = self.request if self.proxies is None else replace(self.request, proxies=self.proxies)
        return prefix_cache_for(whole).score(self.request)


def prefix_cache_for(request: ScoreRequest) -> PrefixCache:
    """The cache of this process that the request belongs to; one at a time, for its memory is large."""
    shared = [(field.name, getattr(request, field.name)) for field in fields(ScoreRequest) if field.name not in OWN]
    key = digest(repr(shared), request.batch.input_ids.tobytes())
    if key not in CACHES:
        CACHES.clear()
        CACHES[key] = PrefixCache(request)
    return CACHES[key]


@dataclass(frozen=True)
class PrefixPool:
    """A pool that scores requests with the PrefixCache of the process they are sent to."""

    pool: WorkerPool
    proxies: Mapping[str, Proxy] | None = None
    """All that requests may be for."""

    def map_unordered(self, tasks: Sequence[Any], *, keys: Sequence[Any] | None = None) -> Iterator[tuple[int, Any]]:
        """Designs with equal first layers go to the same process: sorted by their choices, the first layer first."""
        choices = [tuple(map(str, request.config.values())) for request in tasks]
        return self.pool.map_unordered([PrefixScoring(request, self.proxies) for request in tasks], keys=choices)


@contextmanager
def prefix_pool(workers: int, proxies: Mapping[str, Proxy] | None = None) -> Iterator[WorkerPool]:
    """So many processes with one thread each (0: one per core); one alone is this process."""
    with worker_pool(workers, None) as pool:
        yield PrefixPool(pool, proxies)


OWN = frozenset({"config", "batch"})
"""What requests of one cache do not share, or what has no text that tells it from others."""
CACHES: dict[str, PrefixCache] = {}
"""The cache of this process: what it keeps between requests, and nothing that a score depends on."""
