"""`archwright discover`: better proxies as formulas, found by evolution or among all, and judged on rows kept away."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archwright.configs import scoring as so
from archwright.configs.validation import changed_flags, refuse_options
from archwright.discovery.context import TABLED, DiscoveryContext, open_context
from archwright.discovery.cross_fitting import estimated
from archwright.discovery.evolution_runs import evolved, settings_of
from archwright.discovery.exhaustive_report import Found, all_ranked
from archwright.discovery.folds import AIMS
from archwright.discovery.phases import Phases, peak_mb
from archwright.discovery.saved_proxies import check_name, commit, save
from archwright.discovery.transfer import Searched, transferred
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.reports.discover.page import discover_table, render_discover_page
from archwright.reports.discover.transfer import transfer_table
from archwright.scoring.scorer import check_page
from archwright.spaces.formulas import MOST_UNARY
from archwright.store import write_whole

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "archwright/discover/1"
PAGE = "discover-{benchmark}-{search}-{unary}.html"


@dataclass(frozen=True)
class DiscoverResult:
    """What was found, with how good it is on rows that were kept away."""

    document: Mapping[str, Any]
    page: Path
    saved: Path | None

    @property
    def best(self) -> list[dict[str, Any]]:
        """The best formula, then the best of smaller sizes."""
        return list(self.document["best"])

    def as_json(self) -> dict[str, Any]:
        return dict(self.document)

    def show(self, console: "Console") -> None:
        console.print(discover_table(self.document))
        if self.document["transfer"]:
            console.print(transfer_table(self.document))
        for note in (*self.document["notes"], *([f"saved: {self.saved}"] if self.saved else [])):
            console.print(note, soft_wrap=True, highlight=False, markup=False)
        console.print(f"report: {self.page}", soft_wrap=True, highlight=False)


def discover(config: so.DiscoverConfig) -> DiscoverResult:
    """Formulas searched without each of five folds and judged on it; the last one is chosen on all rows."""
    table, formulas, evolution = config.benchmark, config.formulas, config.evolution
    findings, recording = config.findings, config.recording
    check(table, formulas, findings)
    check_evolution(formulas, evolution)
    page, clock = page_of(table, formulas, findings, recording), Phases()
    lands = [
        (table, recording),
        *((so.BenchmarkOptions(name), replace(recording, loss=None)) for name in findings.transfer),
    ]
    searched = [searched_on(of, formulas, evolution, findings, looks, clock) for of, looks in lands]
    (main, found), transfer = searched[0], transferred([one for one, _ in searched]) if findings.transfer else None
    document = {
        **summary(main.land, formulas),
        **found.numbers,
        "best": main.best,
        "transfer": transfer,
        "seconds": clock.told(),
        "peak_mb": peak_mb(workers_of(recording)),
        **written(main.land, found),
    }
    write_whole(page, render_discover_page(document))
    saved = save(findings.save, main.best[0], provenance(document)) if findings.save else None
    return DiscoverResult(document, page, saved)


def searched_on(
    table: so.BenchmarkOptions,
    formulas: so.FormulaOptions,
    evolution: so.EvolutionOptions,
    findings: so.FindingOptions,
    recording: so.RecordingOptions,
    clock: Phases,
) -> tuple[Searched, Found]:
    """One benchmark searched, and what was found judged on its outer folds."""
    with open_context(table, formulas, recording, clock, mark=findings.published) as land, clock.phase("search"):
        found = all_ranked(land) if formulas.exhaustive else evolved(land, evolution)
    with clock.phase("judging"):
        against = land.field.ground(rng=np.random.default_rng((recording.seed, 0)), samples=findings.samples)
        best = [estimated(chosen, land.table, land.trial, against) for chosen in found.chosen]
    return Searched(land, against, best), found


def page_of(
    table: so.BenchmarkOptions, formulas: so.FormulaOptions, findings: so.FindingOptions, recording: so.RecordingOptions
) -> Path:
    """Where the page goes; BadInput when nothing can be written there, before any work is done."""
    search = "exhaustive" if formulas.exhaustive else "evolve"
    name = PAGE.format(benchmark=table.benchmark, search=search, unary=formulas.unary)
    return check_page(findings.html or recording.out / name)


def check(table: so.BenchmarkOptions, formulas: so.FormulaOptions, findings: so.FindingOptions) -> None:
    if formulas.exhaustive == formulas.evolve:
        raise BadInput("give either --exhaustive or --evolve.")
    if formulas.exhaustive and TABLED < formulas.unary <= MOST_UNARY:
        raise BadInput(f"--exhaustive ranks up to --unary {TABLED}, got {formulas.unary}; longer chains: --evolve.")
    if formulas.exhaustive and formulas.fitness in AIMS:
        raise BadInput("--fitness pareto is a way to evolve; with --exhaustive use both, the report has the front.")
    if table.benchmark in findings.transfer or len(set(findings.transfer)) < len(findings.transfer):
        raise BadInput(f"--transfer must name other benchmarks, each once, got {', '.join(findings.transfer)}.")
    check_name(findings.save)


def check_evolution(formulas: so.FormulaOptions, evolution: so.EvolutionOptions) -> None:
    """Numbers that no evolution can use, before statistics are taken; without evolution none has an effect."""
    if formulas.exhaustive:
        refuse_options(
            changed_flags(evolution) - {"--preset"}, "without --evolve"
        )  # the preset has settings of the space, too
    settings_of(evolution, formulas.fitness)


def summary(land: DiscoveryContext, formulas: so.FormulaOptions) -> dict[str, Any]:
    """What was searched, and on what."""
    size, trial, field = land.space.size(), land.trial, land.field
    return {
        "schema": SCHEMA,
        "benchmark": field.benchmark.name,
        "variant": field.benchmark.variant,
        "target": field.target,
        "n": len(field.rows),
        "networks": len(trial.names),
        "unary": formulas.unary,
        "inputs": list(land.space.inputs),
        "reduction": formulas.reduction,
        "factor": formulas.factor,
        "fitness": formulas.fitness,
        "seed": land.setup.seed,
        "batch": [land.setup.rows, land.setup.length],
        "loss": land.setup.loss,
        "formulas_total": size["raw"],
        "formulas_canonical": size["canonical"],
        "folds": {"count": trial.count, "rows": np.bincount(trial.fold).tolist(), "of_rows": trial.fold.tolist()},
    }


def workers_of(recording: so.RecordingOptions) -> int:
    """Processes on this machine beside this one."""
    return 0 if recording.ray or recording.workers == 1 else recording.workers or os.cpu_count() or 1


def written(land: DiscoveryContext, found: Found) -> dict[str, Any]:
    """What else a reader wants to know."""
    notes = [*land.field.notes(), *found.notes]
    return {"data": land.digest, "commit": commit(), "environment": environment(), "notes": notes}


def provenance(document: Mapping[str, Any]) -> dict[str, Any]:
    """Where a saved proxy comes from."""
    names = ("benchmark", "variant", "target", "n", "unary", "fitness", "seed", "batch", "loss", "data", "commit")
    return {name: document[name] for name in names} | {"folds": document["folds"]["of_rows"]}
