"""Every formula of a space ranked, with what the report says about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archwright.discovery.context import DiscoveryContext
from archwright.discovery.cross_fitting import Chosen, ladder, merged
from archwright.discovery.exhaustive import BINS, ranked
from archwright.discovery.published_proxies import placed
from archwright.discovery.score_table import Table
from archwright.errors import Failed
from archwright.proxies.formulas.formula import parse

NOTHING = "no formula is finite, not constant and there for 95 % of the rows; look at more texts or other inputs."
FINALISTS = 200


@dataclass(frozen=True)
class Found:
    """Formulas, the best first, and the numbers of the report."""

    chosen: list[Chosen]
    numbers: Mapping[str, Any]
    notes: list[str]


def all_ranked(land: DiscoveryContext) -> Found:
    """Every formula of the space."""
    assert isinstance(land.table, Table), "spaces that cannot be tabled are not ranked"
    parts = ranked(land.space, land.table, land.trial, land.folder, land.eyes)
    chosen = ladder(merged(list(parts.values()), land.trial.count + 1))
    if not chosen:
        raise Failed(NOTHING)
    counts = np.sum([part["counts"] for part in parts.values()], axis=0)
    published = placed(land.known, land.trial, counts)
    numbers = {
        "search": "exhaustive",
        "formulas_valid": sum(part["valid"] for part in parts.values()),
        "histogram": {"edges": BINS.tolist(), "counts": counts.tolist(), "of": land.trial.fitness},
        "published": published,
        "front": front(merged(list(parts.values()), land.trial.count + 1)[-1], land),
    }
    return Found(chosen, numbers, [])


def front(rows: Sequence[Sequence[Any]], land: DiscoveryContext) -> list[dict[str, Any]]:
    """Of the best: those that no other beats in Spearman, inside cells and size at once. On all rows: for a picture."""
    found = []
    smaller = {row[1]: row for row in reversed(rows)}
    for _, size, text in [*rows[:FINALISTS], *smaller.values()]:
        scores = land.table.scores(parse(text))
        there = np.isfinite(scores)
        rankings = land.trial.rankings(there, land.trial.sets[-1:])
        vector = scores[there][None]
        within = np.nan_to_num(rankings.within(vector)[0, 0])  # constant in every cell: it tells nothing apart there
        found.append((float(rankings.spearman(vector)[0, 0]), float(within), size, text))
    kept = {one[:3]: one for one in reversed(found) if not any(beats(other, one) for other in found)}  # equals: one
    names = ("spearman", "within_cells", "size", "formula")
    return [dict(zip(names, one, strict=True)) for one in sorted(kept.values(), key=lambda one: (one[2], -one[0]))]


def beats(one: tuple[float, float, int, str], other: tuple[float, float, int, str]) -> bool:
    better = (one[0] >= other[0], one[1] >= other[1], one[2] <= other[2])
    return all(better) and one[:3] != other[:3]
