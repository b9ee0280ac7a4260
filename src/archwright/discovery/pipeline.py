"""The pipeline of `discover`: rows and statistics, search, cross-fitting, transfer to other benchmarks, report."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from archwright.configs.discover import DiscoverConfig
from archwright.configs.options import changed_flags, refuse_options
from archwright.configs.scoring import BenchmarkOptions, RecordingOptions
from archwright.discovery.context import TABLED, DiscoveryContext, Phases, open_context, peak_mb
from archwright.discovery.cross_fitting import FormulaSearchResult, judge_choice
from archwright.discovery.disguise import check_formulas, explain
from archwright.discovery.evolution_runs import evolution_settings, run_evolution
from archwright.discovery.exhaustive import FOLDER, rank_all
from archwright.discovery.fitness import FITNESS
from archwright.discovery.transfer import BenchmarkSearch, compare_transfer
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.proxies import PROXIES
from archwright.proxies.formulas.discovered import SCHEMA as PROXY_SCHEMA
from archwright.proxies.formulas.discovered import proxy_folder
from archwright.random_streams import CHECKED_NETWORKS, RESAMPLING
from archwright.reports.discover.page import render_discover_page
from archwright.scoring.setup import check_page
from archwright.spaces.formulas import MOST_UNARY
from archwright.store import write_atomic

SCHEMA = "archwright/discover/1"
PAGE = "discover-{benchmark}-{search}-{unary}.html"
SAME_RANKS = 0.9999
"""Spearman between the scores of a formula on two batches from which on they rank alike."""
PROXY_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def discover_formulas(config: DiscoverConfig) -> tuple[dict[str, Any], Path, Path | None]:
    """Formulas searched without each of five folds and judged on it, for several splits; the last one is chosen on all
    rows.

    The same on every benchmark of --transfer, where what was found on the others is judged, too. Gives the document of
    the report, its page, and the file of the proxy where it is saved.
    """
    validate(config)
    formulas, findings, recording = config.formulas, config.findings, config.recording
    kind = "exhaustive" if formulas.exhaustive else "evolve"
    name = PAGE.format(benchmark=config.benchmark.benchmark, search=kind, unary=formulas.unary)
    page = check_page(findings.html or recording.out / name)
    phases = Phases()
    main, result = search_benchmark(config, config.benchmark, recording, phases)
    others = [
        search_benchmark(config, BenchmarkOptions(name), replace(recording, loss=None), phases)[0]
        for name in findings.transfer
    ]
    workers = 0 if recording.ray or recording.workers == 1 else recording.workers or os.cpu_count() or 1
    document = {
        **describe_search(main.context, config),
        **result.numbers,
        "best": main.best,
        "simplest": main.simplest,
        "counts": main.checks,
        "transfer": compare_transfer([main, *others]) if others else None,
        "seconds": phases.summary(),
        "peak_mb": peak_mb(workers),
        "data": main.context.digest,
        "commit": git_commit(),
        "environment": environment(),
        "notes": [*main.context.benchmark_rows.notes(), *result.notes, *checks_notes(main.checks)],
    }
    write_atomic(page, render_discover_page(document))
    return document, page, save_proxy(findings.save, document) if findings.save else None


def checks_notes(checks: Mapping[str, Any]) -> list[str]:
    """What the statistics of the formulas really count, and which formulas rank otherwise on another batch."""
    moved = [each for each in checks["formulas"] if (each["batch_spearman"] or 0) < SAME_RANKS]
    return [
        *map(explain, checks["statistics"]),
        *(
            f"{each['formula']} ranks otherwise with half of the texts: Spearman {each['batch_spearman']:.3f}."
            for each in moved
            if each["batch_spearman"] is not None
        ),
    ]


def search_benchmark(
    config: DiscoverConfig, benchmark: BenchmarkOptions, recording: RecordingOptions, phases: Phases
) -> tuple[BenchmarkSearch, FormulaSearchResult]:
    """One benchmark searched, and what was found judged on its outer folds."""
    with (
        open_context(benchmark, config.formulas, recording, phases, published=config.findings.published) as context,
        phases.phase("search"),
    ):
        result = rank_all(context) if config.formulas.exhaustive else run_evolution(context, config.evolution)
        with phases.phase("checking"):
            found = dict.fromkeys(choice.final[2] for choice in (*result.chosen, result.simplest) if choice)
            rng = np.random.default_rng((recording.seed, CHECKED_NETWORKS))
            checks = check_formulas(
                tuple(found), context.requests, context.pool, rng=rng, folder=context.folder / FOLDER
            )
    with phases.phase("judging"):
        rng = np.random.default_rng((recording.seed, RESAMPLING))
        against = context.benchmark_rows.resample(rng=rng, samples=config.findings.samples)
        judge = partial(judge_choice, table=context.table, rows=context.rows, against=against, seed=recording.seed)
        best = [judge(choice) for choice in result.chosen]
        simplest = judge(result.simplest) if result.simplest else None
    return BenchmarkSearch(context, against, best, simplest, checks), result


def validate(config: DiscoverConfig) -> None:
    """Raises BadInput for options that cannot go together, before any work is done."""
    formulas, findings = config.formulas, config.findings
    if formulas.exhaustive == formulas.evolve:
        raise BadInput("give either --exhaustive or --evolve.")
    if formulas.exhaustive and TABLED < formulas.unary <= MOST_UNARY:
        raise BadInput(f"--exhaustive ranks up to --unary {TABLED}, got {formulas.unary}; longer chains: --evolve.")
    if formulas.exhaustive and FITNESS[formulas.fitness].objectives:
        raise BadInput("--fitness pareto is a way to evolve; with --exhaustive use both, the report has the front.")
    if config.benchmark.benchmark in findings.transfer or len(set(findings.transfer)) < len(findings.transfer):
        raise BadInput(f"--transfer must name other benchmarks, each once, got {', '.join(findings.transfer)}.")
    name = findings.save
    if name is not None and not PROXY_NAME.fullmatch(name):
        raise BadInput(f"--save must be a name of small letters, digits and _, at most 40, got {name!r}.")
    if name is not None and name in PROXIES and PROXIES[name].origin != "discovered":
        raise BadInput(f"--save must be a name of its own, {name!r} is a listed proxy; choose another.")
    if formulas.exhaustive:  # the preset has settings of the space, too
        refuse_options(changed_flags(config.evolution) - {"--preset"}, "without --evolve")
    evolution_settings(config.evolution, formulas.fitness)


def describe_search(context: DiscoveryContext, config: DiscoverConfig) -> dict[str, Any]:
    """What was searched, and on what."""
    size, rows, trained = context.space.size(), context.rows, context.benchmark_rows
    return {
        "schema": SCHEMA,
        "benchmark": trained.benchmark.name,
        "variant": trained.benchmark.variant,
        "target": trained.target,
        "n": len(trained.rows),
        "networks": len(rows.network_names),
        "unary": config.formulas.unary,
        "inputs": list(context.space.inputs),
        "reduction": ",".join(context.space.reductions),
        "factor": config.formulas.factor,
        "fitness": config.formulas.fitness,
        "seed": context.setup.seed,
        "batch": [context.setup.rows, context.setup.length],
        "loss": context.setup.loss,
        "formulas_total": size["raw"],
        "formulas_canonical": size["canonical"],
        "folds": {
            "count": rows.fold_count,
            "seeds": len(rows.folds),
            "rows": np.bincount(rows.folds[0]).tolist(),
            "of_rows": rows.folds[0].tolist(),
        },
    }


def save_proxy(name: str, document: Mapping[str, Any]) -> Path:
    """The best formula as a proxy, in a file with where it comes from; one of the same name is replaced."""
    best = document["best"][0]
    keys = ("formula", "json", "size", "train", "held_out", "within_cells", "kendall_b", "verdict")
    entry = {
        "schema": PROXY_SCHEMA,
        "name": name,
        **{key: best[key] for key in keys},
        "provenance": provenance(document),
    }
    file = proxy_folder() / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, json.dumps(entry, indent=1))
    return file


def provenance(document: Mapping[str, Any]) -> dict[str, Any]:
    """Where a saved proxy comes from."""
    keys = ("benchmark", "variant", "target", "n", "unary", "fitness", "seed", "batch", "loss", "data", "commit")
    folds = {"fold_seeds": document["folds"]["seeds"], "folds": document["folds"]["of_rows"]}
    return {**{key: document[key] for key in keys}, "reduction": document["reduction"], **folds}


def git_commit() -> str | None:
    """Of the code that runs, where it is a git checkout."""
    command = ["git", "-C", str(Path(__file__).parents[1]), "rev-parse", "HEAD"]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip() or None
