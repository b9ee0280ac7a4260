"""Proxies that others published, on the rows of a search: where they lie among all formulas."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from archwright.discovery.folds import FITNESS, FoldedRows
from archwright.discovery.pair_ranking import BINS
from archwright.discovery.score_table import Values, exists
from archwright.proxies import PROXIES, Proxy
from archwright.scoring.scorer import Scorer, ScoringSetup
from archwright.search import Config

CHEAP = frozenset({"forward", "loss", "inputs"})
"""Passes that LPZero's inputs need anyway."""

MARKED: dict[str, Callable[[Proxy], bool]] = {
    "cheap": lambda proxy: set(proxy.passes) <= CHEAP,
    "all": lambda proxy: True,
    "none": lambda proxy: False,
}
"""Which proxies are scored beside the formulas."""


def marked(kind: str) -> tuple[str, ...]:
    return tuple(name for name, proxy in PROXIES.items() if MARKED[kind](proxy))


def known_scores(setup: ScoringSetup, configs: list[Config], see: Scorer) -> dict[str, Values]:
    """One score per network of every proxy of the glass, NaN where there is none; `rank` shares them."""
    if not setup.proxies:
        return {}
    seen = see.scores([setup.look(config) for config in configs], "known proxies")
    return {name: np.array([one.scores.get(name, np.nan) for one in seen]) for name in setup.proxies}


def placed(scores: Mapping[str, Values], trial: FoldedRows, counts: Values) -> list[dict[str, Any]]:
    """Fitness of each, and the share of formulas below it, in percent; the best first."""
    found = [entry(name, column, trial, counts) for name, column in scores.items() if exists(column, trial.rows)]
    return sorted((one for one in found if np.isfinite(one["fitness"])), key=lambda one: -one["fitness"])


def entry(name: str, column: Values, trial: FoldedRows, counts: Values) -> dict[str, Any]:
    there = np.isfinite(column)
    fitness = float(FITNESS[trial.fitness](trial.rankings(there, trial.sets[-1:]), column[there][None])[0, 0])
    below = counts[: int(np.searchsorted(BINS, fitness, side="right") - 1)].sum() / max(1, counts.sum())
    return {"proxy": name, "origin": PROXIES[name].origin, "fitness": fitness, "percentile": 100 * float(below)}
