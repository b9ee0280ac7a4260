"""Results of several runs, compared as in Klein et al. 2024: one document for the report's figures. Knows no torch."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.statistics.protocol import (
    BEST,
    LINES,
    REFERENCE,
    SAMPLES,
    SHARES,
    SLACK,
    at_times,
    average_ranks,
    normalised_hypervolume,
    over_seeds,
    pooled_quantiles,
    regret_over_trials,
    size_bins,
)
from archwright.version import __version__

WEIGHT_SHARING, STANDARD = "weight-sharing", "standard"
SETTINGS = ("method", "space", "strategy", "sampler")
"""What distinguishes runs on one task, apart from the seed."""

CONDITIONS = ("order", "rows")
"""What else they may differ in: the order of heads and units, and how many rows there are to learn from."""

SEARCH = "search"
"""The phase in which the seconds of the trials are counted."""

SCHEMA = "archwright/protocol/1"
STEPS = 100
"""Points of a curve over time."""
UNITS = {"trials": "trials", "seconds": f"time steps, {STEPS} in all"}
SCORES: dict[str, Callable[[float], float]] = {"perplexity": lambda perplexity: 1 / perplexity}
"""From error to a score of which larger is better, where it is not 1 - error."""

Document = Mapping[str, Any]
Curve = NDArray[np.float64]
Key = tuple[str, str]
"""Task and model."""


@dataclass(frozen=True)
class Attempt:
    """One method, once: what it was and what it tried."""

    settings: Mapping[str, Any]
    seed: int
    points: list[tuple[float, float]]
    """Validation error and share of the non-embedding parameters of everything tried, in order."""
    seconds: list[float]
    result: Document = field(repr=False)
    """With `front`, `original` and, of a comparison, what its methods share."""
    compared: bool
    """Whether it ran beside others at equal wall-clock."""

    @property
    def identity(self) -> tuple[Any, ...]:
        """What a second run of the same has too; only the first of them counts."""
        rows = tuple(sorted((self.result.get("rows") or {}).items()))
        return (*(self.settings[name] for name in (*SETTINGS, *CONDITIONS)), rows, self.seed, self.compared)


def alike(attempts: Sequence[Attempt], varied: str) -> list[Attempt]:
    """The runs that differ in one setting alone: of all such sets, the one with most of its values, then of runs."""
    others = [name for name in (*SETTINGS, *CONDITIONS) if name != varied]
    sets = group_by([attempt for attempt in attempts if attempt.settings[varied] is not None], others)
    return max(
        sets, key=lambda members: (len({attempt.settings[varied] for attempt in members}), len(members)), default=[]
    )


def side_by_side(attempts: Sequence[Attempt], varied: str) -> list[Attempt]:
    """Runs of comparisons where there are any; else of every method those settings that most of its runs have.

    All on about as many training rows: as most of them have.
    """
    candidates = [attempt for attempt in attempts if attempt.compared] or list(attempts)
    by_name = group_by(max(group_by(candidates, ["rows"]), key=len, default=[]), [varied])
    return [attempt for members in by_name for attempt in max(group_by(members, (*SETTINGS, "order")), key=len)]


def group_by(attempts: Sequence[Attempt], names: Sequence[str]) -> list[list[Attempt]]:
    """Runs with equal settings together."""
    groups: dict[tuple[Any, ...], list[Attempt]] = {}
    for attempt in attempts:
        groups.setdefault(tuple(attempt.settings[name] for name in names), []).append(attempt)
    return list(groups.values())


def read_attempts(document: Document) -> list[Attempt]:
    """The run of a compress result, or those of all methods of a comparison."""
    methods = document.get("methods")
    entries = methods or {document.get("method") or WEIGHT_SHARING: {}}
    return [read_attempt(name, {**document, **entry}, compared=bool(methods)) for name, entry in entries.items()]


def read_attempt(method: str, result: Document, *, compared: bool) -> Attempt:
    """What was tried and when; what came before the search counts where methods are given equal wall-clock."""
    phases, end = result.get("seconds_by_phase") or {}, float(result.get("seconds") or 0.0)
    before = sum(value for _, value in takewhile(lambda phase: phase[0] != SEARCH, phases.items())) if compared else 0

    def seconds(row: Mapping[str, Any]) -> float:  # at the end where it was not recorded
        return float(before) + float(row["seconds"]) if is_number(row.get("seconds")) else end

    rows = [row for row in result.get("trials") or result.get("front") or [] if has_numbers(row)]
    rows.sort(key=seconds)
    return Attempt(
        settings={
            **{name: result.get(name) for name in (*SETTINGS, "order")},
            "method": method,
            "rows": f"{(result.get('rows') or {}).get('train', 0):.1e}",  # about: a split may differ by a few rows
        },
        seed=int(result.get("seed") or 0),
        points=[(row["validation_error"], row["nonembedding_share"]) for row in rows],
        seconds=[seconds(row) for row in rows],
        result=result,
        compared=compared,
    )


def has_numbers(row: Mapping[str, Any]) -> bool:
    return all(is_number(row.get(name)) for name in ("validation_error", "nonembedding_share"))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


@dataclass(frozen=True)
class Comparison:
    """Runs side by side that differ in one setting."""

    title: str
    varied: str
    methods: tuple[str, ...] = ()
    """Only runs of these methods; of all when empty."""
    pick: Callable[[Sequence[Attempt], str], list[Attempt]] = alike
    steps: str = "trials"
    """What average ranks are taken over: trials where they cost about the same, seconds where they do not."""

    def choose(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """The runs to put side by side."""
        usable = [attempt for attempt in attempts if attempt.points]
        if self.methods:
            usable = [attempt for attempt in usable if attempt.settings["method"] in self.methods]
        return self.pick(usable, self.varied)


COMPARISONS = {
    "methods": Comparison("Methods", "method", pick=side_by_side, steps="seconds"),
    "spaces": Comparison("Spaces", "space", (WEIGHT_SHARING,)),
    "strategies": Comparison("Strategies", "strategy", (WEIGHT_SHARING,)),
    "standard_samplers": Comparison("Standard NAS", "sampler", (STANDARD,), steps="seconds"),
    "samplers": Comparison("Weight-sharing NAS", "sampler", (WEIGHT_SHARING,)),
}
RANKED = ("standard_samplers", "samplers")
"""Comparisons whose average ranks Figure 6 shows."""


def compare_runs(documents: Iterable[Document], *, seed: int = 0) -> dict[str, Any]:
    """All that the figures need of these compress, compare and preview results; `notes` says what is missing."""
    documents = list(documents)
    runs = [document for document in documents if "original" in document]
    by_key: dict[Key, list[Document]] = {}
    for document in runs:
        by_key.setdefault((str(document["task"]), str(document["model"])), []).append(document)
    several = len({model for _, model in by_key}) > 1
    names = {
        (task, model): f"{task}, {PurePath(model).name or model}" if several else task  # without the model's folder
        for task, model in by_key
    }
    groups = [compare_group(names[key], key, members) for key, members in by_key.items()]
    return {
        "schema": SCHEMA,
        "archwright": __version__,
        "rules": {"reference": list(REFERENCE), "best": BEST, "samples": SAMPLES, "seed": seed},
        "groups": groups,
        "ranks": [entry for name in RANKED for entry in rank_names(name, groups, seed)],
        "previews": [document for document in documents if "spaces" in document],
        "honesty": collect_studies(runs, "honesty", names),
        "quantized": collect_studies(runs, "quantized", names),
        "notes": write_notes(groups),
    }


def compare_group(name: str, key: Key, documents: Sequence[Document]) -> dict[str, Any]:
    """Everything about one task and one model."""
    read = [attempt for document in documents for attempt in read_attempts(document)]
    attempts = list({attempt.identity: attempt for attempt in reversed(read)}.values())[::-1]
    sets = {title: comparison.choose(attempts) for title, comparison in COMPARISONS.items()}
    metric = str(documents[0].get("metric"))
    runs = []
    for attempt in attempts:
        values = {
            field: attempt.result.get(field) for field in ("hypervolume", "test_hypervolume", "seconds", "folder")
        }
        front = attempt.result.get("front") or []
        in_methods = attempt in sets["methods"]
        settings = {name: attempt.settings[name] for name in (*SETTINGS, "order")}
        about = {"rows": attempt.result.get("rows"), "seed": attempt.seed, **values}
        runs.append({**settings, **about, "front": front, "in_methods": in_methods})
    return {
        "name": name,
        "task": key[0],
        "model": key[1],
        "metric": metric,
        "original": documents[0]["original"],
        "repeated": len(read) - len(attempts),
        "runs": runs,
        "comparisons": {title: compare_set(COMPARISONS[title], members) for title, members in sets.items() if members},
        "bins": score_bins(sets["methods"], SCORES.get(metric, lambda error: 1 - error)),
    }


def compare_set(comparison: Comparison, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """Hypervolumes and regrets of every name, on quantiles pooled over all of these runs."""
    by_name: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        by_name.setdefault(str(attempt.settings[comparison.varied]), []).append(attempt)
    points = pooled_quantiles({name: [attempt.points for attempt in seeds] for name, seeds in by_name.items()})
    regrets = {name: [regret_over_trials(seed) for seed in seeds] for name, seeds in points.items()}
    steps = max(len(curve) for curves in regrets.values() for curve in curves)
    # Equal steps of time from when every run has a first point to when the last one ends.
    first = max(min(attempt.seconds) for attempt in attempts)
    last = max(max(attempt.seconds) for attempt in attempts)
    grid = np.linspace(first, last, STEPS) if last > first else np.array([last])
    return {
        "varied": comparison.varied,
        "fixed": {
            name: list(dict.fromkeys(attempt.settings[name] for attempt in attempts))
            for name in SETTINGS
            if name != comparison.varied
        },
        "pooled": sum(len(attempt.points) for attempt in attempts),
        "names": {name: summarize(seeds, points[name], regrets[name], steps, grid) for name, seeds in by_name.items()},
    }


def summarize(
    attempts: Sequence[Attempt], points: Sequence[Curve], regrets: Sequence[Curve], steps: int, grid: Curve
) -> dict[str, Any]:
    """One name of a comparison; a run that ends early keeps its last regret."""
    volumes = [normalised_hypervolume(seed) for seed in points]
    mean, deviation = over_seeds([[volume] for volume in volumes])
    padded = [np.concatenate([curve, np.repeat(curve[-1], steps - len(curve))]) for curve in regrets]
    timed = [at_times(attempt.seconds, curve, grid) for attempt, curve in zip(attempts, regrets, strict=True)]
    return {
        "seeds": [attempt.seed for attempt in attempts],
        "hypervolume": volumes,
        "mean": float(mean[0]),
        "deviation": finite(deviation[0]),
        "regret": BEST - float(mean[0]),
        "test": test_volumes(attempts),
        "over": {"trials": mean_curve(np.arange(1.0, steps + 1), padded), "seconds": mean_curve(grid, timed)},
    }


def test_volumes(attempts: Sequence[Attempt]) -> dict[str, Any] | None:
    """Raw hypervolumes of the chosen fronts on test rows; None unless every run has one."""
    known = [attempt.result.get("test_hypervolume") for attempt in attempts]
    volumes = [float(volume) for volume in known if volume is not None and is_number(volume)]
    if len(volumes) < len(attempts):
        return None
    mean, deviation = over_seeds([[volume] for volume in volumes])
    return {"hypervolume": volumes, "mean": float(mean[0]), "deviation": finite(deviation[0])}


def mean_curve(x: Curve, seeds: Sequence[Curve]) -> dict[str, Any]:
    mean, deviation = over_seeds(seeds)
    return {
        "x": x.tolist(),
        "mean": mean.tolist(),
        "deviation": [finite(value) for value in deviation],
        "seeds": [seed.tolist() for seed in seeds],
    }


def finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def rank_names(title: str, groups: Sequence[Mapping[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Average ranks over the tasks of each model, of the names that all of its compared tasks have.

    Ranks are taken at every trial that all tasks have, or at every hundredth of their time.
    """
    comparison, entries = COMPARISONS[title], []
    models = list(dict.fromkeys(group["model"] for group in groups))
    for model in models:
        tasks = {
            group["task"]: group["comparisons"][title]["names"]
            for group in groups
            if group["model"] == model and len(group["comparisons"].get(title, {"names": ()})["names"]) > 1
        }
        common = [name for name in next(iter(tasks.values()), ()) if all(name in names for names in tasks.values())]
        if len(common) < 2:
            continue
        curves = {
            task: {name: names[name]["over"][comparison.steps]["seeds"] for name in common}
            for task, names in tasks.items()
        }
        shortest = min(len(seeds[0]) for by_name in curves.values() for seeds in by_name.values())
        aligned = {
            task: {name: [curve[:shortest] for curve in seeds] for name, seeds in by_name.items()}
            for task, by_name in curves.items()
        }
        ranks = average_ranks(aligned, rng=np.random.default_rng(seed))
        entries.append(
            {
                "varied": comparison.varied,
                "model": model,
                "name": f"{comparison.title}{', ' + model if len(models) > 1 else ''}",
                "tasks": list(tasks),
                "unit": UNITS[comparison.steps],
                "steps": list(range(1, shortest + 1)),
                "ranks": {name: values.tolist() for name, values in ranks.items()},
            }
        )
    return entries


