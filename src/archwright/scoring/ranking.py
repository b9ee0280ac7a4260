"""The parts of a ranking: scores of all rows, repeats that show the noise, what each proxy costs, and its judgement."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archwright.benchmarks import BENCHMARKS, Benchmark, Row
from archwright.configs import scoring as so
from archwright.data.public_data import public_data
from archwright.errors import BadInput
from archwright.networks.roles import Counts
from archwright.proxies import PROXIES, from_source
from archwright.scoring.request import ScoreResult, spectra_of
from archwright.scoring.scorer import Scorer, ScoringSetup
from archwright.statistics import Resampling, deciles, draw_resamples, judge_proxy, linear_baseline, random_baseline

if TYPE_CHECKING:
    pass

Values = NDArray[np.float64]
REPEATS = 10
"""Initial weights, and batches, of each architecture of the ablation."""
LEAST_ROWS = 20
LEAST_TASKS = 4


@dataclass(frozen=True)
class RankedRows:
    """A benchmark with a target to predict and the scores of its rows."""

    benchmark: Benchmark
    target: str
    rows: tuple[Row, ...]
    scores: Mapping[str, Values]
    """By proxy, NaN where it is missing."""
    etas: Mapping[str, Values]
    """V-PCA by share of variance; empty when it was not asked for."""
    reasons: Mapping[str, str]
    """Why a proxy is missing, where it is."""
    loss: str

    @cached_property
    def truth(self) -> Values:
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
    def groups(self) -> list[str]:
        """Rows that come and go together in a resample: twins of one cell (two recipes can mean one network and still
        differ in size, by nodes without effect)."""
        return [f"{cell} {network}" for cell, network in zip(self.cells, self.networks, strict=True)]

    @property
    def cells(self) -> list[str]:
        return [row.cell for row in self.rows]

    @property
    def parameters(self) -> Values:
        return np.array([count.parameters for count in self.counts], dtype=np.float64)

    @property
    def depth_width(self) -> Values | None:
        """None where rows are known by their size alone."""
        return np.stack(shape_of(self), axis=1) if self.benchmark.shaped else None

    def ground(self, *, rng: np.random.Generator, samples: int) -> Resampling:
        return draw_resamples(
            self.truth, cells=self.cells, parameters=self.parameters, rng=rng, depth_width=self.depth_width,
            groups=self.groups, known=self.benchmark.known, size=samples,
        )  # fmt: skip

    def architectures(self) -> list[dict[str, Any]]:
        """One entry per row, with everything a picture needs."""
        return [
            {
                "id": row.id, "trained": row.trained[self.target], "cell": row.cell, "network": self.networks[place],
                **{name: getattr(self.counts[place], name) for name in ("depth", "width", "parameters")},
                "scores": {name: number(column[place]) for name, column in self.scores.items()},
            }
            for place, row in enumerate(self.rows)
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
        said = [f"{len(self.rows)} rows, {len(set(self.networks))} different networks; {benchmark.licence}."]
        said += [f"{lost} rows of the files have no usable result ({benchmark.missing[0].reason})."] if lost else []
        return said + ([f"{unused} rows have no {self.target}."] if unused else [])


def number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def score_rows(
    benchmark: Benchmark, target: str, setup: ScoringSetup, looks: so.ScoringOptions, see: Scorer
) -> RankedRows:
    """All rows looked at, as often as the options say."""
    rows = tuple(row for row in benchmark.rows if np.isfinite(row.trained.get(target, np.nan)))
    if len(rows) < LEAST_ROWS:
        raise BadInput(f"ranking needs at least {LEAST_ROWS} rows with a result, {benchmark.name} has {len(rows)}.")
    repeats = [(seed, batch) for seed in range(looks.seeds) for batch in range(looks.batches)]
    wanted = [setup.look(row.config, seed=seed, batch=batch) for row in rows for seed, batch in repeats]
    seen = see.scores(wanted, "looking")
    table = {name: column(seen, name).reshape(len(rows), -1).mean(axis=1) for name in setup.proxies}
    etas = {eta: np.array([one.etas[eta] for one in seen]).reshape(len(rows), -1).mean(axis=1) for eta in seen[0].etas}
    reasons = {name: why for one in seen for name, why in one.missing.items()}
    return RankedRows(benchmark, target, rows, table, etas, reasons, setup.loss)


def column(seen: Sequence[ScoreResult], name: str) -> Values:
    """A proxy's scores, NaN where it is missing."""
    return np.array([one.scores.get(name, np.nan) for one in seen])


def ablation(field: RankedRows, setup: ScoringSetup, see: Scorer) -> dict[str, Any]:
    """Ten architectures, one per decile of the trained result, with other weights and with other batches."""
    places = deciles(field.truth)
    rows = [field.rows[int(place)] for place in places]
    repeats: dict[str, list[dict[str, int]]] = {
        "seeds": [{"seed": number} for number in range(REPEATS)],
        "batches": [{"batch": number} for number in range(REPEATS)],
    }
    found: dict[str, Any] = {"ids": [row.id for row in rows]}
    for kind, changes in repeats.items():
        seen = see.scores(
            [setup.look(row.config, **change) for row in rows for change in changes], f"ablation of {kind}"
        )
        tables = {name: column(seen, name).reshape(len(rows), REPEATS) for name in setup.proxies}
        found[kind] = {name: table.tolist() for name, table in tables.items() if np.isfinite(table).all()}
    return found


