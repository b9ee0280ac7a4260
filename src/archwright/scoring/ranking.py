"""The pipeline of `rank`: load a benchmark, score its rows, repeat, measure costs, resample, judge proxies, report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from archwright.benchmarks import BENCHMARKS, BenchmarkTable
from archwright.benchmarks.benchmark import PublishedMetric, Repeats, ShortTraining
from archwright.configs import scoring as so
from archwright.environment import environment
from archwright.networks.roles import Counts
from archwright.proxies import PROXIES, Proxy
from archwright.random_streams import BASELINES, CEILING, RESAMPLING
from archwright.scoring.ranked_rows import LEAST_ROWS, RankedRows, Values, load_benchmark, score_column, score_rows
from archwright.scoring.request import CostRequest, ffn_spectra
from archwright.scoring.scorer import Scorer, open_scorer
from archwright.scoring.setup import ScoringSetup, check_page, scoring_setup
from archwright.statistics import (
    Resampling,
    choice_effects,
    deciles,
    judge_proxy,
    linear_baseline,
    noise_ceiling,
    published_numbers,
    random_baseline,
)
from archwright.statistics.positional import positional_predictions
from archwright.statistics.proxies import Judgement, correct_verdicts
from archwright.statistics.ranks import kendall, spearman

SCHEMA = "archwright/rank/1"
ALWAYS = ("parameters", "nonembedding", "flops", "depth", "depth_width")
"""Proxies that no report is without."""
RANDOM, LINEAR, POSITIONAL = "random", "linear_10_labels", "positional_fit"
"""Baselines: chance, judged over many draws; a line through ten trained networks; and a cross-fitted regression on the
sizes of every layer, with four fifths of the labels of a cell."""
NETWORKS = 10
"""Architectures of the ablation."""
MANY_ROWS = 1000
"""Rows from which on baselines that are judged over many draws are judged on the scored rows."""
MOST_DRAWN = 1_000_000
"""Rows times bootstrap samples; large tables have fewer samples, at least 200, and need fewer."""
POWERS = np.linspace(0, 2, 9)
Row = dict[str, Any]


def rank_benchmark(config: so.RankConfig) -> tuple[dict[str, Any], Path]:
    """The report as a document, and where its page goes; BadInput for what cannot be, before any network is scored."""
    options, judgement = config.scoring, config.judgement
    folder, benchmark = load_benchmark(config.benchmark)
    page = check_page(judgement.html or options.out / f"{benchmark.name}-{benchmark.variant}.html")
    setup = scoring_setup(benchmark.space, config.proxies, options, always=ALWAYS)
    target = config.benchmark.target or benchmark.target
    with open_scorer(options) as scorer:
        ranked = score_rows(benchmark, target, setup, options, scorer, config.limits)
        repeats = repeat_scores(ranked, setup, scorer, judgement) if judgement.ablation else None
        costs = measure_costs(ranked, setup, scorer)
    resampling = ranked.resample(
        rng=np.random.default_rng((options.seed, RESAMPLING)), samples=bootstrap_samples(len(ranked.rows), judgement)
    )
    rows = judge_proxies(ranked, repeats, setup, costs, resampling)
    rows += judge_baselines(ranked, resampling, rng=np.random.default_rng((options.seed, BASELINES)))
    published = published_repeats(benchmark, BENCHMARKS[benchmark.name].read_repeats(folder)) if repeats else None
    best = max((ranked.rows[place] for place in ranked.scored), key=lambda row: row.trained[target])
    spectra = ffn_spectra(setup.request(best.config))
    document = {
        **summarize(ranked, setup, options),
        "rows": rows,
        **figures(ranked, resampling),
        "ablation": repeats,
        "published_ablation": published,
        "spectra": {"id": best.id, "layers": spectra} if spectra else None,
        "environment": environment(),
        "notes": [*ranked.notes(), *setting_notes(config, ranked, repeats)],
    }
    return document, page


def bootstrap_samples(rows: int, judgement: so.JudgementOptions) -> int:
    return min(judgement.samples, max(200, MOST_DRAWN // rows))


def setting_notes(config: so.RankConfig, ranked: RankedRows, repeats: Mapping[str, Any] | None) -> list[str]:
    """What the defaults left out, one line each."""
    notes = []
    if not config.proxies.proxies and not config.proxies.all_proxies:
        left = [name for name in PROXIES if not PROXIES[name].is_default]
        notes.append(f"{len(left)} proxies that take long (Hessian, noise, nuclear norms) are left out; --all-proxies.")
    if config.judgement.ablation and repeats is None:
        notes.append("No repeats with other weights and batches, they do not fit the minutes; --repeats 3 adds them.")
    samples = bootstrap_samples(len(ranked.rows), config.judgement)
    if samples < config.judgement.samples:
        notes.append(f"{samples} bootstrap samples, because the table has {len(ranked.rows)} rows.")
    return notes


def repeat_scores(
    ranked: RankedRows, setup: ScoringSetup, scorer: Scorer, judgement: so.JudgementOptions
) -> dict[str, Any] | None:
    """Ten architectures, one per decile of the trained result, with other weights and with other batches.

    None where so many repeats do not fit the time, or too few rows were scored.
    """
    amount = judgement.repeats or ranked.repeats
    if amount < 2 or len(ranked.scored) < NETWORKS:
        return None
    places = np.array(ranked.scored)
    rows = [ranked.rows[int(place)] for place in places[deciles(ranked.truth[places])]]
    setup = replace(setup, proxies={name: p for name, p in setup.proxies.items() if not p.closed_form})
    changes: dict[str, list[dict[str, int]]] = {
        "seeds": [{"seed": number} for number in range(amount)],
        "batches": [{"batch": number} for number in range(amount)],
    }
    tables: dict[str, Any] = {"ids": [row.id for row in rows]}
    for kind, numbers in changes.items():
        requests = [setup.request(row.config, **number) for row in rows for number in numbers]
        results = scorer.score(requests, f"ablation of {kind}")
        scores = {name: score_column(results, name).reshape(len(rows), amount) for name in setup.proxies}
        tables[kind] = {name: table.tolist() for name, table in scores.items() if np.isfinite(table).all()}
    return tables


def measure_costs(ranked: RankedRows, setup: ScoringSetup, scorer: Scorer) -> dict[str, dict[str, float | None]]:
    """What each proxy takes by itself, on the scored architecture of median size; counts take nothing."""
    places = sorted(ranked.scored, key=lambda place: ranked.counts[place].parameters)
    groups: dict[tuple[str, ...], dict[str, Proxy]] = {}
    for name, proxy in setup.proxies.items():
        if not proxy.closed_form:
            groups.setdefault(proxy.passes, {})[name] = proxy
    request = setup.request(ranked.rows[places[len(places) // 2]].config)
    requests = [CostRequest(replace(request, proxies=proxies)) for proxies in groups.values()]
    costs = scorer.measure_costs(requests, "cost of each proxy")
    nothing: dict[str, float | None] = {"seconds": 0.0, "peak_mb": 0.0}
    return {
        name: {"seconds_per_architecture": cost["seconds"], "peak_memory_mb": cost["peak_mb"]}
        for name in setup.proxies
        for cost in [costs.get(name, nothing)]
    }


def judge_proxies(
    ranked: RankedRows,
    repeats: Mapping[str, Any] | None,
    setup: ScoringSetup,
    costs: Mapping[str, Mapping[str, float | None]],
    resampling: Resampling,
) -> list[Row]:
    """The report's row of every proxy, judged among all of them; the random one is a baseline."""
    judged = {
        name: judge_proxy(
            ranked.scores[name],
            resampling,
            **{kind: (repeats or {}).get(kind, {}).get(name) for kind in ("seeds", "batches")},
        )
        for name in setup.proxies
        if name != RANDOM
    }
    rows = []
    for name, judgement in correct_verdicts(judged).items():
        columns, proxy = judgement.as_dict(), setup.proxies[name]
        unscored = 0 if proxy.closed_form else len(ranked.rows) - len(ranked.scored)  # a note says which and why
        missing = {"count": columns.pop("missing") - unscored, "reason": ranked.reasons.get(name, "")}
        kind = {"origin": proxy.origin, "gradient_free": proxy.gradient_free}
        rows.append({"proxy": name, **kind, **columns, "missing": missing, **costs[name]})
    return rows


