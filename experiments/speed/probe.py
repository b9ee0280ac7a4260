"""`experiments.speed probe`: what scoring a network costs, and whether a small batch ranks like a large one.

On architectures of `nas-bert` as they were trained. Seconds are processor time of one core; only the comparison of one
process with two goes by the clock. The part with the large batch takes some seconds per architecture.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np
import torch

from archwright.benchmarks import BENCHMARKS
from archwright.configs import scoring as so
from archwright.data.public_data import public_data
from archwright.parallel.pool import ProcessPool, WorkerPool
from archwright.progress import progress
from archwright.proxies import PROXIES
from archwright.scoring.request import ScoreRequest, score_network
from archwright.scoring.setup import scoring_setup
from archwright.search import Config
from archwright.spaces.architectures import ArchitectureSpace
from archwright.statistics.ranks import spearman
from experiments.speed.ratios import BenchConfig, Ratio, ratio, seconds

NUCLEAR = ("synaptic_diversity", "synaptic_diversity_norm", "dss")
ONE_LOSS = {"forward", "loss", "inputs"}
ORDINARY = tuple(
    name for name, proxy in PROXIES.items() if set(proxy.passes) <= ONE_LOSS and not name.startswith(NUCLEAR)
)
"""Everything that a forward and a loss pass give, but for nuclear norms."""
DEAR = {
    "nuclear norms, with their loss pass": NUCLEAR,
    "SynFlow": ("synflow", "logsynflow_freerea"),
    "noise": tuple(name for name, proxy in PROXIES.items() if "noise" in proxy.passes),
    "Hessian": ("grasp",),
}
STEADY = ("w_pca", "v_pca", "synaptic_saliency_published", "grad_norm", "synflow")
"""Proxies that a small batch must rank as a large one does."""
COMPARED = tuple(name for name in PROXIES if "noise" not in name and not name.endswith("_normalised"))
SMALL, LARGE = (8, 64), (128, 128)
TOGETHER, ENLARGED, SHARED_OUT = 3, 24, 48
"""Architectures: scored by each proxy alone, with the large batch, and by one and two processes."""
NO_TARGET = ""


def bench_probe(settings: BenchConfig) -> list[Ratio]:
    """Core-seconds of the passes, what sharing a recording saves, how processes scale, and small against large."""
    space, configs = architectures(settings)
    small = [score_requests(space, configs, SMALL, settings.seed, names) for names in (ORDINARY, ("w_pca",))]
    return [
        timed("core-seconds: forward and loss pass and all their proxies", small[0], "<= 0.25"),
        timed("core-seconds: W-PCA alone", small[1], "<= 0.10"),
        *(
            timed(
                f"core-seconds: {title}",
                score_requests(space, configs[:TOGETHER], SMALL, settings.seed, names),
                NO_TARGET,
            )
            for title, names in DEAR.items()
        ),
        sharing(small[0][: TOGETHER + 1]),
        scaling(small[0][:SHARED_OUT]),
        *steadiness(space, configs[:ENLARGED], settings.seed),
    ]


def architectures(settings: BenchConfig) -> tuple[ArchitectureSpace, list[Config]]:
    """As many rows as were asked for, in random order."""
    source = BENCHMARKS["nas-bert"]
    folder = settings.data or public_data(source.folder, origin=source.origin, option="--data")
    benchmark = source.load(folder, source.variants[0])
    order = np.random.default_rng(settings.seed).permutation(len(benchmark.rows))[: settings.rows]
    return benchmark.space, [benchmark.rows[place].config for place in order]


def score_requests(
    space: ArchitectureSpace, configs: Iterable[Config], size: tuple[int, int], seed: int, names: tuple[str, ...]
) -> list[ScoreRequest]:
    rows, length = size
    setup = scoring_setup(
        space, so.ProxyOptions(proxies=names), so.ScoringOptions(batch_rows=rows, length=length, seed=seed)
    )
    return [setup.request(config) for config in configs]


def timed(name: str, requests: Sequence[ScoreRequest], target: str) -> Ratio:
    """Median over architectures, building included, after one that does not count."""
    score_network(requests[0])
    with progress(f"bench: {name}", len(requests), "networks") as bar:
        spent = []
        for request in requests:
            spent.append(seconds(partial(score_network, request)))
            bar.advance()
    return Ratio(name, float(np.median(spent)), min(spent), max(spent), target)


def sharing(requests: Sequence[ScoreRequest]) -> Ratio:
    """All proxies from one recording against a recording for each."""
    rounds = [
        {
            "alone": sum(seconds(partial(score_network, one)) for one in one_each(request)),
            "shared": seconds(partial(score_network, request)),
        }
        for request in requests
    ]
    return ratio("one recording per proxy / one for all", rounds[1:], "alone", "shared", ">= 5")


def one_each(request: ScoreRequest) -> list[ScoreRequest]:
    return [replace(request, proxies={name: proxy}) for name, proxy in request.proxies.items()]


def scaling(requests: Sequence[ScoreRequest], rounds: int = 3) -> Ratio:
    """By the clock, with processes that are already running."""
    with ProcessPool(1) as one, ProcessPool(2) as two:
        for pool in (one, two):
            clock(pool, requests[:4])
        found = [{"one": clock(one, requests), "two": clock(two, requests)} for _ in range(rounds)]
    return ratio("time of one process / of two", found, "one", "two", ">= 1.8")


def clock(pool: WorkerPool, requests: Sequence[ScoreRequest]) -> float:
    begun = perf_counter()
    for _ in pool.map_unordered(requests):
        pass
    return perf_counter() - begun


def steadiness(space: ArchitectureSpace, configs: Sequence[Config], seed: int) -> list[Ratio]:
    """Spearman between the scores of a small and of a large batch, for every proxy that has both."""
    torch.set_num_threads(1)
    small, large = (scores(score_requests(space, configs, size, seed, COMPARED), size) for size in (SMALL, LARGE))
    return [
        Ratio(f"Spearman, 8 x 64 with 128 x 128: {name}", rho, rho, rho, ">= 0.98" if name in STEADY else NO_TARGET)
        for name in COMPARED
        if np.isfinite(rho := agreement([row.get(name) for row in small], [row.get(name) for row in large]))
    ]


def scores(requests: Sequence[ScoreRequest], size: tuple[int, int]) -> list[dict[str, float]]:
    found = []
    with progress(f"bench: {size[0]} x {size[1]} tokens", len(requests), "networks") as bar:
        for request in requests:
            found.append(score_network(request).scores)
            bar.advance()
    return found


def agreement(one: Sequence[float | None], other: Sequence[float | None]) -> float:
    """Over the architectures that have both; NaN for fewer than three, or where nothing varies."""
    pairs = np.array([(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None])
    if len(pairs) < 3 or (pairs == pairs[0]).all(axis=0).any():
        return float("nan")
    return float(spearman(pairs[:, 0], pairs[:, 1]))