def judged_rows(
    field: RankedRows,
    repeats: Mapping[str, Any] | None,
    setup: ScoringSetup,
    costs: Mapping[str, Mapping[str, float | None]],
    against: Resampling,
) -> list[dict[str, Any]]:
    """The report's row of every proxy."""
    rows = []
    for name in setup.proxies:
        if name in BASELINES:  # judged over many draws instead, see baseline_rows
            continue
        tables = {kind: (repeats or {}).get(kind, {}).get(name) for kind in ("seeds", "batches")}
        judged = judge_proxy(field.scores[name], against, **tables).as_dict()
        missing = {"count": judged.pop("missing"), "reason": field.reasons.get(name, "")}
        proxy = PROXIES[name] if name in PROXIES else from_source(name, setup.own[name])
        kind = {"origin": proxy.origin, "gradient_free": proxy.gradient_free}
        rows.append({"proxy": name, **kind, **judged, "missing": missing, **costs.get(name, NO_COST)})
    return rows


BASELINES = (CHANCE, LINE) = ("random", "linear_10_labels")
NO_COST: dict[str, Any] = {"seconds_per_architecture": None, "peak_memory_mb": None}
BASELINE = {"origin": "count", "gradient_free": True, "seconds_per_architecture": 0.0, "peak_memory_mb": 0.0}


def baseline_rows(field: RankedRows, against: Resampling, *, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Chance, and a line through ten trained networks."""
    columns = [np.log(field.parameters), *([] if field.depth_width is None else shape_of(field))]
    found = {
        CHANCE: random_baseline(against, rng=rng),
        LINE: linear_baseline(np.stack(columns, axis=1), against, rng=rng),
    }
    rows = []
    for name, judged in found.items():
        values = judged.as_dict()
        lacking = values.pop("missing")
        missing = {"count": lacking, "reason": "labelled networks are left out" if lacking else ""}
        rows.append({"proxy": name, **BASELINE, **values, "missing": missing})
    return rows


def shape_of(field: RankedRows) -> list[Values]:
    return [np.array([getattr(count, name) for count in field.counts], dtype=np.float64) for name in ("depth", "width")]


def costs(field: RankedRows, setup: ScoringSetup, see: Scorer) -> dict[str, dict[str, float | None]]:
    """What each proxy takes by itself, on the architecture of median size."""
    order = np.argsort(field.parameters, kind="stable")
    middle = field.rows[int(order[len(order) // 2])]
    wanted = [replace(setup.look(middle.config), proxies=(name,)) for name in setup.proxies]
    found = see.alone(wanted, "cost of each proxy")
    return {
        name: {"seconds_per_architecture": one["seconds"], "peak_memory_mb": one["peak_mb"]}
        for name, one in zip(setup.proxies, found, strict=True)
    }


def sweep(field: RankedRows, against: Resampling) -> list[dict[str, Any]] | None:
    """V-PCA and W-PCA at other shares of the variance."""
    rows = []
    for eta, dimensions in field.etas.items():
        judged = judge_proxy(dimensions * field.parameters, against.points())
        plain = judge_proxy(dimensions, against.points())
        rows.append(
            {
                "eta": float(eta),
                "spearman": judged.spearman,
                "within_cells": judged.within_cells,
                "v_pca": plain.spearman,
            }
        )
    return rows or None


def scree(field: RankedRows, setup: ScoringSetup) -> dict[str, Any] | None:
    """Shares of variance of every component, layer by layer, in the best trained network; None where it has no FFN."""
    best = field.rows[int(np.argmax(field.truth))]
    found = spectra_of(setup.look(best.config))
    return {"id": best.id, "layers": found} if found else None


POWERS = np.linspace(0, 2, 9)


def powers(field: RankedRows, against: Resampling) -> dict[str, Any] | None:
    """Spearman of parameters^a x V-PCA^b: where W-PCA (1, 1) lies among its neighbours."""
    if not np.isfinite(field.scores.get("v_pca", np.array([np.nan]))).all():
        return None
    one, two = np.log(field.parameters), np.log(np.maximum(field.scores["v_pca"], 1))
    table = [[judge_proxy(a * one + b * two, against.points()).spearman for b in POWERS] for a in POWERS]
    return {"a": POWERS.tolist(), "b": POWERS.tolist(), "spearman": table}


def benchmark_of(table: so.BenchmarkOptions) -> tuple[Path, Benchmark]:
    """Where the files are, and the trained architectures in them."""
    source = BENCHMARKS[table.benchmark]
    folder = table.data or public_data(source.folder, origin=source.origin, option="--data")
    variant = table.variant or source.variants[0]
    if variant not in source.variants:
        raise BadInput(f"--variant must be one of {', '.join(source.variants)}, got {variant!r}.")
    benchmark = source.load(folder, variant)
    if table.target is not None and table.target not in benchmark.targets:
        raise BadInput(f"--target must be one of {', '.join(benchmark.targets)}, got {table.target!r}.")
    return folder, benchmark
