"""`archwright rank`: training-free proxies judged on architectures that somebody trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archwright.benchmarks import BENCHMARKS, Benchmark
from archwright.data.places import public_data
from archwright.errors import BadInput
from archwright.jobs import options as o
from archwright.jobs.environment import environment
from archwright.jobs.parity import parity
from archwright.jobs.ranking import Field, ablation, baseline_rows, costs, field_of, judged_rows, powers, sweep
from archwright.jobs.seeing import glass_of, sight
from archwright.judge import Ground, noise_ceiling, published_numbers, xray
from archwright.report import rank_html, rank_table
from archwright.store import write_whole

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "archwright/rank/1"
BASELINES = ("parameters", "nonembedding", "flops", "depth", "depth_width")
"""Proxies that no report is without."""
PAGE = "{benchmark}-{variant}.html"


@dataclass(frozen=True)
class Ranked:
    """A benchmark with every proxy judged on it."""

    document: Mapping[str, Any]
    page: Path
    judging: o.Judging

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One entry per proxy, with the columns of the report."""
        return list(self.document["rows"])

    def as_json(self) -> dict[str, Any]:
        return dict(self.document)

    def show(self, console: "Console") -> None:
        console.print(rank_table(self.document))
        for note in self.document["notes"]:
            console.print(note, soft_wrap=True, highlight=False, markup=False)
        console.print(f"report: {self.page}", soft_wrap=True, highlight=False)


def rank(table: o.Table, proxies: o.Proxies, looks: o.Looks, judging: o.Judging) -> Ranked:
    """Every proxy against what training gave, on the page and as numbers."""
    benchmark = benchmark_of(table)
    glass = glass_of(benchmark.space, proxies, looks, always=BASELINES)
    with sight(looks) as see:
        field = field_of(benchmark, table.target or benchmark.target, glass, looks, see)
        repeats = ablation(field, glass, see) if judging.ablation else None
        price = costs(field, glass, see)
    against = field.ground(rng=np.random.default_rng((looks.seed, 0)), samples=judging.samples)
    rows = judged_rows(field, repeats, glass, price, against)
    rows += baseline_rows(field, against, rng=np.random.default_rng((looks.seed, 1)))
    document = document_of(field, rows, repeats, against, looks)
    page = judging.html or looks.out / PAGE.format(benchmark=benchmark.name, variant=benchmark.variant)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_whole(page, rank_html(document))
    return Ranked(document, page, judging)


def benchmark_of(table: o.Table) -> Benchmark:
    """The trained architectures; BadInput when there are too few to rank anything."""
    source = BENCHMARKS[table.benchmark]
    folder = table.data or public_data(source.folder, origin=source.origin, option="--data")
    variant = table.variant or source.variants[0]
    if variant not in source.variants:
        raise BadInput(f"--variant must be one of {', '.join(source.variants)}, got {variant!r}.")
    benchmark = source.load(folder, variant)
    if table.target is not None and table.target not in benchmark.targets:
        raise BadInput(f"--target must be one of {', '.join(benchmark.targets)}, got {table.target!r}.")
    return benchmark


def document_of(
    field: Field, rows: list[dict[str, Any]], repeats: dict[str, Any] | None, against: Ground, looks: o.Looks
) -> dict[str, Any]:
    """Everything that is known, as --json writes it and as the page shows it."""
    benchmark, truth = field.benchmark, field.truth
    tasks = [name for name in benchmark.targets if name != field.target] if field.target == benchmark.target else []
    parts = [[row.trained[name] for name in tasks] for row in field.rows] if len(tasks) > 2 else None
    ceiling = noise_ceiling(truth, networks=field.networks, cells=field.cells, tasks=parts)
    return {
        "schema": SCHEMA,
        "benchmark": benchmark.name,
        "n": len(field.rows),
        "variant": benchmark.variant,
        "target": field.target,
        "targets": list(benchmark.targets),
        "seed": looks.seed,
        "seeds": looks.seeds,
        "batches": looks.batches,
        "loss": field.loss,
        "noise_ceiling": ceiling.as_dict() if ceiling else None,
        "rows": rows,
        "architectures": field.architectures(),
        "xray": xray([benchmark.space.canonical(row.config) for row in field.rows], truth),
        "ablation": repeats,
        "published_ablation": None,
        "published": [entry for entry in published_numbers() if entry["benchmark"] == benchmark.name],
        "parity": parity(field),
        "spectra": None,
        "eta": sweep(field, against),
        "powers": powers(field, against),
        "licence": benchmark.licence,
        "environment": environment(),
        "notes": field.notes(),
    }
