"""The judge of proxies: one row of the report per proxy, every number on the same resamples of architectures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from archwright.errors import BadInput
from archwright.statistics.bootstrap import Estimate, estimate
from archwright.statistics.false_discovery import SURE, bootstrap_p, false_discovery_rates
from archwright.statistics.ranks import RankOrder, Values, partial, pearson, resampled_correlation, resampled_kendall
from archwright.statistics.reliability import icc_batches, icc_seeds, icc_within_cells
from archwright.statistics.resampling import Resampling
from archwright.statistics.top_k import precision_at_share, regret_at, top_spearman

LEAST = 3
"""Rows below which nothing is judged."""
BOUNDED = (
    *("spearman", "kendall_b", "kendall_a", "weighted_tau", "within_cells", "within_given_known"),
    *("within_given_parameters", "partial_given_parameters"),
    *("minus_parameters", "minus_parameters_within", "minus_depth_width"),
)
"""Columns that come with `_low` and `_high`."""
PLAIN = ("pearson", "correlation_with_parameters", "precision_at_10pct", "regret_at_10", "top10_spearman")


@dataclass(frozen=True)
class Judgement:
    """The row of one proxy; None where a number does not exist."""

    n: int
    """Rows it was judged on."""
    missing: int
    """Rows without a score."""
    pearson: float | None = None
    """Of the numbers themselves: what some papers call Spearman."""
    spearman: float | None = None
    spearman_low: float | None = None
    spearman_high: float | None = None
    kendall_b: float | None = None
    kendall_b_low: float | None = None
    kendall_b_high: float | None = None
    kendall_a: float | None = None
    kendall_a_low: float | None = None
    kendall_a_high: float | None = None
    weighted_tau: float | None = None
    weighted_tau_low: float | None = None
    weighted_tau_high: float | None = None
    within_cells: float | None = None
    within_cells_low: float | None = None
    within_cells_high: float | None = None
    within_given_known: float | None = None
    """The same given what is known and still varies inside cells: depth and width in coarse cells, or size."""
    within_given_known_low: float | None = None
    within_given_known_high: float | None = None
    within_given_parameters: float | None = None
    """The same given the number of parameters, too: what the proxy adds to a count."""
    within_given_parameters_low: float | None = None
    within_given_parameters_high: float | None = None
    partial_given_parameters: float | None = None
    partial_given_parameters_low: float | None = None
    partial_given_parameters_high: float | None = None
    correlation_with_parameters: float | None = None
    """Spearman between the score and the number of parameters (the critique of DSS in the training-free paper)."""
    precision_at_10pct: float | None = None
    regret_at_10: float | None = None
    """In the units of the truth; lower is better."""
    top10_spearman: float | None = None
    icc_seeds: float | None = None
    icc_batches: float | None = None
    minus_parameters: float | None = None
    """Spearman minus that of the parameters on the same rows and resamples."""
    minus_parameters_low: float | None = None
    minus_parameters_high: float | None = None
    minus_parameters_within: float | None = None
    """Spearman inside cells minus that of the parameters on the same cells and resamples; a side that is constant in a
    cell counts as zero there."""
    minus_parameters_within_low: float | None = None
    minus_parameters_within_high: float | None = None
    minus_depth_width: float | None = None
    minus_depth_width_low: float | None = None
    minus_depth_width_high: float | None = None
    icc_within_cells: float | None = None
    """Share of the variance inside cells that is not that of the initial weights."""
    p_adds: float | None = None
    """One-sided: that it adds nothing inside cells, given the parameters."""
    q_adds: float | None = None
    """The same among all proxies of the table: the false discovery rate."""
    verdict: str = "cannot be judged"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge_proxy(
    scores: ArrayLike, against: Resampling, *, seeds: ArrayLike | None = None, batches: ArrayLike | None = None
) -> Judgement:
    """The row of one proxy. Rows whose score is not a finite number are missing: left out of everything, and counted.

    `seeds` and `batches` are tables of the score, architectures x replicates, of any architectures. The verdict is that
    on this proxy alone; `correct_verdicts` judges a table of them.
    """
    given = np.asarray(scores, dtype=np.float64)
    if given.shape != against.truth.shape:
        shape, count = given.shape, len(against.truth)
        raise BadInput(f"one score per row: got shape {shape} for {count} rows; use NaN for missing.")
    rows = np.flatnonzero(np.isfinite(given))
    row = Judgement(
        n=len(rows),
        missing=len(given) - len(rows),
        icc_seeds=None if seeds is None else icc_seeds(seeds),
        icc_batches=None if batches is None else icc_batches(batches),
        icc_within_cells=None if seeds is None else icc_within_cells(seeds, given[rows], against.cells[rows]),
    )
    return row if len(rows) < LEAST else judge_complete(row, given[rows], against.on(rows))


def judge_complete(row: Judgement, scores: Values, against: Resampling) -> Judgement:
    """The row with all its columns, from scores without gaps."""
    columns = resampled_columns(
        column_values(scores, against),
        against,
        same=same_order(scores, against.rival),
        same_as_parameters=same_order(scores, against.parameters),
    )
    return replace(row, **columns)


def resampled_columns(
    found: Mapping[str, Values], against: Resampling, *, same: bool, same_as_parameters: bool
) -> dict[str, Any]:
    """Columns of a row, from a value and its resamples each: numbers with intervals, the chance that the proxy adds
    nothing, and the verdict. The last two say whether it orders networks as depth and width, or parameters, do."""
    bounded = {name: estimate(found[name]) for name in BOUNDED}
    columns: dict[str, Any] = interval_columns(bounded) | {name: estimate(found[name]).value for name in PLAIN}
    tested = ("within_given_known", "within_given_parameters") if against.cells_tell else ("partial_given_parameters",)
    chances = [bootstrap_p(found[name]) for name in tested]
    adds = None if None in chances else max(chance for chance in chances if chance is not None)
    words = verdict_of(bounded, against, same=same, same_as_parameters=same_as_parameters)
    return {**columns, "p_adds": adds, "verdict": words}


def same_order(one: Values, other: Values) -> bool:
    return bool((RankOrder.of(one).level == RankOrder.of(other).level).all())


def correct_verdicts(rows: Mapping[str, Judgement]) -> dict[str, Judgement]:
    """The rows of a whole table: a proxy "adds" something only if it does so among all of them."""
    rates = false_discovery_rates([row.p_adds for row in rows.values()])
    corrected = {}
    for (name, row), rate in zip(rows.items(), rates, strict=True):
        words = row.verdict
        if "adds" in words and (rate is None or rate > SURE):
            words = f"perhaps chance: {words}, but not among {sum(rate is not None for rate in rates)} proxies"
        corrected[name] = replace(row, q_adds=rate, verdict=words)
    return corrected


def column_values(scores: Values, against: Resampling) -> dict[str, Values]:
    """Every column by name: the value itself first, then its resamples where it has an interval."""
    draws, ranks, rivals, pair = against.draws, against.ranks, against.correlations, (scores, against.truth)
    order = RankOrder.of(scores)
    centred, taus = order.centred_ranks(draws), resampled_kendall(draws, order, against.order)
    within = against.within(scores)
    beyond = against.within(scores, given=against.varying) if against.varying else within
    counted = beyond if against.depth_width is None else against.within(scores, given=against.known_inside)
    own, size = (resampled_correlation(draws, centred, ranks[name]) for name in ("truth", "parameters"))
    return {
        "spearman": own,
        "kendall_b": taus.b,
        "kendall_a": taus.a,
        "weighted_tau": taus.weighted,
        "within_cells": within,
        "within_given_known": beyond,
        "within_given_parameters": counted,
        "partial_given_parameters": partial(own, size, rivals["parameters"]),
        "minus_parameters": own - rivals["parameters"],
        "minus_parameters_within": against.within(scores, constant=0.0) - against.parameters_inside,
        "minus_depth_width": own - rivals["rival"] if against.depth_width is not None else np.full_like(own, np.nan),
        "correlation_with_parameters": size,
        "pearson": np.array([pearson(*pair)]),
        "precision_at_10pct": np.array([precision_at_share(*pair)]),
        "regret_at_10": np.array([regret_at(*pair)]),
        "top10_spearman": np.array([top_spearman(*pair)]),
    }


def interval_columns(found: Mapping[str, Estimate]) -> dict[str, float | None]:
    """Each estimate as three columns."""
    ends = (("", "value"), ("_low", "low"), ("_high", "high"))
    return {name + end: getattr(of, field) for name, of in found.items() for end, field in ends}


def verdict_of(
    found: Mapping[str, Estimate], against: Resampling, *, same: bool = False, same_as_parameters: bool = False
) -> str:
    """The verdict on one proxy; without depth and width, the parameters are what everybody knows."""
    minus = found["minus_parameters" if against.depth_width is None else "minus_depth_width"]
    evidence = Evidence(
        overall=found["spearman"],
        within=found["within_given_known"],
        given_parameters=found["within_given_parameters"],
        minus_known=minus,
        partial=found["partial_given_parameters"],
        same_as_known=same,
        same_as_parameters=same_as_parameters,
        cells_tell=against.cells_tell,
    )
    return verdict(evidence, known=against.known)


NOTHING = Estimate(None, None, None)


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on: values with their 95 % intervals."""

    overall: Estimate
    """Spearman with the truth."""
    within: Estimate = NOTHING
    """Mean Spearman inside the cells, where what is known is equal or nearly so, given what still varies of it."""
    minus_known: Estimate = NOTHING
    """Spearman minus that of what is known: of depth and width, or of size."""
    partial: Estimate = NOTHING
    """Spearman given the parameters."""
    given_parameters: Estimate | None = None
    """The same given the number of parameters, too; None where that was not asked."""
    same_as_known: bool = False
    """Whether the proxy orders the rows exactly as what is known does."""
    same_as_parameters: bool = False
    """Whether it orders them exactly as the number of parameters does: a count is not news."""
    cells_tell: bool = True
    """Whether there are cells with enough rows; then a score without a value inside them is a function of the known."""

    @property
    def predicts(self) -> bool:
        return positive(self.overall) or self.adds

    @property
    def adds(self) -> bool:
        """Positive inside the cells, also given the parameters, and not against the partial correlation.

        Where cells are too small to tell: better than what is known, and positive given the parameters.
        """
        if self.within.value is not None:
            counted = self.given_parameters is None or positive(self.given_parameters)
            return positive(self.within) and counted and (self.partial.value is None or self.partial.value > 0)
        return not self.cells_tell and positive(self.minus_known) and positive(self.partial)


