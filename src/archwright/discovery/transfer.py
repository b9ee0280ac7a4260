"""Formulas found on one benchmark and judged on the others, and published proxies beside them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archwright.discovery.context import DiscoveryContext
from archwright.discovery.cross_fitting import interval
from archwright.discovery.score_table import LEAST_SHARE, Values, exists
from archwright.proxies import PROXIES
from archwright.proxies.formulas.formula import Formula, parse, single_branch
from archwright.statistics import Resampling, judge_proxy

MEASURES = {"held_out": "spearman", "within_cells": "within_cells", "kendall_b": "kendall_b"}
"""Keys of a report, and what they are called where they are judged."""


@dataclass(frozen=True)
class Searched:
    """One benchmark after its search."""

    land: DiscoveryContext
    against: Resampling
    best: Sequence[Mapping[str, Any]]
    """Entries of the report."""

    @property
    def name(self) -> str:
        return self.land.field.benchmark.name


def transferred(searched: Sequence[Searched]) -> list[dict[str, Any]]:
    """A row for every formula that was found somewhere, then for every published proxy, with its worth everywhere."""
    found = [found_row(one, searched, entry) for one in searched for entry in one.best]
    return [*found, *known_rows(searched)]


def found_row(at: Searched, searched: Sequence[Searched], entry: Mapping[str, Any]) -> dict[str, Any]:
    """On its own benchmark: cross-fitted, as the formula itself was chosen on those rows."""
    formula = parse(entry["formula"])
    own = {**{key: entry[key] for key in MEASURES}, "n": entry["n"], "cross_fitted": True}
    on = {one.name: own if one is at else judged(formula, one) for one in searched}
    return {"found_on": at.name, "formula": entry["formula"], "size": entry["size"], "on": on}


def judged(formula: Formula, one: Searched) -> dict[str, Any]:
    """A formula on rows of another benchmark, none of which took part in its choice."""
    scores = one.land.table.scores(formula)
    if not exists(scores, one.land.trial.rows):
        return {"missing": reason(formula, scores, one.land)}
    return measured(scores, one, one.against)


def reason(formula: Formula, scores: Values, land: DiscoveryContext) -> str:
    branches = {branch.input: single_branch(branch, formula.reduction) for branch in formula.active}
    lacking = [name for name, branch in branches.items() if np.isnan(land.table.scores(branch)).all()]
    if lacking:
        return f"no layer has {' and '.join(lacking)}"
    rows = int(land.trial.rows[np.isfinite(scores)].sum())
    return f"finite for {rows} of {len(land.trial.truth)} rows, {LEAST_SHARE:.0%} are needed"


def measured(scores: Values, one: Searched, against: Resampling) -> dict[str, Any]:
    found = judge_proxy(np.where(np.isfinite(scores), scores, np.nan)[one.land.trial.networks], against)
    return {**{key: interval(found, name) for key, name in MEASURES.items()}, "n": found.n, "cross_fitted": False}


def known_rows(searched: Sequence[Searched]) -> Iterator[dict[str, Any]]:
    """Published proxies; without intervals, which are in `archwright rank`."""
    for name in dict.fromkeys(name for one in searched for name in one.land.known):
        on = {one.name: known_entry(name, one) for one in searched}
        if any("missing" not in entry for entry in on.values()):
            yield {"proxy": name, "origin": PROXIES[name].origin, "on": on}


def known_entry(name: str, one: Searched) -> dict[str, Any]:
    scores = one.land.known.get(name, np.full(len(one.land.trial.names), np.nan))
    if not exists(scores, one.land.trial.rows):
        rows = int(one.land.trial.rows[np.isfinite(scores)].sum())
        return {"missing": f"scored for {rows} of {len(one.land.trial.truth)} rows"}
    return measured(scores, one, one.against.points())
