"""Weights of a scaling law that is not to be worse than the parameter count on any of several benchmarks.

A least-squares fit over several benchmarks is ruled by the one that it fits worst. Weights are therefore chosen by
their worst gain: of many candidates, all weights at least zero, the mean of the few whose smallest gain over the
parameters on any table is largest. A gain is counted as a share of what the parameters leave to be gained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from archwright.statistics.ranks import Values

LARGEST: Mapping[str, float] = {"evenness": 2.0, "depth": 0.5, "width": 0.4, "heads": 0.4, "lateness": 0.6}
"""Bounds of the weights, beside 1 for the logarithm of the size."""
CANDIDATES, KEPT = 4000, 100
MOST_ROWS = 800
"""Rows of a table that candidates are compared on; larger ones are sampled."""


@dataclass(frozen=True)
class LawTable:
    """Terms of the law, trained results and parameters of one benchmark."""

    terms: Mapping[str, Values]
    """By name; `size` is the logarithm of the parameters beside embeddings."""
    truth: Values
    parameters: Values

    def score(self, weights: Mapping[str, float]) -> Values:
        return np.asarray(self.terms["size"] + sum(weight * self.terms[name] for name, weight in weights.items()))

    def sample(self, rng: np.random.Generator) -> LawTable:
        rows = rng.permutation(len(self.truth))[:MOST_ROWS]
        columns = {name: column[rows] for name, column in self.terms.items()}
        return LawTable(columns, self.truth[rows], self.parameters[rows])


def fit_law(tables: Sequence[LawTable], terms: Sequence[str], *, rng: np.random.Generator) -> dict[str, float]:
    """Weights of these terms; tables on which no term varies have no say, and without any other all are zero."""
    samples = [table.sample(rng) for table in tables]
    telling = [table for table in samples if any(np.ptp(table.terms[term]) > 1e-9 for term in ("depth", "width"))]
    if not telling:
        return dict.fromkeys(terms, 0.0)
    candidates = rng.random((CANDIDATES, len(terms))) * [LARGEST[term] for term in terms]
    worst = np.min([gains(table, terms, candidates) for table in telling], axis=0)
    best = np.argsort(-worst, kind="stable")[:KEPT]
    return dict(zip(terms, candidates[best].mean(axis=0).tolist(), strict=True))


def gains(table: LawTable, terms: Sequence[str], candidates: Values) -> Values:
    """Of every candidate: what it gains over the parameters, as a share of what they leave to be gained."""
    columns = np.stack([table.terms[term] for term in terms])  # terms x rows
    truth = unit_ranks(table.truth)
    plain = float(unit_ranks(table.parameters) @ truth)
    found = unit_ranks(table.terms["size"] + candidates @ columns) @ truth
    return np.asarray((found - plain) / (1 - plain)) if plain < 1 else np.zeros(len(candidates))


def unit_ranks(values: Values) -> Values:
    """Centred ranks along the last axis, of length one; zero for a constant."""
    ranks = stats.rankdata(values, axis=-1)
    ranks = ranks - ranks.mean(axis=-1, keepdims=True)
    return np.asarray(ranks / np.maximum(np.linalg.norm(ranks, axis=-1, keepdims=True), 1e-12))