def score_bins(attempts: Sequence[Attempt], score: Callable[[float], float]) -> dict[str, Any] | None:
    """Best test score of every method within each size, relative to the unpruned model; None without test errors."""
    methods: dict[str, list[list[float | None]]] = {}
    for attempt in attempts:
        front = [
            entry for entry in attempt.result["front"] if is_number(entry.get("test_error")) and has_numbers(entry)
        ]
        unpruned = attempt.result["original"].get("test_error")
        if front and is_number(unpruned):
            scores = [score(entry["test_error"]) for entry in front]
            shares = [entry["nonembedding_share"] for entry in front]
            bins = size_bins(shares, scores, unpruned=score(unpruned))
            methods.setdefault(attempt.settings["method"], []).append(bins)
    if not methods:
        return None

    def over_known_seeds(values: Sequence[float | None]) -> dict[str, Any] | None:
        """Mean and deviation over those seeds that have a network this small."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        mean, deviation = over_seeds([[value] for value in known])
        return {"mean": float(mean[0]), "deviation": finite(deviation[0]), "seeds": len(known)}

    means = {name: [over_known_seeds(values) for values in zip(*seeds, strict=True)] for name, seeds in methods.items()}
    return {"shares": list(SHARES), "slack": SLACK, "lines": list(LINES), "methods": means}


def collect_studies(documents: Sequence[Document], key: str, names: Mapping[Key, str]) -> list[dict[str, Any]]:
    """This block of all results that have it, with what it is about."""
    about = ("task", "model", "metric", "seed")
    return [
        {
            **{name: document.get(name) for name in about},
            "name": names[str(document["task"]), str(document["model"])],
            **document[key],
        }
        for document in documents
        if document.get(key)
    ]


def write_notes(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the runs do not allow to say."""
    notes = []
    for group in groups:
        name, seeds = group["name"], {run["seed"] for run in group["runs"]}
        if group["repeated"]:
            notes.append(f"{name}: {group['repeated']} runs have the settings and seed of another and are left out.")
        if len(seeds) == 1:
            notes.append(f"{name}: only seed {min(seeds)}, so nothing is known about the deviation between seeds.")
        if not any(len(comparison["names"]) > 1 for comparison in group["comparisons"].values()):
            notes.append(
                f"{name}: nothing to compare with; runs of another method, space, strategy or sampler are needed."
            )
        if group["bins"] is None:
            notes.append(f"{name}: no test errors, so no scores within sizes.")
    return notes
