"""The rows of a benchmark with a target to predict, and the scores of their untrained networks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.benchmarks import BENCHMARKS, BenchmarkTable, Row
from archwright.configs import scoring as so
from archwright.data.public_data import public_data
from archwright.errors import BadInput
from archwright.networks.roles import Counts
from archwright.scoring.request import ScoreResult
from archwright.scoring.scorer import Scorer
from archwright.scoring.setup import ScoringSetup
from archwright.statistics import Resampling, draw_resamples

Values = NDArray[np.float64]
LEAST_ROWS = 20
LEAST_TASKS = 4


@dataclass(frozen=True)
class RankedRows:
    """Rows with a trained result, and a score of each by every proxy."""

    benchmark: BenchmarkTable
    target: str
    rows: tuple[Row, ...]
    scores: Mapping[str, Values]
    """By proxy, NaN where it is missing."""
    etas: Mapping[str, Values]
    """V-PCA by share of variance; empty when it was not among the proxies."""
    reasons: Mapping[str, str]
    """Why a proxy is missing, where it is."""
    loss: str

    @cached_property
    def truth(self) -> Values:
        """What training gave, higher is better."""
        return np.array([row.trained[self.target] for row in self.rows])

    @cached_property
    def counts(self) -> list[Counts]:
        return [self.benchmark.space.counts(row.config) for row in self.rows]

    @cached_property
    def networks(self) -> list[str]:
        """One name per distinct network that was trained: twins have the same."""
        space = self.benchmark.space
        return [row.network or json.dumps(space.canonical(row.config), sort_keys=True) for row in self.rows]

    @property
    def cells(self) -> list[str]:
        return [row.cell for row in self.rows]

    @property
    def parameters(self) -> Values:
        return np.array([count.parameters for count in self.counts], dtype=np.float64)

    @property
    def depth_width(self) -> Values | None:
        """Rows x 2; None where rows are known by their size alone."""
        if not self.benchmark.shaped:
            return None
        return np.array([(count.depth, count.width) for count in self.counts], dtype=np.float64)

    def resample(self, *, rng: np.random.Generator, samples: int) -> Resampling:
        """Bootstrap samples of the rows. Twins of one cell come and go together: two recipes can mean one network and
        still differ in size, by nodes without effect."""
        groups = [f"{cell} {network}" for cell, network in zip(self.cells, self.networks, strict=True)]
        return draw_resamples(
            self.truth, cells=self.cells, parameters=self.parameters, rng=rng, depth_width=self.depth_width,
            groups=groups, known=self.benchmark.known, size=samples,
        )  # fmt: skip

    def architectures(self) -> list[dict[str, Any]]:
        """One entry per row, with everything a picture needs."""
        return [
            {
                "id": row.id, "trained": row.trained[self.target], "cell": row.cell, "network": network,
                "depth": counts.depth, "width": counts.width, "parameters": counts.parameters,
                "scores": {
                    name: float(column[index]) if np.isfinite(column[index]) else None
                    for name, column in self.scores.items()
                },
            }
            for index, (row, network, counts) in enumerate(zip(self.rows, self.networks, self.counts, strict=True))
        ]  # fmt: skip

    def tasks(self) -> list[list[float]] | None:
        """Results of the parts that the benchmark's main result is the mean of, where there are several."""
        names = [name for name in self.benchmark.targets if name != self.target]
        if self.target != self.benchmark.target or len(names) < LEAST_TASKS:
            return None
        return [[row.trained[name] for name in names] for row in self.rows]

    def notes(self) -> list[str]:
        """What a reader should know about the rows."""
        benchmark, lost = self.benchmark, len(self.benchmark.missing)
        unused = len(benchmark.rows) - len(self.rows)
        notes = [f"{len(self.rows)} rows, {len(set(self.networks))} different networks; {benchmark.licence}."]
        notes += [f"{lost} rows of the files have no usable result ({benchmark.missing[0].reason})."] if lost else []
        return notes + ([f"{unused} rows have no {self.target}."] if unused else [])


def load_benchmark(options: so.BenchmarkOptions) -> tuple[Path, BenchmarkTable]:
    """The folder of the files, and the trained architectures in them; BadInput for an unknown variant or target."""
    record = BENCHMARKS[options.benchmark]
    folder = options.data or public_data(record.folder, origin=record.origin, option="--data")
    benchmark = record.load(folder, options.variant)
    if options.target is not None and options.target not in benchmark.targets:
        raise BadInput(f"--target must be one of {', '.join(benchmark.targets)}, got {options.target!r}.")
    return folder, benchmark


def rows_with_result(benchmark: BenchmarkTable, target: str, *, work: str) -> tuple[Row, ...]:
    """Rows that have the target; BadInput when they are too few for the work that is named."""
    rows = tuple(row for row in benchmark.rows if np.isfinite(row.trained.get(target, np.nan)))
    if len(rows) < LEAST_ROWS:
        raise BadInput(f"{work} needs at least {LEAST_ROWS} rows with a result, {benchmark.name} has {len(rows)}.")
    return rows


def score_rows(
    benchmark: BenchmarkTable, target: str, setup: ScoringSetup, options: so.ScoringOptions, scorer: Scorer
) -> RankedRows:
    """Scores of all rows, means over as many weights and batches as the options say."""
    rows = rows_with_result(benchmark, target, work="ranking")
    repeats = [(seed, batch) for seed in range(options.seeds) for batch in range(options.batches)]
    requests = [setup.request(row.config, seed=seed, batch=batch) for row in rows for seed, batch in repeats]
    results = scorer.score(requests, "scoring")
    scores = {name: score_column(results, name).reshape(len(rows), -1).mean(axis=1) for name in setup.proxies}
    etas = {
        eta: np.array([result.etas[eta] for result in results]).reshape(len(rows), -1).mean(axis=1)
        for eta in results[0].etas
    }
    reasons = {name: why for result in results for name, why in result.missing.items()}
    return RankedRows(benchmark, target, rows, scores, etas, reasons, setup.loss)


def score_column(results: Sequence[ScoreResult], name: str) -> Values:
    """A proxy's scores, NaN where it is missing."""
    return np.array([result.scores.get(name, np.nan) for result in results])