def judge_baselines(ranked: RankedRows, resampling: Resampling, *, rng: np.random.Generator) -> list[Row]:
    """Chance, a line through ten trained networks, and a regression on the sizes of every layer."""
    places = np.array(ranked.scored if len(ranked.rows) > MANY_ROWS else range(len(ranked.rows)))
    shape = [] if ranked.depth_width is None else list(ranked.depth_width.T)
    predictors = np.stack([np.log(ranked.parameters), *shape], axis=1)[places]
    drawn = resampling.on(places)
    judged = {RANDOM: random_baseline(drawn, rng=rng), LINEAR: linear_baseline(predictors, drawn, rng=rng)}
    if (features := layer_features(ranked.counts)) is not None:
        predicted = positional_predictions(features, ranked.truth, resampling.cells, resampling.groups, rng=rng)
        if np.isfinite(predicted).any():
            judged[POSITIONAL] = judge_proxy(predicted, resampling)
    rows = [baseline_row(name, judgement) for name, judgement in judged.items()]
    for steps, results, seconds in short_trainings(ranked):
        rows.append(baseline_row(f"trained_{steps}_steps", judge_proxy(results, resampling), seconds=seconds))
    return rows


def baseline_row(name: str, judgement: Judgement, *, seconds: float | None = None) -> Row:
    """The report's row of a baseline; one with seconds is a short training, which goes back through the network."""
    columns = judgement.as_dict()
    count = columns.pop("missing")
    missing = {"count": count, "reason": BASELINE_GAPS.get(name, "no short training") if count else ""}
    free = {"origin": "count", "gradient_free": True, "seconds_per_architecture": 0.0, "peak_memory_mb": 0.0}
    trained = {
        "origin": "training",
        "gradient_free": False,
        "seconds_per_architecture": seconds,
        "peak_memory_mb": None,
    }
    return {"proxy": name, **(free if seconds is None else trained), **columns, "missing": missing}


