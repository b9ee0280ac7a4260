"""Evolution as `discover` runs it: for every set of rows, beside other kinds of search, and LPZero's ablations.

Each search is written down once it is done, so that a command that was interrupted goes on with the next one.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from archwright.configs.discover import EvolutionOptions
from archwright.discovery.context import DiscoveryContext
from archwright.discovery.cross_fitting import NOTHING, FormulaSearchResult, RankedFormula, best_first, choose_by_size
from archwright.discovery.evolution import EvolutionResult, EvolutionSettings, evolve, search_randomly
from archwright.discovery.exhaustive import FOLDER, find_known_best, find_simplest, pareto_front
from archwright.discovery.fitness import FITNESS, FitnessFunction, sample_networks
from archwright.discovery.lazy_table import LazyTable
from archwright.errors import BadInput, Failed
from archwright.progress import progress
from archwright.proxies.formulas.formula import FORMULAS_REVISION, parse
from archwright.spaces.formulas import COUNTED
from archwright.statistics.bootstrap import mean_over_seeds
from archwright.store import digest, write_atomic

EVOLUTION_REVISION = 1
"""Of how evolution draws, scores and keeps formulas: raised when a change of the code changes what a search finds, so
that no search from before is read from disk."""
FINALISTS, LAZY_FINALISTS = 200, 10
"""Formulas of a search that are compared on all rows of its set; fewer where their statistics have to be taken."""
ALL_ROWS = -1
"""The last set of rows."""

SearchFunction = Callable[..., EvolutionResult]


@dataclass(frozen=True)
class SearchKind:
    """One line of LPZero's Figure 6, or ours."""

    search: SearchFunction
    pps: bool
    distinct: bool


RANDOM = "random search"
SEARCHES: dict[str, SearchKind] = {
    "evolution with PPS": SearchKind(evolve, pps=True, distinct=False),
    "evolution without PPS": SearchKind(evolve, pps=False, distinct=False),
    RANDOM: SearchKind(search_randomly, pps=False, distinct=False),
    "evolution, no formula twice": SearchKind(evolve, pps=True, distinct=True),
}

# LPZero's ablations: sizes of the population (Figure 7), unary operations (Figure 13 and Table 5) in so many
# generations, and ours: shares of parents when no formula is scored twice.
POPULATIONS = (80, 100, 200)
UNARY_OPERATIONS = (2, 3, 4, 5)
UNARY_GENERATIONS = 100
PARENTS = (0.1, 0.25, 0.5)


def run_evolution(context: DiscoveryContext, options: EvolutionOptions) -> FormulaSearchResult:
    """Evolution for every set of rows, and on all rows its curves beside those of the other kinds of search."""
    settings = evolution_settings(options, context.rows.fitness)
    seeds = range(options.seeds)
    folds = context.rows.set_count - 1
    most = LAZY_FINALISTS if context.table.lazy else FINALISTS
    with progress("evolution", options.seeds * (folds + len(SEARCHES)), "searches") as bar:
        curves: dict[str, list[EvolutionResult]] = {name: [] for name in SEARCHES}
        for name, kind in SEARCHES.items():
            for seed in seeds:
                changed = replace(settings, pps=kind.pps, distinct=kind.distinct)
                curves[name].append(run_search(context, changed, kind.search, ALL_ROWS, seed))
                bar.advance()
        finalists = []
        for rows in range(folds):
            results = []
            for seed in seeds:
                results.append(run_search(context, settings, evolve, rows, seed))
                bar.advance()
            finalists.append(select_finalists(results, most))
    results = [run_search(context, settings, evolve, ALL_ROWS, seed) for seed in seeds]
    finalists.append(select_finalists(results, most))
    best = [rescore(formulas, context, rows) for rows, formulas in enumerate(finalists)]
    chosen = choose_by_size(best)
    if not chosen:
        raise Failed(NOTHING)
    leading = [rows[0] for rows in best if rows]
    wanted = [*leading, *(row for choice in chosen for row in choice.formulas)]
    context.table.prefetch([parse(row[2]) for row in wanted], slice(None))
    simplest = find_simplest(best, context)
    if simplest:
        context.table.prefetch([parse(row[2]) for row in simplest.formulas], slice(None))
    ablation = run_ablations(context, settings, seeds) if options.ablate else None
    numbers = {
        "search": "evolve",
        "formulas_valid": len({row[2] for runs in curves.values() for result in runs for row in result.best}),
        "histogram": None,
        "published": [],
        "evolution": {name: [result.as_dict() for result in runs] for name, runs in curves.items()},
        "comparison": compare_searches(curves, RANDOM),
        **compare_with_exhaustive(curves, context),
        "ablation": ablation,
    }
    if context.rows.measure.objectives:
        numbers["front"] = pareto_front(rescore(finalists[-1], context, ALL_ROWS), context)
    context.table.release()
    return FormulaSearchResult(chosen, simplest, numbers, evolution_notes(context, settings))


