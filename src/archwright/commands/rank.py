"""`archwright rank`: training-free proxies judged on architectures that somebody trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archwright.benchmarks import BENCHMARKS, Benchmark
from archwright.configs import scoring as so
from archwright.environment import environment
from archwright.reports.rank.page import render_rank_page
from archwright.reports.rank.tables import papers_table, rank_table, xray_table
from archwright.scoring.parity import parity, published_ablation
from archwright.scoring.ranking import (
    RankedRows,
    ablation,
    baseline_rows,
    benchmark_of,
    costs,
    judged_rows,
    powers,
    score_rows,
    scree,
    sweep,
)
from archwright.scoring.scorer import ScoringSetup, check_page, open_scorer, scoring_setup
from archwright.statistics import Resampling, choice_effects, noise_ceiling, published_numbers
from archwright.store import write_atomic

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "archwright/rank/1"
BASELINES = ("parameters", "nonembedding", "flops", "depth", "depth_width")
"""Proxies that no report is without."""
NORMALISED = "_normalised"
PAGE = "{benchmark}-{variant}.html"


@dataclass(frozen=True)
class RankResult:
    """A benchmark with every proxy judged on it."""

    document: Mapping[str, Any]
    page: Path
    judging: so.JudgementOptions

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One entry per proxy, with the columns of the report."""
        return list(self.document["rows"])

    def without_normalised(self) -> dict[str, Any]:
        """For a terminal: a form that only divides by a number of modules stands on the page."""
        rows = [row for row in self.document["rows"] if not row["proxy"].endswith(NORMALISED)]
        left = len(self.document["rows"]) - len(rows)
        notes = [f"{left} normalised forms are on the page and in --json."] if left else []
        return {**self.document, "rows": rows, "notes": [*self.document["notes"], *notes]}

    def as_json(self) -> dict[str, Any]:
        return dict(self.document)

    def show(self, console: "Console") -> None:
        shown = self.without_normalised()
        console.print(rank_table(shown))
        if self.judging.xray:
            console.print(xray_table(self.document))
        if self.judging.compare_published:
            console.print(papers_table(self.document))
        for note in shown["notes"]:
            console.print(note, soft_wrap=True, highlight=False, markup=False)
        console.print(f"report: {self.page}", soft_wrap=True, highlight=False)


def rank(config: so.RankConfig) -> RankResult:
    """Every proxy against what training gave, on the page and as numbers."""
    table, proxies, looks, judging = config.benchmark, config.proxies, config.scoring, config.judgement
    folder, benchmark = benchmark_of(table)
    page = page_of(judging, looks, benchmark)
    setup = scoring_setup(benchmark.space, proxies, looks, always=BASELINES)
    with open_scorer(looks) as see:
        field = score_rows(benchmark, table.target or benchmark.target, setup, looks, see)
        repeats = ablation(field, setup, see) if judging.ablation else None
        price = costs(field, setup, see)
    against = field.ground(rng=np.random.default_rng((looks.seed, 0)), samples=judging.samples)
    rows = judged_rows(field, repeats, setup, price, against)
    rows += baseline_rows(field, against, rng=np.random.default_rng((looks.seed, 1)))
    theirs = published_ablation(benchmark.name, BENCHMARKS[benchmark.name].repeats(folder)) if repeats else None
    document = {
        **summary(field, setup, looks),
        "rows": rows,
        **pictures(field, against),
        "ablation": repeats,
        "published_ablation": theirs,
        "spectra": scree(field, setup),
        "environment": environment(),
        "notes": field.notes(),
    }
    write_atomic(page, render_rank_page(document))
    return RankResult(document, page, judging)


def page_of(judging: so.JudgementOptions, looks: so.ScoringOptions, benchmark: Benchmark) -> Path:
    """Where the page goes; BadInput when nothing can be written there, before any work is done."""
    page = judging.html or looks.out / PAGE.format(benchmark=benchmark.name, variant=benchmark.variant)
    return check_page(page)


def summary(field: RankedRows, setup: ScoringSetup, looks: so.ScoringOptions) -> dict[str, Any]:
    """What was ranked, how it was looked at, and how well anything could do."""
    benchmark = field.benchmark
    ceiling = noise_ceiling(field.truth, networks=field.networks, cells=field.cells, tasks=field.tasks())
    settings = {name: getattr(looks, name) for name in ("seed", "seeds", "batches", "initial")}
    return {
        "schema": SCHEMA,
        "benchmark": benchmark.name,
        "n": len(field.rows),
        "variant": benchmark.variant,
        "known": benchmark.known,
        "target": field.target,
        "targets": list(benchmark.targets),
        "licence": benchmark.licence,
        "loss": field.loss,
        **settings,
        "batch": [setup.rows, setup.length],
        "noise_ceiling": ceiling.as_dict() if ceiling else None,
    }


def pictures(field: RankedRows, against: Resampling) -> dict[str, Any]:
    """What the page draws beside the table."""
    benchmark = field.benchmark
    return {
        "architectures": field.architectures(),
        "xray": choice_effects([benchmark.space.traits(row.config) for row in field.rows], field.truth),
        "published": [entry for entry in published_numbers() if entry["benchmark"] == benchmark.name],
        "parity": parity(field),
        "eta": sweep(field, against),
        "powers": powers(field, against),
    }