def positive(of: Estimate) -> bool:
    """Whether the whole interval is above zero."""
    return of.low is not None and of.low > 0


def negative(of: Estimate) -> bool:
    """Whether the whole interval is below zero."""
    return of.high is not None and of.high < 0


RULES: tuple[tuple[str, Callable[[Evidence], bool]], ...] = (
    ("cannot be judged", lambda found: found.overall.low is None),
    ("noise", lambda found: not found.predicts and not negative(found.overall)),
    ("ranks the wrong way round", lambda found: not found.predicts),
    ("only restates {known}", lambda found: found.same_as_known),
    ("only restates parameters", lambda found: found.same_as_parameters),
    ("worse than {known}, adds within cells", lambda found: found.adds and negative(found.minus_known)),
    ("adds information beyond {known}", lambda found: found.adds),
    ("only restates parameters", lambda found: found.partial.low is not None and not positive(found.partial)),
    ("only restates {known}", lambda found: True),
)
"""The first rule that holds is the verdict.

At 95 % one useless proxy in forty looks useful: `correct_verdicts` takes back what does not hold among all of a table.
"""


def verdict(found: Evidence, *, known: str = "depth and width") -> str:
    """The verdict in words; `known` names what everybody knows to matter: "depth and width", or "size" for RNNs."""
    words = next(words for words, holds in RULES if holds(found))
    return words.format(known=known)
