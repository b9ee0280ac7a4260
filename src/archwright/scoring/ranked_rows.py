"""The rows of a benchmark with a target to predict, and the scores of their untrained networks."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.benchmarks import BENCHMARKS, Benchmark, BenchmarkTable, Row
from archwright.configs import scoring as so
from archwright.data.public_data import public_data
from archwright.errors import BadInput, Failed
from archwright.networks.roles import Counts
from archwright.proxies import Proxy, Unscored
from archwright.scoring.request import ScoreResult, count_network
from archwright.scoring.row_choice import ROWS_SHARE, choose_rows
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
    """Why a proxy is missing on a row that was scored, where it is."""
    loss: str
    sampled: tuple[str, ...] = ()
    """What was left out of scoring, and why; counts are those of all rows."""
    scored: tuple[int, ...] = ()
    """Places of the rows whose networks were scored."""
    counted: tuple[Counts, ...] = ()
    """Counts of all rows, where they are known already."""
    repeats: int = 10
    """Initial weights, and batches, that fit the time for the ablation."""

    @cached_property
    def truth(self) -> Values:
        """What training gave, higher is better."""
        return np.array([row.trained[self.target] for row in self.rows])

    @cached_property
    def counts(self) -> tuple[Counts, ...]:
        return self.counted or tuple(self.benchmark.space.counts(row.config) for row in self.rows)

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
            groups=groups, known=self.benchmark.known, size=samples, smallest_cell=self.benchmark.smallest_cell,
        )  # fmt: skip

    def architectures(self) -> list[dict[str, Any]]:
        """One entry per row whose network was scored, with everything a picture needs."""
        whole = list(zip(self.rows, self.networks, self.counts, strict=True))
        return [
            {
                "id": row.id, "trained": row.trained[self.target], "cell": row.cell, "network": network,
                "depth": counts.depth, "width": counts.width, "parameters": counts.parameters,
                "scores": {
                    name: float(column[index]) if np.isfinite(column[index]) else None
                    for name, column in self.scores.items()
                },
            }
            for index, (row, network, counts) in ((place, whole[place]) for place in self.scored)
        ]  # fmt: skip

    def tasks(self) -> list[list[float]] | None:
        """Results of the parts that the benchmark's main result is the mean of, where there are several."""
        derived = (self.target, *self.benchmark.derived)
        names = [name for name in self.benchmark.targets if name not in derived]
        if self.target != self.benchmark.target or len(names) < LEAST_TASKS:
            return None
        return [[row.trained[name] for name in names] for row in self.rows]

    def runs(self) -> Values | None:
        """Rows x ways in which networks were trained, NaN where there was no such run; None where all have one."""
        ways = sorted({way for row in self.rows for way in row.runs})
        if self.target != self.benchmark.target or len(ways) < 2:
            return None
        return np.array([[row.runs.get(way, np.nan) for way in ways] for row in self.rows])

    def notes(self) -> list[str]:
        """What a reader should know about the rows."""
        benchmark, lost = self.benchmark, len(self.benchmark.missing)
        unused = len(benchmark.rows) - len(self.rows)
        notes = [f"{benchmark.caution[0].upper()}{benchmark.caution[1:]}."] if benchmark.caution else []
        notes += [f"{len(self.rows)} rows, {len(set(self.networks))} different networks; {benchmark.licence}."]
        notes += [f"{lost} rows of the files have no usable result ({benchmark.missing[0].reason})."] if lost else []
        failures = {name: [row.id for row in self.rows if name in row.failed] for name in benchmark.targets}
        broken = [f"{name} {len(ids)} (rows {', '.join(ids)})" for name, ids in failures.items() if ids]
        notes += [f"Runs that failed on a task, kept with their results: {'; '.join(broken)}."] if broken else []
        notes += [f"{unused} rows have no {self.target}."] if unused else []
        return notes + list(self.sampled)


def load_benchmark(options: so.BenchmarkOptions) -> tuple[Path, BenchmarkTable]:
    """The folder of the files, and the trained architectures in them; BadInput for an unknown variant or target."""
    record = BENCHMARKS[options.benchmark]
    folder = options.data or benchmark_folder(record)
    benchmark = record.load(folder, options.variant)
    if options.target is not None and options.target not in benchmark.targets:
        raise BadInput(f"--target must be one of {', '.join(benchmark.targets)}, got {options.target!r}.")
    return folder, benchmark


