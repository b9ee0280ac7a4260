"""What every search of a command shares: rows with folds, statistics of their networks, workers, and what it takes."""

import resource
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from archwright.configs.discover import PUBLISHED, FormulaOptions
from archwright.configs.scoring import BenchmarkOptions, ProxyOptions, RecordingOptions
from archwright.discovery.fitness import FoldedRows
from archwright.discovery.lazy_table import LazyTable
from archwright.discovery.score_table import StatisticsTable
from archwright.discovery.statistics import StatisticsRequest, take_statistics
from archwright.parallel.pool import WorkerPool, worker_pool
from archwright.proxies import PROXIES
from archwright.proxies.formulas.reductions import Values
from archwright.scoring.ranked_rows import RankedRows, load_benchmark, rows_with_result
from archwright.scoring.request import ScoreRequest
from archwright.scoring.scorer import Scorer
from archwright.scoring.setup import ScoringSetup, scoring_setup
from archwright.spaces.formulas import FACTORS, WITHOUT, FormulaSpace, parse_inputs, parse_reductions
from archwright.store import ScoreStore, digest

TABLED = 2
"""Unary operations up to which statistics of all chains can be taken before a search."""
FOLD_SEEDS = 10
"""Splits into folds by default, where all formulas are ranked; evolution has to search anew for every fold."""
PER_MB = 1024 if sys.platform.startswith("linux") else 1024**2
"""Linux counts memory in kilobytes, macOS in bytes."""


@dataclass(frozen=True)
class DiscoveryContext:
    """Where formulas are searched."""

    benchmark_rows: RankedRows
    setup: ScoringSetup
    space: FormulaSpace
    rows: FoldedRows
    requests: list[ScoreRequest]
    """How every network is recorded, in the order of `rows`; without proxies, so that they are small to send."""
    table: StatisticsTable | LazyTable
    published: Mapping[str, Values]
    """Scores of published proxies, one per network."""
    folder: Path
    pool: WorkerPool

    @property
    def digest(self) -> str:
        """Name of the rows and statistics."""
        return digest(self.table.content, self.rows.truth.tobytes(), repr(self.rows.groups))


class Phases:
    """Seconds of every phase of a command; one that comes again goes on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._start = time.monotonic()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start

    def summary(self) -> dict[str, float]:
        whole = time.monotonic() - self._start
        return {name: round(value, 2) for name, value in {**self.seconds, "total": whole}.items()}


def peak_mb(workers: int) -> float:
    """Most memory of this process, and of so many others like the largest of those it has started and ended."""
    own, theirs = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round((own + workers * theirs) / PER_MB, 1)


@contextmanager
def open_context(
    benchmark: BenchmarkOptions,
    formulas: FormulaOptions,
    recording: RecordingOptions,
    phases: Phases,
    *,
    published: str = "none",
) -> Iterator[DiscoveryContext]:
    """Rows, folds, the statistics of every network and scores of published proxies; BadInput for what cannot be."""
    factors = FACTORS if formulas.factor else (WITHOUT,)
    space = FormulaSpace(formulas.unary, parse_inputs(formulas.inputs), parse_reductions(formulas.reduction), factors)
    proxies = published_proxies(published)
    benchmark_rows, setup = load_rows(benchmark, recording, proxies)
    rows = FoldedRows.split(
        benchmark_rows.truth,
        benchmark_rows.networks,
        benchmark_rows.cells,
        seed=recording.seed,
        fitness=formulas.fitness,
        repeats=formulas.fold_seeds or (FOLD_SEEDS if formulas.exhaustive else 1),
    )
    by_network = dict(zip(benchmark_rows.networks, benchmark_rows.rows, strict=True))
    scored = [setup.request(by_network[name].config) for name in rows.network_names]
    requests = [replace(request, proxies={}) for request in scored]
    with worker_pool(recording.workers, recording.ray) as pool:
        with phases.phase("statistics"):
            table = make_table(requests, space, recording.out, pool)
        scores: dict[str, Values] = {}
        with phases.phase("known proxies"):
            if proxies:  # `rank` shares them
                results = Scorer(ScoreStore(recording.out), pool).score(scored, "known proxies")
                scores = {name: np.array([one.scores.get(name, np.nan) for one in results]) for name in setup.proxies}
        yield DiscoveryContext(benchmark_rows, setup, space, rows, requests, table, scores, recording.out, pool)


def make_table(
    requests: list[ScoreRequest], space: FormulaSpace, folder: Path, pool: WorkerPool
) -> StatisticsTable | LazyTable:
    """Statistics of all chains before a search, or of each when a formula needs it."""
    inputs = space.statistics_inputs
    if space.unary > TABLED:
        return LazyTable(requests, inputs, folder, pool)
    chains = space.chains
    tasks = [StatisticsRequest(request, inputs, chains) for request in requests]
    return StatisticsTable.stack(inputs, chains, take_statistics(tasks, folder, pool))


def load_rows(
    benchmark: BenchmarkOptions, recording: RecordingOptions, proxies: tuple[str, ...]
) -> tuple[RankedRows, ScoringSetup]:
    """The rows with a result, and how their networks are recorded."""
    _, trained = load_benchmark(benchmark)
    target = benchmark.target or trained.target
    rows = rows_with_result(trained, target, work="discovering")
    setup = scoring_setup(trained.space, ProxyOptions(proxies=proxies or ("parameters",)), recording)
    return RankedRows(trained, target, rows, {}, {}, {}, setup.loss), setup


def published_proxies(kind: str) -> tuple[str, ...]:
    """Proxies that are scored beside the formulas; `kind` is a name of PUBLISHED."""
    return tuple(name for name, proxy in PROXIES.items() if PUBLISHED[kind].includes(proxy.passes))
