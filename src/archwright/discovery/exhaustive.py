"""All formulas of a space, ranked pair of inputs by pair of inputs in parallel; what is done lies on disk."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from archwright.discovery.context import FOLD_SEEDS, DiscoveryContext
from archwright.discovery.cross_fitting import (
    NOTHING,
    CrossFit,
    FormulaSearchResult,
    RankedFormula,
    choose_by_size,
    choose_simplest,
    merge_best,
    standard_errors,
)
from archwright.discovery.fitness import FoldedRows, within_all_cells
from archwright.discovery.pair_ranking import BINS, KEPT, Pair, Side
from archwright.discovery.score_table import StatisticsTable, is_usable, settle
from archwright.errors import Failed
from archwright.parallel.pool import LocalPool, WorkerPool
from archwright.progress import progress
from archwright.proxies import PROXIES
from archwright.proxies.formulas.formula import FORMULAS_REVISION, Branch, parse
from archwright.proxies.formulas.reductions import Values
from archwright.random_streams import SPLIT_DRAWS
from archwright.spaces.formulas import FormulaSpace
from archwright.statistics import pareto_mask
from archwright.store import digest, write_atomic
from archwright.store.files import sweep_folder

FOLDER = "discover"
REVISION = 3
"""Of how formulas are ranked: what an earlier one left on disk is not taken for this one's."""
LARGEST = 500_000
"""Formulas of a pair above which its factors are work of their own."""
WORTH_PROCESSES = 200_000
"""Formulas below which starting processes would take longer than ranking them here."""
FINALISTS = 200
"""Best formulas among which the Pareto front is looked for."""


def rank_all(context: DiscoveryContext) -> FormulaSearchResult:
    """Every formula of the space, with what the report says about it."""
    assert isinstance(context.table, StatisticsTable), "spaces that cannot be tabled are not ranked"
    pairs = list(rank_pairs(context.space, context.table, context.rows, context.folder, context.pool).values())
    best = merge_best(pairs, context.rows.set_count)
    chosen = choose_by_size(best)
    if not chosen:
        raise Failed(NOTHING)
    counts = np.sum([pair["counts"] for pair in pairs], axis=0)
    numbers = {
        "search": "exhaustive",
        "formulas_valid": sum(pair["valid"] for pair in pairs),
        "histogram": {"edges": BINS.tolist(), "counts": counts.tolist(), "of": context.rows.fitness},
        "published": published_percentiles(context.published, context.rows, counts),
        "front": pareto_front(best[-1], context),
    }
    return FormulaSearchResult(chosen, find_simplest(best, context), numbers, [])


def find_simplest(best: Sequence[Sequence[RankedFormula]], context: DiscoveryContext) -> CrossFit | None:
    """By the rule of one standard error."""
    rng = np.random.default_rng((context.setup.seed, SPLIT_DRAWS, 1))
    return choose_simplest(best, standard_errors(best, context.table, context.rows, rng))


def make_pairs(space: FormulaSpace, table: StatisticsTable, rows: FoldedRows) -> dict[str, Pair]:
    """The work, by name: every pair of inputs, and every input alone, with every reduction.

    A pair that has many formulas is split factor by factor, so that what is done can be shown and kept.
    """
    sides = {
        name: Side(signed, np.stack([table.column(Branch(name, chain)) for chain in signed.chains], axis=2))
        for name, signed in space.signed_chains.items()
    }
    factors = tuple((branch, table.factor(branch)) for branch in space.factor_branches)
    pairs: dict[str, Pair] = {}
    for name, reduction, left, right in name_pairs(space):
        pairs[name] = Pair(sides[left], sides[right] if right else None, rows, reduction, factors)
    work: dict[str, Pair] = {}
    for name, pair in pairs.items():
        if pair.total <= LARGEST or len(pair.factors) == 1:
            work[name] = pair
        else:
            split = enumerate(pair.factors)
            work |= {f"{name} {index}": replace(pair, factors=(factor,)) for index, factor in split}
    return work


def name_pairs(space: FormulaSpace) -> Iterator[tuple[str, str, str, str]]:
    """(name, reduction, left, right) of every pair of inputs, and of every input alone, right then empty."""
    for left, right in (*space.pairs, *((name, "") for name in space.inputs)):
        for reduction in space.distinct_reductions(*filter(None, (left, right))):
            yield " ".join(filter(None, (reduction, left, right))), reduction, left, right