def evolution_notes(context: DiscoveryContext, settings: EvolutionSettings) -> list[str]:
    notes, unary = [], context.space.unary
    if unary == 1 and settings.pps:
        notes.append("with one unary operation per branch Table 6 has nothing to prune: compare with --unary 2.")
    if unary > COUNTED:
        notes.append(f"with {unary} unary operations per branch different formulas are too many to count.")
    return notes


def evolution_settings(options: EvolutionOptions, fitness: str = "spearman") -> EvolutionSettings:
    """With several objectives no formula is scored twice: copies would crowd the front."""
    return EvolutionSettings(
        generations=options.generations,
        population=options.population,
        parents=parse_share(options.parents),
        crossover=options.crossover,
        mutation=options.mutation,
        pps=options.pps,
        sample=options.sample,
        distinct=options.distinct or bool(FITNESS[fitness].objectives),
    )


def parse_share(text: str) -> float:
    """10% or 0.1 as a number."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise BadInput(f"--parents must be a share such as 10%, got {text!r}.")
    return share


def run_search(
    context: DiscoveryContext, settings: EvolutionSettings, search: SearchFunction, rows: int, seed: int
) -> EvolutionResult:
    """A search on one set of rows, on a sample of its architectures; one done before is read."""
    file = context.folder / FOLDER / f"search-{search_key(context, settings, search, rows, seed)}.json"
    if file.exists():
        return read_search(file)
    rng = np.random.default_rng((context.setup.seed, seed, rows + 1))
    sample = sample_networks(context.rows, context.rows.search_sets[rows], settings.sample, rng)
    fitness = FitnessFunction(context.table, context.rows, sample, settings.pps)
    result = search(context.space, fitness, settings, rng)
    context.table.release()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, json.dumps(asdict(result)))
    return result


def search_key(
    context: DiscoveryContext, settings: EvolutionSettings, search: SearchFunction, rows: int, seed: int
) -> str:
    """Everything that a search depends on."""
    folded = (
        context.rows.cells,
        context.rows.fitness,
        [split.tolist() for split in context.rows.folds],
        context.space,
        settings,
    )
    draws = (search.__name__, rows, seed, context.setup.seed)
    return digest(context.digest, repr(folded), repr(draws), repr((EVOLUTION_REVISION, FORMULAS_REVISION)))


def read_search(file: Path) -> EvolutionResult:
    try:
        return EvolutionResult(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise Failed(f"{file} is damaged; delete it and run the same command again.") from error


def select_finalists(results: Sequence[EvolutionResult], most: int) -> list[RankedFormula]:
    """Of each search: the best, the best of every size, and the front; [fitness, size, formula]."""
    formulas: dict[str, RankedFormula] = {}
    for result in results:
        by_size = {row[1]: row for row in reversed(result.best)}
        on_front = (row for row in result.best if row[2] in set(result.front))
        formulas |= {row[2]: row for row in [*result.best[:most], *by_size.values(), *on_front]}
    return list(formulas.values())


def rescore(finalists: Sequence[RankedFormula], context: DiscoveryContext, rows: int) -> list[RankedFormula]:
    """The finalists on all rows of their set, the best first."""
    fitness = FitnessFunction(context.table, context.rows, context.rows.search_sets[rows], pps=False)
    formulas = {str(row[2]): parse(str(row[2])) for row in finalists}
    fitness.prefetch(list(formulas.values()))
    scored: list[RankedFormula] = [[fitness(formula).value, formula.size, text] for text, formula in formulas.items()]
    return sorted((row for row in scored if np.isfinite(row[0])), key=best_first)


Interval = dict[str, float | None]
"""Mean over seeds: value, low, high."""


def average_results(results: Sequence[EvolutionResult]) -> dict[str, Interval]:
    return {
        "best": mean_over_seeds([result.curve[-1] for result in results]),
        "initial": mean_over_seeds([result.curve[0] for result in results]),
        "winning_rate": mean_over_seeds([result.winning_rate for result in results]),
        "evaluations": mean_over_seeds([float(result.evaluations[-1]) for result in results]),
    }


def compare_searches(curves: Mapping[str, Sequence[EvolutionResult]], baseline: str) -> dict[str, dict[str, Interval]]:
    """Best fitness of each kind at the end, and less the baseline's: after as many generations, and after as many
    different formulas scored. Seeds share their architectures, so that differences are taken seed by seed."""
    comparison = {}
    for name, results in curves.items():
        at_end: list[float | None] = []
        at_equal: list[float | None] = []
        for result, other in zip(results, curves[baseline], strict=True):
            evaluations = min(result.evaluations[-1], other.evaluations[-1])
            at_end.append(subtract(result.curve[-1], other.curve[-1]))
            at_equal.append(subtract(best_after(result, evaluations), best_after(other, evaluations)))
        comparison[name] = {
            **average_results(results),
            "different": mean_over_seeds([float(result.different) for result in results]),
            "minus_random": mean_over_seeds(at_end),
            "minus_random_at_equal_evaluations": mean_over_seeds(at_equal),
        }
    return comparison


def best_after(result: EvolutionResult, evaluations: int) -> float | None:
    """Best fitness when so many different formulas have been scored."""
    return result.curve[int(np.searchsorted(result.evaluations, evaluations, side="left"))]


def subtract(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def compare_with_exhaustive(
    curves: Mapping[str, Sequence[EvolutionResult]], context: DiscoveryContext
) -> dict[str, Any]:
    """The best of all formulas on all rows, where they were ranked before, and how near each search came to it."""
    if context.table.lazy:
        return {"exhaustive_best": None, "on_all_rows": None}
    reached = {
        name: [
            rescore(select_finalists([result], FINALISTS), context, ALL_ROWS)[0][0] for result in results if result.best
        ]
        for name, results in curves.items()
    }
    return {"exhaustive_best": find_known_best(context), "on_all_rows": reached}


def run_ablations(context: DiscoveryContext, settings: EvolutionSettings, seeds: Sequence[int]) -> dict[str, Any]:
    """By what is varied and its value. Searches on all rows; those of a seed share their sample of architectures."""
    short = replace(settings, generations=min(settings.generations, UNARY_GENERATIONS))
    studies: list[tuple[str, str, DiscoveryContext, EvolutionSettings]] = [
        *(("population", str(size), context, replace(settings, population=size)) for size in POPULATIONS),
        *(
            ("distinct, parents", f"{share:.0%}", context, replace(settings, parents=share, distinct=True))
            for share in PARENTS
        ),
        *(("unary", str(unary), with_unary(context, unary), short) for unary in UNARY_OPERATIONS),
    ]
    ablation: dict[str, Any] = {}
    with progress("ablations", len(studies) * len(seeds), "searches") as bar:
        for name, value, where, changed in studies:
            results = []
            for seed in seeds:
                results.append(run_search(where, changed, evolve, ALL_ROWS, seed))
                bar.advance()
            ablation.setdefault(name, {})[value] = summarise_ablation(results)
    return ablation


def summarise_ablation(results: Sequence[EvolutionResult]) -> dict[str, Any]:
    return {
        **average_results(results),
        "looks": mean_over_seeds([float(result.counts["looks"]) for result in results]),
        "seconds": mean_over_seeds([result.seconds for result in results]),
        "runs": [result.as_dict() for result in results],
    }


def with_unary(context: DiscoveryContext, unary: int) -> DiscoveryContext:
    """The same rows with formulas of so many operations, whose statistics are taken when needed."""
    if unary == context.space.unary:
        return context
    space = replace(context.space, unary=unary)
    table = LazyTable(context.requests, space.statistics_inputs, context.folder, context.pool)
    return replace(context, space=space, table=table)
