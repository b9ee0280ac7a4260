"""Scores of many networks: equal requests are computed once, and what a folder keeps is not computed again."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from archwright import probe
from archwright.configs import scoring as so
from archwright.parallel.pool import WorkerPool, worker_pool
from archwright.progress import progress
from archwright.proxies import Proxy
from archwright.scoring.request import ScoreRequest, ScoreResult
from archwright.store import ScoreStore, digest


@dataclass(frozen=True)
class Scorer:
    """Scores requests with the workers and the kept scores of one command."""

    kept: ScoreStore
    pool: WorkerPool

    def score(
        self, requests: Sequence[ScoreRequest], title: str | None = None, on_new: Callable[[str], None] | None = None
    ) -> list[ScoreResult]:
        """The result of each request; a title is shown with a bar, `on_new` gets the key of every network computed."""
        keys = [cache_key(request) for request in requests]
        missing = {}
        for key, request in zip(keys, requests, strict=True):
            entry = self.kept.of(key)
            done = {*entry.get("scores", ()), *entry.get("missing", ())}
            proxies = {name: proxy for name, proxy in request.proxies.items() if cache_name(proxy) not in done}
            if proxies:
                missing[key] = replace(request, proxies=proxies)
        self._compute(missing, title, on_new)
        return [read_result(request, self.kept.of(key)) for key, request in zip(keys, requests, strict=True)]

    def measure_costs(self, requests: Sequence[ScoreRequest], title: str) -> list[dict[str, float | None]]:
        """Seconds and memory of each request by itself, with nothing shared between requests of the same network."""
        keys = [digest(cache_key(request), *map(cache_name, request.proxies.values())) for request in requests]
        missing = {key: request for key, request in zip(keys, requests, strict=True) if not self.kept.of(key)}
        self._compute(missing, title)
        return [next(iter(self.kept.of(key)["cost"].values())) for key in keys]

    def _compute(
        self, missing: Mapping[str, ScoreRequest], title: str | None, on_new: Callable[[str], None] | None = None
    ) -> None:
        keys, requests = list(missing), list(missing.values())
        with progress(title, len(requests), "networks") if title else nullcontext() as bar:
            for index, result in self.pool.map_unordered(requests):
                self.kept.add(keys[index], cache_entry(requests[index], result))
                if on_new:
                    on_new(keys[index])
                if bar:
                    bar.advance()


@contextmanager
def open_scorer(options: so.RecordingOptions) -> Iterator[Scorer]:
    """With the workers and the folder that the options name."""
    with worker_pool(options.workers, options.ray) as pool:
        yield Scorer(ScoreStore(options.out), pool)


def cache_key(request: ScoreRequest) -> str:
    """Name of everything that scores of this network depend on but the proxies: settings, and revisions of the code.

    Revisions are raised by hand when numbers change (`ArchitectureSpace.revision`, `probe.REVISION`, `Proxy.revision`),
    so that an edited comment does not throw away an hour of scores.
    """
    space, batch = request.space, request.batch
    settings = [
        probe.REVISION, space.name, space.revision, repr(space), request.config, request.seed, request.loss,
        request.initial, batch.input_ids.shape, batch.vocabulary,
    ]  # fmt: skip
    return digest(json.dumps(settings, sort_keys=True), batch.input_ids.tobytes(), batch.labels.tobytes())


def cache_name(proxy: Proxy) -> str:
    """Name under which a network's score is kept; it changes with the proxy's revision, source or formula."""
    words = [proxy.name]
    words += [f"revision-{proxy.revision}"] if proxy.revision != 1 else []
    words += [digest(proxy.content)] if proxy.content else []
    return " ".join(words)


def cache_entry(request: ScoreRequest, result: ScoreResult) -> dict[str, Any]:
    names = {name: cache_name(proxy) for name, proxy in request.proxies.items()}
    return {
        "scores": {names[name]: score for name, score in result.scores.items()},
        "missing": {names[name]: reason for name, reason in result.missing.items()},
        "cost": {digest(*result.scores, *result.missing): {"seconds": result.seconds, "peak_mb": result.peak_mb}},
        "etas": result.etas,
    }


def read_result(request: ScoreRequest, entry: dict[str, Any]) -> ScoreResult:
    """What the entry keeps of the proxies of the request."""
    names = {name: cache_name(proxy) for name, proxy in request.proxies.items()}
    scores = {name: entry["scores"][kept] for name, kept in names.items() if kept in entry["scores"]}
    missing = {name: entry["missing"][kept] for name, kept in names.items() if kept in entry["missing"]}
    costs = entry["cost"].values()  # several when more proxies were wanted later
    peaks = [cost["peak_mb"] for cost in costs if cost["peak_mb"] is not None]
    etas = entry["etas"] if "v_pca" in names else {}
    return ScoreResult(scores, missing, sum(cost["seconds"] for cost in costs), max(peaks, default=None), etas)
