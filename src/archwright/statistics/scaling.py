"""Which terms a scaling law of several benchmarks may have, and their weights, so that it is worse on none of them.

A least-squares fit over several benchmarks is ruled by the one that it fits worst, and a term that helps on most of
them may harm on the next. So weights are those with the largest worst gain over the size alone, and a term needs
evidence: with a weight from the other benchmarks it must order each one that it changes at all surely better. What is
not kept has weight zero, so that without any evidence the law is the size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from archwright.statistics.bootstrap import estimate, resamples
from archwright.statistics.ranks import Codes, RankOrder, Values, resampled_spearman

LARGEST: Mapping[str, float] = {
    "evenness": 2.0, "depth": 0.5, "width": 0.4, "heads": 0.4, "lateness": 0.6, "mixing": 1.0,
}  # fmt: skip
"""Bounds of the weights, beside 1 for the logarithm of the size."""
CANDIDATES, KEPT_SHARE = 400, 1 / 40
"""Weights that are tried for every term, and of them those whose mean is taken."""
MOST_ROWS = 800
"""Rows of a table that candidates are compared on; larger ones are sampled."""
MOST_DRAWN = 1_000_000
"""Rows times bootstrap samples of an interval; 1,000 samples at most."""


@dataclass(frozen=True)
class LawTable:
    """Terms of the law and trained results of one benchmark, or of one of its parts."""

    terms: Mapping[str, Values]
    """By name; `size` is the logarithm of the parameters beside embeddings."""
    truth: Values
    groups: Codes
    """The network of each row: rows of one network are drawn together."""

    def score(self, weights: Mapping[str, float]) -> Values:
        return np.asarray(self.terms["size"] + sum(weight * self.terms[name] for name, weight in weights.items()))

    def sample(self, rng: np.random.Generator) -> LawTable:
        rows = rng.permutation(len(self.truth))[:MOST_ROWS]
        return LawTable(
            {name: column[rows] for name, column in self.terms.items()}, self.truth[rows], self.groups[rows]
        )


Benchmarks = Mapping[str, Sequence[LawTable]]
"""By name; the tables of a benchmark are left out together."""


@dataclass(frozen=True)
class TermEvidence:
    """What one term does to the order of a table whose benchmark its weight was fitted without."""

    term: str
    benchmark: str
    table: int
    weight: float
    gain: float
    """Spearman minus that of the size alone, with the 95 % interval of the difference."""
    low: float
    high: float

    @property
    def silent(self) -> bool:
        """Whether it changes nothing there: the weight is zero, or all networks are alike in it."""
        return self.gain == self.low == self.high == 0


def choose_law(
    benchmarks: Benchmarks, terms: Sequence[str], *, rng: np.random.Generator
) -> tuple[dict[str, float], list[TermEvidence]]:
    """Weights of the terms that are kept, fitted together on all benchmarks, and what every term was judged by."""
    evidence = [entry for term in terms for entry in judge_term(benchmarks, term, rng=rng)]
    kept = [term for term in terms if holds([entry for entry in evidence if entry.term == term])]
    tables = [table for parts in benchmarks.values() for table in parts]
    return (fit_law(tables, kept, rng=rng) if kept else {}), evidence


def judge_term(benchmarks: Benchmarks, term: str, *, rng: np.random.Generator) -> list[TermEvidence]:
    """The term beside the size, on each benchmark with a weight from the others."""
    entries = []
    for name, parts in benchmarks.items():
        others = [table for other, tables in benchmarks.items() if other != name for table in tables]
        weights = fit_law(others, [term], rng=rng)
        for number, table in enumerate(parts):
            gain = measure_gain(table, weights, rng=rng)
            entries.append(TermEvidence(term, name, number, weights[term], *gain))
    return entries


def holds(evidence: Sequence[TermEvidence]) -> bool:
    """Whether a term is surely better on every table whose order it changes, and changes any."""
    telling = [entry for entry in evidence if not entry.silent]
    return bool(telling) and all(entry.low > 0 for entry in telling)


def measure_gain(
    table: LawTable, weights: Mapping[str, float], *, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Spearman with these weights minus that of the size alone, and its 95 % interval over networks."""
    draws = resamples(table.groups, rng=rng, size=min(1000, MOST_DRAWN // len(table.truth)))
    truth = RankOrder.of(table.truth)
    law, size = (RankOrder.of(table.score(given)) for given in (weights, {}))
    found = estimate(resampled_spearman(draws, law, truth) - resampled_spearman(draws, size, truth))
    return float(found.value or 0.0), float(found.low or 0.0), float(found.high or 0.0)


def fit_law(tables: Sequence[LawTable], terms: Sequence[str], *, rng: np.random.Generator) -> dict[str, float]:
    """The weights, all at least zero, with the largest worst gain over the size alone: the mean of the best candidates.

    All are zero where no candidate gains on every table; tables on which no term varies have no say.
    """
    samples = [table.sample(rng) for table in tables]
    telling = [table for table in samples if any(np.ptp(table.terms[term]) > 1e-9 for term in terms)]
    candidates = rng.random((CANDIDATES * len(terms), len(terms))) * [LARGEST[term] for term in terms]
    worst = np.min([gains(table, terms, candidates) for table in telling], axis=0) if telling else np.zeros(1)
    if worst.max() <= 0:
        return dict.fromkeys(terms, 0.0)
    best = np.argsort(-worst, kind="stable")[: int(len(candidates) * KEPT_SHARE)]
    return dict(zip(terms, candidates[best].mean(axis=0).tolist(), strict=True))


def gains(table: LawTable, terms: Sequence[str], candidates: Values) -> Values:
    """Of every candidate: what it gains over the size alone, as a share of what the size leaves to be gained."""
    columns = np.stack([table.terms[term] for term in terms])  # terms x rows
    truth = unit_ranks(table.truth)
    plain = float(unit_ranks(table.terms["size"]) @ truth)
    found = unit_ranks(table.terms["size"] + candidates @ columns) @ truth
    return np.asarray((found - plain) / (1 - plain)) if plain < 1 else np.zeros(len(candidates))


def unit_ranks(values: Values) -> Values:
    """Centred ranks along the last axis, of length one; zero for a constant."""
    ranks = stats.rankdata(values, axis=-1)
    ranks = ranks - ranks.mean(axis=-1, keepdims=True)
    return np.asarray(ranks / np.maximum(np.linalg.norm(ranks, axis=-1, keepdims=True), 1e-12))