def benchmark_folder(record: Benchmark) -> Path:
    """Where the files of a benchmark lie by default; BadInput with their address where there are none."""
    return record.shipped or public_data(record.folder, origin=record.origin, option="--data")


def rows_with_result(benchmark: BenchmarkTable, target: str, *, work: str) -> tuple[Row, ...]:
    """Rows that have the target; BadInput when they are too few for the work that is named."""
    rows = tuple(row for row in benchmark.rows if np.isfinite(row.trained.get(target, np.nan)))
    if len(rows) < LEAST_ROWS:
        raise BadInput(f"{work} needs at least {LEAST_ROWS} rows with a result, {benchmark.name} has {len(rows)}.")
    return rows


def score_rows(
    benchmark: BenchmarkTable,
    target: str,
    setup: ScoringSetup,
    options: so.ScoringOptions,
    scorer: Scorer,
    limits: so.SampleOptions = so.SampleOptions(),  # noqa: B008 a frozen record
) -> RankedRows:
    """Scores of the rows that fit, means over as many weights and batches as the options say; counts of all rows."""
    rows = rows_with_result(benchmark, target, work="ranking")
    counts = tuple(benchmark.space.counts(row.config) for row in rows)
    choice = choose_rows(
        counts,
        [row.cell for row in rows],
        tokens=setup.rows * setup.length * options.seeds * options.batches,
        wanted=limits.rows,
        minutes=limits.budget_minutes,
        workers=options.workers or os.cpu_count() or 1,
        seed=options.seed,
    )
    scores = {name: np.full(len(rows), np.nan) for name in setup.proxies}
    for name, proxy in setup.proxies.items():
        if proxy.closed_form:
            scores[name] = count_column(proxy, counts)
    scored = replace(setup, proxies={name: p for name, p in setup.proxies.items() if not p.closed_form})
    repeats = [(seed, batch) for seed in range(options.seeds) for batch in range(options.batches)]
    places = choice.places if scored.proxies else ()
    requests = [scored.request(rows[place].config, seed=s, batch=b) for place in places for s, b in repeats]
    results = scorer.score_until(requests, "scoring", deadline_of(limits))
    grouped = [results[start : start + len(repeats)] for start in range(0, len(results), len(repeats))]
    reached = [(place, group) for place, group in zip(places, grouped, strict=True) if None not in group]
    etas: dict[str, Values] = {}
    reasons: dict[str, str] = {}
    for place, group in reached:
        for result in filter(None, group):
            reasons |= result.missing
        for name in scored.proxies:
            scores[name][place] = np.mean([result.scores.get(name, np.nan) for result in group if result])
        for eta in group[0].etas if group[0] else ():
            column = etas.setdefault(eta, np.full(len(rows), np.nan))
            column[place] = np.mean([result.etas[eta] for result in group if result])
    if places and not reached:
        raise Failed(f"no network was scored within --budget-minutes {limits.budget_minutes:g}; allow more of them.")
    notes = list(choice.notes)
    if len(reached) < len(places):
        notes.append(
            f"--budget-minutes was over after {len(reached)} of {len(places)} networks; the others are missing."
        )
    return RankedRows(
        benchmark,
        target,
        rows,
        scores,
        etas,
        reasons,
        setup.loss,
        sampled=tuple(notes),
        counted=counts,
        scored=tuple(sorted(place for place, _ in reached)) if scored.proxies else tuple(range(len(rows))),
        repeats=choice.repeats,
    )


def deadline_of(limits: so.SampleOptions) -> float | None:
    """When scoring ends, on the clock of `time.monotonic`; it has six tenths of the minutes."""
    return None if limits.budget_minutes is None else monotonic() + 60 * ROWS_SHARE * limits.budget_minutes


def count_column(proxy: Proxy, counts: Sequence[Counts]) -> Values:
    """Of a proxy that reads nothing but counts, NaN where it is missing."""
    values = []
    for count in counts:
        try:
            values.append(count_network(count, proxy))
        except Unscored:
            values.append(np.nan)
    return np.array(values, dtype=np.float64)


def score_column(results: Sequence[ScoreResult], name: str) -> Values:
    """A proxy's scores, NaN where it is missing."""
    return np.array([result.scores.get(name, np.nan) for result in results])