def rank_pairs(
    space: FormulaSpace, table: StatisticsTable, rows: FoldedRows, folder: Path, pool: WorkerPool
) -> dict[str, dict[str, Any]]:
    """What came of every pair; those done before, with the same statistics, rows and folds, are not done again."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    sweep_folder(folder / FOLDER)
    work = make_pairs(space, table, rows)
    files = {name: folder / FOLDER / f"{key}.json" for name, key in cache_keys(space, table, rows, work).items()}
    done = {name: read_pair(file) for name, file in files.items() if file.exists()}
    undone = [name for name in work if name not in done]
    few = sum(work[name].total for name in undone) <= WORTH_PROCESSES
    workers = LocalPool() if few else pool
    with progress("formulas", sum(pair.total for pair in work.values()), "formulas") as bar:
        bar.advance(sum(work[name].total for name in done))
        for index, result in workers.map_unordered([work[name] for name in undone]):
            name = undone[index]
            write_atomic(files[name], json.dumps(result))
            done[name] = result
            bar.advance(work[name].total)
    return {name: done[name] for name in work}


def cache_keys(space: FormulaSpace, table: StatisticsTable, rows: FoldedRows, names: Iterable[str]) -> dict[str, str]:
    """Everything that the ranking of a pair depends on, by name of the pair."""
    options = space.unary, space.factors, KEPT, REVISION, FORMULAS_REVISION
    folded = repr((rows.groups, rows.cells, rows.fitness, [fold.tolist() for fold in rows.folds], *options))
    content = digest(folded, repr((table.inputs, table.chains)), table.values.tobytes(), rows.truth.tobytes())
    return {name: digest(content, name) for name in names}


def read_pair(file: Path) -> dict[str, Any]:
    try:
        result = json.loads(file.read_text())
        if {"total", "valid", "counts", "best"} <= result.keys():
            return dict(result)
    except (OSError, ValueError, AttributeError):
        pass
    raise Failed(f"{file} is damaged; delete it and run the same command again.")


def find_known_best(context: DiscoveryContext) -> dict[str, Any] | None:
    """The best of all formulas on all rows, where they were ranked before."""
    assert isinstance(context.table, StatisticsTable), "spaces that cannot be tabled are not ranked"
    names = [name for name, *_ in name_pairs(context.space)]
    rows = context.rows
    usual = FoldedRows.split(
        rows.truth, rows.groups, rows.cells, seed=context.setup.seed, fitness=rows.fitness, repeats=FOLD_SEEDS
    )
    for folded in (rows, usual):  # evolution has fewer splits than ranking all by default
        keys = cache_keys(context.space, context.table, folded, names)
        files = [context.folder / FOLDER / f"{key}.json" for key in keys.values()]
        if all(file.exists() for file in files):
            fitness, size, text = merge_best([read_pair(file) for file in files], folded.set_count)[-1][0]
            return {"fitness": fitness, "size": size, "formula": text}
    return None


def pareto_front(rows: Sequence[RankedFormula], context: DiscoveryContext) -> list[dict[str, Any]]:
    """Of the best: those that no other beats in Spearman, inside cells and size at once. On all rows: for a picture.

    Inside cells is None for all where no cell has rows enough.
    """
    smaller = {row[1]: row for row in reversed(rows)}
    entries = []
    for _, size, text in [*rows[:FINALISTS], *smaller.values()]:
        scores = context.table.scores(parse(text))
        present = np.isfinite(scores)
        correlations = context.rows.correlations(present, context.rows.search_sets[-1:])
        vector = settle(scores[present][None])
        within = float(within_all_cells(correlations, vector)[0, 0])
        entries.append((float(correlations.spearman(vector)[0, 0]), within, size, text))
    on_front = pareto_mask([(-spearman, -np.nan_to_num(within), size) for spearman, within, size, _ in entries])
    best = [entry for entry, keep in zip(entries, on_front, strict=True) if keep]
    told = [(spearman, None if np.isnan(within) else within, size, text) for spearman, within, size, text in best]
    distinct = {entry[:3]: entry for entry in reversed(told)}.values()  # of equals the first
    names = ("spearman", "within_cells", "size", "formula")
    return [dict(zip(names, entry, strict=True)) for entry in sorted(distinct, key=lambda entry: (entry[2], -entry[0]))]


def published_percentiles(scores: Mapping[str, Values], rows: FoldedRows, counts: Values) -> list[dict[str, Any]]:
    """Fitness of published proxies, and the share of formulas below each, in percent; the best first."""
    entries = []
    for name, column in scores.items():
        if not is_usable(column, rows.rows_per_network):
            continue
        present = np.isfinite(column)
        correlations = rows.correlations(present, rows.search_sets[-1:])
        fitness = float(rows.measure.measure(correlations, settle(column[present][None]))[0, 0])
        below = counts[: int(np.searchsorted(BINS, fitness, side="right") - 1)].sum() / max(1, counts.sum())
        entry = {"proxy": name, "origin": PROXIES[name].origin, "fitness": fitness, "percentile": 100 * float(below)}
        if np.isfinite(fitness):
            entries.append(entry)
    return sorted(entries, key=lambda entry: -float(entry["fitness"]))
