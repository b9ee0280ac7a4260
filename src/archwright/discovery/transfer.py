"""Formulas found on one benchmark and judged on the others, and published proxies beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archwright.discovery.context import DiscoveryContext
from archwright.discovery.cross_fitting import interval
from archwright.discovery.score_table import LEAST_SHARE, is_usable
from archwright.proxies import PROXIES
from archwright.proxies.formulas.formula import Formula, parse, single_branch
from archwright.proxies.formulas.reductions import Values
from archwright.statistics import Resampling, judge_proxy

MEASURES = {"held_out": "spearman", "within_cells": "within_cells", "kendall_b": "kendall_b"}
"""Keys of a report, and what they are called where they are judged."""


@dataclass(frozen=True)
class BenchmarkSearch:
    """One benchmark after its search."""

    context: DiscoveryContext
    against: Resampling
    best: Sequence[Mapping[str, Any]]
    """Entries of the report."""
    simplest: Mapping[str, Any] | None = None
    """The entry of the smallest within one standard error of the best."""
    checks: Mapping[str, Any] = field(default_factory=dict)
    """What the statistics of the formulas count."""

    @property
    def name(self) -> str:
        return self.context.benchmark_rows.benchmark.name


def compare_transfer(searches: Sequence[BenchmarkSearch]) -> list[dict[str, Any]]:
    """A row for every formula that was found somewhere, then for every published proxy, judged on every benchmark."""
    rows: list[dict[str, Any]] = []
    for origin in searches:
        for entry in origin.best:
            # on its own benchmark: cross-fitted, as the formula itself was chosen on those rows
            own = {**{key: entry[key] for key in MEASURES}, "n": entry["n"], "cross_fitted": True}
            formula = parse(entry["formula"])
            on = {search.name: own if search is origin else judge_formula(formula, search) for search in searches}
            rows.append({"found_on": origin.name, "formula": entry["formula"], "size": entry["size"], "on": on})
    for name in dict.fromkeys(name for search in searches for name in search.context.published):
        on = {search.name: judge_published_proxy(name, search) for search in searches}
        if any("missing" not in entry for entry in on.values()):
            rows.append({"proxy": name, "origin": PROXIES[name].origin, "on": on})
    return rows


def judge_formula(formula: Formula, search: BenchmarkSearch) -> dict[str, Any]:
    """A formula on rows of another benchmark, none of which took part in its choice."""
    table, rows = search.context.table, search.context.rows
    scores = table.scores(formula)
    if is_usable(scores, rows.rows_per_network):
        return judge_scores(scores, search, search.against)
    branches = {branch.input: single_branch(branch, formula.reduction) for branch in formula.active}
    lacking = [name for name, branch in branches.items() if np.isnan(table.scores(branch)).all()]
    if lacking:
        return {"missing": f"no layer has {' and '.join(lacking)}"}
    finite = int(rows.rows_per_network[np.isfinite(scores)].sum())
    return {"missing": f"finite for {finite} of {len(rows.truth)} rows, {LEAST_SHARE:.0%} are needed"}


def judge_published_proxy(name: str, search: BenchmarkSearch) -> dict[str, Any]:
    """A published proxy; without intervals, which are in `archwright rank`."""
    rows = search.context.rows
    scores = search.context.published.get(name, np.full(len(rows.network_names), np.nan))
    if is_usable(scores, rows.rows_per_network):
        return judge_scores(scores, search, search.against.points())
    finite = int(rows.rows_per_network[np.isfinite(scores)].sum())
    return {"missing": f"scored for {finite} of {len(rows.truth)} rows"}


def judge_scores(scores: Values, search: BenchmarkSearch, against: Resampling) -> dict[str, Any]:
    judgement = judge_proxy(np.where(np.isfinite(scores), scores, np.nan)[search.context.rows.networks], against)
    measures = {key: interval(judgement, name) for key, name in MEASURES.items()}
    return {**measures, "n": judgement.n, "cross_fitted": False}