def short_trainings(ranked: RankedRows) -> list[tuple[int, Values, float]]:
    """Steps, results of all rows (NaN where there is none) and median seconds of every length a benchmark has."""
    found: dict[int, dict[int, ShortTraining]] = {}
    for place, row in enumerate(ranked.rows):
        for training in row.short:
            found.setdefault(training.steps, {})[place] = training
    columns = []
    for steps, trainings in sorted(found.items()):
        results = np.full(len(ranked.rows), np.nan)
        results[list(trainings)] = [training.result for training in trainings.values()]
        columns.append((steps, results, float(np.median([training.seconds for training in trainings.values()]))))
    return columns


BASELINE_GAPS = {
    RANDOM: "judged on the scored rows",
    LINEAR: "labelled networks are left out",
    POSITIONAL: "cells that are too small to fit in",
}


def layer_features(counts: Sequence[Counts]) -> Values | None:
    """Rows x columns: heads, token-mixing and FFN weights of every layer, as logarithms, and what is in no linear.

    None where a space does not tell the sizes of its layers.
    """
    if not all(count.layers for count in counts):
        return None
    deepest = max(len(count.layers) for count in counts)
    columns = np.zeros((len(counts), 3 * deepest + 1))
    for row, count in zip(columns, counts, strict=True):
        for place, layer in enumerate(count.layers):
            row[3 * place : 3 * place + 3] = np.log([max(1, n) for n in (layer.heads, layer.mixing, layer.ffn)])
        row[-1] = count.nonembedding - sum(layer.total for layer in count.layers)
    return columns


def summarize(ranked: RankedRows, setup: ScoringSetup, options: so.ScoringOptions) -> dict[str, Any]:
    """What was ranked, how it was recorded, and how well anything could do."""
    benchmark = ranked.benchmark
    ceiling = noise_ceiling(
        ranked.truth,
        networks=ranked.networks,
        cells=ranked.cells,
        tasks=ranked.tasks(),
        runs=ranked.runs(),
        smallest_cell=benchmark.smallest_cell,
        rng=np.random.default_rng((options.seed, CEILING)),
    )
    return {
        "schema": SCHEMA,
        "benchmark": benchmark.name,
        "n": len(ranked.rows),
        "variant": benchmark.variant,
        "known": benchmark.known,
        "caution": benchmark.caution or None,
        "scored": len(ranked.scored),
        "target": ranked.target,
        "targets": list(benchmark.targets),
        "licence": benchmark.licence,
        "loss": ranked.loss,
        "seed": options.seed,
        "seeds": options.seeds,
        "batches": options.batches,
        "initial": options.initial,
        "batch": [setup.rows, setup.length],
        "noise_ceiling": ceiling.as_dict() if ceiling else None,
    }


