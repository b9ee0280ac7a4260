"""Scores of many networks: equal requests are computed once, and what a folder keeps is not computed again."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from archwright import probe
from archwright.configs import scoring as so
from archwright.parallel.pool import WorkerPool, worker_pool
from archwright.progress import progress
from archwright.proxies import Proxy
from archwright.scoring.request import CostRequest, ScoreRequest, ScoreResult
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
        keys = self._compute_missing(requests, title, on_new)
        return [read_result(request, self.kept.of(key)) for key, request in zip(keys, requests, strict=True)]

    def score_until(
        self, requests: Sequence[ScoreRequest], title: str, deadline: float | None
    ) -> list[ScoreResult | None]:
        """The same in the order given, until `time.monotonic()` reaches the deadline; None for what was not reached."""
        keys = self._compute_missing(requests, title, None, deadline)
        return [
            read_result(request, entry) if not missing_proxies(request, entry) else None
            for request, entry in zip(requests, map(self.kept.of, keys), strict=True)
        ]

    def measure_costs(self, requests: Sequence[CostRequest], title: str) -> dict[str, dict[str, float | None]]:
        """Seconds and memory of every proxy by itself, by name."""
        keys = [
            digest("cost", cache_key(request.request), *map(cache_name, request.request.proxies.values()))
            for request in requests
        ]
        missing = [(key, request) for key, request in zip(keys, requests, strict=True) if not self.kept.of(key)]
        with progress(title, len(missing), "measurements") as bar:
            for index, costs in self.pool.map_unordered([request for _, request in missing]):
                self.kept.add(missing[index][0], {"costs": costs})
                bar.advance()
        return {name: cost for key in keys for name, cost in self.kept.of(key)["costs"].items()}

    def _compute_missing(
        self,
        requests: Sequence[ScoreRequest],
        title: str | None,
        on_new: Callable[[str], None] | None = None,
        deadline: float | None = None,
    ) -> list[str]:
        """Computes what is not kept yet, each network once; gives the keys of the requests."""
        keys = [cache_key(request) for request in requests]
        missing = {}
        for key, request in zip(keys, requests, strict=True):
            if proxies := missing_proxies(request, self.kept.of(key)):
                missing[key] = replace(request, proxies=proxies)
        names, networks = list(missing), list(missing.values())
        with progress(title, len(networks), "networks") if title else nullcontext() as bar:
            results = self.pool.map_unordered(networks) if deadline is None or monotonic() < deadline else iter(())
            for index, result in results:
                self.kept.add(names[index], cache_entry(networks[index], result))
                if on_new:
                    on_new(names[index])
                if bar:
                    bar.advance()
                if deadline is not None and monotonic() >= deadline:
                    break
        return keys


def missing_proxies(request: ScoreRequest, entry: Mapping[str, Any]) -> dict[str, Proxy]:
    """Proxies of the request that the entry does not tell anything of."""
    done = {*entry.get("scores", ()), *entry.get("missing", ())}
    return {name: proxy for name, proxy in request.proxies.items() if cache_name(proxy) not in done}


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
    cost = {"seconds": result.seconds, "peak_mb": result.peak_mb, "proxies": list(names.values())}
    return {
        "scores": {names[name]: score for name, score in result.scores.items()},
        "missing": {names[name]: reason for name, reason in result.missing.items()},
        "cost": {digest(*names.values()): cost},
        "etas": result.etas,
    }


def read_result(request: ScoreRequest, entry: dict[str, Any]) -> ScoreResult:
    """What the entry keeps of the proxies of the request, and what it took to compute any of them."""
    names = {name: cache_name(proxy) for name, proxy in request.proxies.items()}
    scores = {name: entry["scores"][kept] for name, kept in names.items() if kept in entry["scores"]}
    missing = {name: entry["missing"][kept] for name, kept in names.items() if kept in entry["missing"]}
    costs = [cost for cost in entry["cost"].values() if was_for(cost, names.values())]
    peaks = [cost["peak_mb"] for cost in costs if cost["peak_mb"] is not None]
    etas = entry["etas"] if "v_pca" in names else {}
    return ScoreResult(scores, missing, sum(cost["seconds"] for cost in costs), max(peaks, default=None), etas)


def was_for(cost: Mapping[str, Any], proxies: Collection[str]) -> bool:
    """Whether one of these proxies, by their cache names, was computed at this cost; costs of before do not say."""
    return "proxies" not in cost or not set(proxies).isdisjoint(cost["proxies"])
