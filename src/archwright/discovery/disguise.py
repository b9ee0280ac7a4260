"""What the statistics of found formulas really are: counts in disguise, and numbers that depend on the batch.

Of untrained networks the weights are noise of a known spread and attention is nearly uniform, so that many statistics
are closed forms of the shapes. Each branch of a found formula is compared, layer by layer over some networks, with
products of powers and sums of logarithms of counts, and taken again with half of the texts.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np

from archwright.discovery.statistics import network_key
from archwright.errors import Failed
from archwright.parallel.pool import WorkerPool
from archwright.progress import progress
from archwright.proxies import Unscored
from archwright.proxies.formulas.formula import FORMULAS_REVISION, Branch, Formula, parse
from archwright.proxies.formulas.inputs import FORMULA_INPUTS, LAYER_COUNTS, required_passes, required_roles
from archwright.proxies.formulas.reductions import Values
from archwright.proxies.formulas.statistics import layer_values
from archwright.scoring.request import ScoreRequest, record_network
from archwright.statistics.ranks import RankOrder, resampled_spearman
from archwright.store import digest, write_atomic

CHECK_REVISION = 1
"""Of how statistics are compared with counts: what an earlier one left on disk is not taken for this one's."""
NETWORKS = 16
"""On which statistics are compared with counts."""
DISGUISE = 0.02
"""Largest error in any layer up to which a statistic is called a count."""
BATCH = 0.005
"""Change with half of the texts up to which a statistic does not depend on the batch."""
TERMS = 2
"""Counts that a closed form may have."""
NEGLIGIBLE = 1e-4
"""Errors below it are not told apart."""
GAIN = 0.7
"""What one more count must leave of the error to be worth it."""
STEP = 0.25
"""Exponents are rounded to multiples of it, where that makes the error no larger."""
SIZE, ROOT, DEPTH = "size", "mean sqrt(size)", "n_depth"
"""Numbers in a tensor of the input, gathered over the tensors of a layer as the statistic is; their roots, gathered in
the same way; and layers of the network."""

Layers = dict[str, list[float]]
"""By name, one number per layer; NaN where the layer has none."""


@dataclass(frozen=True)
class LayerCheck:
    """What one network gives."""

    statistics: Layers
    """By branch."""
    counts: dict[str, Layers]
    """By branch, then by count."""
    scores: dict[str, float]
    """By formula, NaN where it has none."""


@dataclass(frozen=True)
class CheckRequest:
    """A network, and what is to be known of it; calling it records the network."""

    at: ScoreRequest
    formulas: tuple[str, ...]

    def __call__(self) -> LayerCheck:
        formulas = [parse(text) for text in self.formulas]
        inputs = tuple(dict.fromkeys(chain.from_iterable(formula.inputs for formula in formulas)))
        probe = record_network(self.at, required_passes(inputs), required_roles(inputs))
        branches = checked_branches(formulas)
        shared = {name: layer_values(probe, name, ()) for name in LAYER_COUNTS}
        shared[DEPTH] = [float(len(probe.layers))] * len(probe.layers)
        counts = {}
        for branch in branches:
            source = FORMULA_INPUTS[branch.input]
            gather = np.sum if source.summed else np.mean
            sizes = [[ref.read().numel() for ref in source.find(probe, layer)] for layer in probe.layers]
            own = {
                SIZE: [float(gather(layer)) if layer else math.nan for layer in sizes],
                ROOT: [float(gather(np.sqrt(layer))) if layer else math.nan for layer in sizes],
            }
            counts[str(branch)] = {**shared, **own}
        values = {str(branch): layer_values(probe, branch.input, branch.canonical().chain) for branch in branches}
        return LayerCheck(values, counts, {str(formula): measure_or_nan(formula, probe) for formula in formulas})


def measure_or_nan(formula: Formula, probe: Any) -> float:
    try:
        return formula.measure(probe)
    except Unscored:
        return math.nan


def checked_branches(formulas: Iterable[Formula]) -> list[Branch]:
    """Those that look at tensors, each once; a count is what it is."""
    branches = dict.fromkeys(branch.canonical().without_sign() for formula in formulas for branch in formula.active)
    return [branch for branch in branches if not FORMULA_INPUTS[branch.input].scalar]