def figures(ranked: RankedRows, resampling: Resampling) -> dict[str, Any]:
    """What the page draws beside the table."""
    benchmark = ranked.benchmark
    parity = [compare_published(ranked, metric) for metric in BENCHMARKS[benchmark.name].metrics]
    return {
        "architectures": ranked.architectures(),
        "xray": choice_effects([benchmark.space.traits(row.config) for row in ranked.rows], ranked.truth),
        "published": [entry for entry in published_numbers() if entry["benchmark"] == benchmark.name],
        "parity": [row for row in parity if row] or None,
        "eta": sweep_eta(ranked, resampling),
        "powers": sweep_powers(ranked, resampling),
    }


def sweep_eta(ranked: RankedRows, resampling: Resampling) -> list[Row] | None:
    """V-PCA and W-PCA at other shares of the variance."""
    rows = []
    for eta, dimensions in ranked.etas.items():
        weighted = judge_proxy(dimensions * ranked.parameters, resampling.points())
        plain = judge_proxy(dimensions, resampling.points()).spearman
        within = weighted.within_cells
        rows.append({"eta": float(eta), "spearman": weighted.spearman, "within_cells": within, "v_pca": plain})
    return rows or None


def sweep_powers(ranked: RankedRows, resampling: Resampling) -> dict[str, Any] | None:
    """Spearman of parameters^a x V-PCA^b: where W-PCA (1, 1) lies among its neighbours."""
    if np.isfinite(ranked.scores.get("v_pca", np.array([np.nan]))).sum() < LEAST_ROWS:
        return None
    parameters, v_pca = np.log(ranked.parameters), np.log(np.maximum(ranked.scores["v_pca"], 1))
    table = [[judge_proxy(a * parameters + b * v_pca, resampling.points()).spearman for b in POWERS] for a in POWERS]
    return {"a": POWERS.tolist(), "b": POWERS.tolist(), "spearman": table}


def compare_published(ranked: RankedRows, metric: PublishedMetric) -> Row | None:
    """How a published column agrees with our proxy, and how both do on the same rows; None when either is not there."""
    theirs = np.array([row.published.get(metric.column, np.nan) for row in ranked.rows])
    ours = ranked.scores.get(metric.proxy)
    if ours is None or (both := np.isfinite(theirs) & np.isfinite(ours)).sum() < LEAST_ROWS:
        return None
    ours, theirs, truth = ours[both], theirs[both], ranked.truth[both]

    def correlation(statistic: Callable[[Values, Values], float], a: Values, b: Values) -> float | None:
        return statistic(a, b) if np.ptp(a) and np.ptp(b) else None  # none where one side is constant

    return {
        "metric": metric.column, "proxy": metric.proxy, "n": int(both.sum()), "note": metric.note,
        "spearman": correlation(spearman, ours, theirs),
        "our_spearman": correlation(spearman, ours, truth),
        "published_spearman": correlation(spearman, theirs, truth),
        "our_kendall_b": correlation(kendall, ours, truth),
        "published_kendall_b": correlation(kendall, theirs, truth),
    }  # fmt: skip


def published_repeats(benchmark: BenchmarkTable, repeats: Repeats) -> dict[str, Any] | None:
    """The authors' repeats by the names of our proxies, as `repeat_scores` gives ours; None without any."""
    if not repeats:
        return None
    ids = sorted(set.intersection(*(set(rows) for rows in repeats.values())))
    tables: dict[str, Any] = {"ids": ids}
    for kind, rows in repeats.items():
        tables[kind] = {
            metric.proxy: [[values[metric.column] for values in rows[row]] for row in ids]
            for metric in BENCHMARKS[benchmark.name].metrics
            if all(metric.column in values for row in ids for values in rows[row])
        }
    return tables