@dataclass(frozen=True)
class ClosedForm:
    """A product of powers of counts, or a constant and logarithms of counts, and how far a statistic is from it."""

    kind: str
    """power | logarithm"""
    scale: float
    exponents: Mapping[str, float]
    error: float
    """Largest over the layers: of a power relative to it, of logarithms relative to the mean size of the statistic."""

    def __str__(self) -> str:
        """0.02 * l_weights^0.5"""
        if self.kind == "power":
            powers = (f"{name}^{power:.3g}" if power != 1 else name for name, power in self.exponents.items())
            return " * ".join([f"{self.scale:.3g}", *powers])
        logs = (f"{power:+.3g} log({name})" for name, power in self.exponents.items())
        return " ".join([f"{self.scale:.3g}", *logs])


def fit_closed_form(values: Values, counts: Mapping[str, Values]) -> ClosedForm | None:
    """The closed form of at most two counts that is nearest to the statistic; None where it is not finite.

    All combinations are tried; more counts are taken only where they leave much less of the error.
    """
    if not len(values) or not np.isfinite(values).all():
        return None
    best = constant_form(values)
    logs = {name: np.log(column) for name, column in counts.items() if usable(column)}
    kinds = ("power", "logarithm") if np.all(values > 0) or np.all(values < 0) else ("logarithm",)
    for terms in range(1, TERMS + 1):
        trials = [
            fit_terms(values, {name: logs[name] for name in names}, kind)
            for names in combinations(logs, terms)
            for kind in kinds
        ]
        nearest = min(trials, key=lambda form: max(form.error, NEGLIGIBLE), default=best)  # of equals the first
        if nearest.error < GAIN * best.error and best.error > NEGLIGIBLE:
            best = nearest
    return best


def usable(column: Values) -> bool:
    return bool(np.isfinite(column).all() and (column > 0).all() and np.ptp(column) > 0)


def constant_form(values: Values) -> ClosedForm:
    mean = float(values.mean())
    error = float(np.abs(values - mean).max() / abs(mean)) if mean else math.inf * float(np.ptp(values) > 0)
    return ClosedForm("power", mean, {}, 0.0 if math.isnan(error) else error)


def fit_terms(values: Values, logs: Mapping[str, Values], kind: str) -> ClosedForm:
    """Least squares in the logarithms; exponents of a power are rounded where that costs nothing."""
    sign = -1.0 if values[0] < 0 and kind == "power" else 1.0
    target = np.log(sign * values) if kind == "power" else values
    columns = np.column_stack(list(logs.values()))
    solution = np.linalg.lstsq(np.column_stack([np.ones(len(values)), columns]), target, rcond=None)[0]
    forms: list[Values] = [np.asarray(solution[1:], dtype=np.float64)]
    if kind == "power":
        forms.append(np.round(solution[1:] / STEP) * STEP)

    def evaluate(powers: Values) -> ClosedForm:
        rest = columns @ powers
        start = float(np.mean(target - rest))
        if kind == "power":
            error = float(np.abs(np.expm1(target - rest - start)).max())
            return ClosedForm(kind, sign * math.exp(start), name_powers(logs, powers), error)
        error = float(np.abs(target - rest - start).max() / max(np.abs(values).mean(), 1e-300))
        return ClosedForm(kind, start, name_powers(logs, powers), error)

    exact, *rounded = map(evaluate, forms)
    simpler = [form for form in rounded if form.exponents and form.error <= max(1.25 * exact.error, 1e-6)]
    return simpler[0] if simpler else exact


def name_powers(logs: Mapping[str, Values], powers: Values) -> dict[str, float]:
    return {name: float(power) for name, power in zip(logs, powers, strict=True) if power}


def check_formulas(
    formulas: Sequence[str],
    requests: Sequence[ScoreRequest],
    pool: WorkerPool,
    *,
    rng: np.random.Generator,
    folder: Path | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """For every statistic of these formulas what it counts, and whether it depends on the batch; for every formula
    whether the batch changes how it ranks. Empty where formulas are made of counts alone; in `folder` it is kept."""
    branches = checked_branches(map(parse, formulas))
    if not branches:
        return {"statistics": [], "formulas": []}
    drawn = rng.choice(len(requests), size=min(NETWORKS, len(requests)), replace=False)
    whole = [CheckRequest(requests[index], tuple(formulas)) for index in sorted(drawn.tolist())]
    half = [replace(task, at=halve_batch(task.at)) for task in whole]
    key = digest(*(network_key(task.at) for task in whole), repr((tuple(formulas), CHECK_REVISION, FORMULAS_REVISION)))
    file = folder / f"counts-{key}.json" if folder else None
    if file and file.exists():
        return read_checks(file)
    results: dict[int, LayerCheck] = {}
    with progress("what formulas count", 2 * len(whole), "networks") as bar:
        for index, result in pool.map_unordered([*whole, *half]):
            results[index] = result
            bar.advance()
    checks = [results[index] for index in range(2 * len(whole))]
    full, halved = checks[: len(whole)], checks[len(whole) :]
    found = {
        "statistics": [describe_statistic(str(branch), full, halved) for branch in branches],
        "formulas": [describe_formula(text, full, halved) for text in formulas],
    }
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps(found))
    return found


def read_checks(file: Path) -> dict[str, list[dict[str, Any]]]:
    try:
        found = json.loads(file.read_text())
        if {"statistics", "formulas"} <= found.keys():
            return dict(found)
    except (OSError, ValueError, AttributeError):
        pass
    raise Failed(f"{file} is damaged; delete it and run the same command again.")


def halve_batch(request: ScoreRequest) -> ScoreRequest:
    """The same network on the first half of the texts."""
    rows = max(1, len(request.batch.input_ids) // 2)
    batch = replace(request.batch, input_ids=request.batch.input_ids[:rows], labels=request.batch.labels[:rows])
    return replace(request, batch=batch)


def describe_statistic(name: str, full: Sequence[LayerCheck], halved: Sequence[LayerCheck]) -> dict[str, Any]:
    values, other = (np.concatenate([check.statistics[name] for check in checks]) for checks in (full, halved))
    there = np.isfinite(values)
    counts = {
        count: np.concatenate([check.counts[name][count] for check in full])[there] for count in full[0].counts[name]
    }
    form = fit_closed_form(values[there], counts)
    with np.errstate(all="ignore"):
        ratios = other[there] / values[there]
    ratio = float(np.median(ratios)) if len(ratios) and np.isfinite(ratios).all() else None
    moved = ratio is None or bool(np.abs(ratios - 1).max() > BATCH)
    return {
        "statistic": name,
        "is": str(form) if form else None,
        "error": form.error if form else None,
        "count": form is not None and form.error <= DISGUISE,
        "constant": form is not None and not form.exponents,
        "depends_on_batch": moved and bool(len(ratios)),
        "with_half_the_texts": ratio,
        "layers": int(there.sum()),
    }


def describe_formula(text: str, full: Sequence[LayerCheck], halved: Sequence[LayerCheck]) -> dict[str, Any]:
    """Spearman between its scores with all and with half of the texts."""
    sides = np.array([[check.scores[text] for check in checks] for checks in (full, halved)])
    known = sides[:, np.isfinite(sides).all(axis=0)]
    orders = [RankOrder.of(side) for side in known]
    agreement = resampled_spearman(np.ones((1, known.shape[1])), *orders)[0] if known.shape[1] > 1 else math.nan
    return {"formula": text, "batch_spearman": float(agreement) if np.isfinite(agreement) else None}


def explain(entry: Mapping[str, Any]) -> str:
    """One line about a statistic."""
    if entry["is"] is None:
        return f"{entry['statistic']}: not finite in every layer, no closed form was looked for."
    error = f"{100 * entry['error']:.2g} %"
    what = f"is no count: the nearest, {entry['is']}, misses a layer by {error}"
    if entry["count"]:
        kind = "the same in all layers and networks" if entry["constant"] else "a count in disguise"
        what = f"is {entry['is']} within {error}: {kind}"
    batch = "does not depend on the batch"
    if entry["depends_on_batch"]:
        ratio = entry["with_half_the_texts"]
        batch = "depends on the batch" + (f" (x {ratio:.3g} with half of the texts)" if ratio is not None else "")
    return f"{entry['statistic']} {what}; {batch}."
