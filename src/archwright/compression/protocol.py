"""Results of several runs, compared as in Klein et al. 2024: one document for the report's figures."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.compression.attempts import (
    SETTINGS,
    STANDARD,
    WEIGHT_SHARING,
    Attempt,
    Document,
    alike,
    attempts_of,
    is_measured,
    is_number,
    side_by_side,
)
from archwright.statistics.protocol import (
    BEST,
    LINES,
    REFERENCE,
    SAMPLES,
    SHARES,
    at_times,
    average_ranks,
    normalised_hypervolume,
    over_seeds,
    pooled_quantiles,
    regret_over_trials,
    size_bins,
)
from archwright.version import __version__

SCHEMA = "archwright/protocol/1"
STEPS = 100
"""Points of a curve over time."""
UNITS = {"trials": "trials", "seconds": f"time steps, {STEPS} in all"}
SCORES: dict[str, Callable[[float], float]] = {"perplexity": lambda perplexity: 1 / perplexity}
"""From error to a score of which larger is better, where it is not 1 - error."""

Curve = NDArray[np.float64]
Key = tuple[str, str]
"""Task and model."""


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

    def of(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        usable = [one for one in attempts if one.points]
        return self.pick(
            [one for one in usable if not self.methods or one.settings["method"] in self.methods], self.varied
        )


COMPARISONS = {
    "methods": Comparison("Methods", "method", pick=side_by_side, steps="seconds"),
    "spaces": Comparison("Spaces", "space", (WEIGHT_SHARING,)),
    "strategies": Comparison("Strategies", "strategy", (WEIGHT_SHARING,)),
    "standard_samplers": Comparison("Standard NAS", "sampler", (STANDARD,), steps="seconds"),
    "samplers": Comparison("Weight-sharing NAS", "sampler", (WEIGHT_SHARING,)),
}
RANKED = ("standard_samplers", "samplers")
"""Comparisons whose average ranks Figure 6 shows."""


def protocol_of(documents: Iterable[Document], *, seed: int = 0) -> dict[str, Any]:
    """All that the figures need of these compress, compare and preview results; `notes` says what is missing."""
    given = list(documents)
    runs = [document for document in given if "original" in document]
    names = names_of(grouped(runs))
    groups = [group_of(names[key], key, of) for key, of in grouped(runs).items()]
    return {
        "schema": SCHEMA,
        "archwright": __version__,
        "rules": {"reference": list(REFERENCE), "best": BEST, "samples": SAMPLES, "seed": seed},
        "groups": groups,
        "ranks": [ranked for name in RANKED for ranked in ranks_of(name, groups, seed)],
        "previews": [document for document in given if "spaces" in document],
        "honesty": studies(runs, "honesty", names),
        "quantized": studies(runs, "quantized", names),
        "notes": notes_of(groups),
    }


def grouped(documents: Sequence[Document]) -> dict[Key, list[Document]]:
    found: dict[Key, list[Document]] = {}
    for document in documents:
        found.setdefault(key_of(document), []).append(document)
    return found


def key_of(document: Document) -> Key:
    return str(document["task"]), str(document["model"])


def names_of(keys: Iterable[Key]) -> dict[Key, str]:
    """A heading for each task and model; the model only where there are several, without the folder it lies in."""
    found = list(keys)
    several = len({model for _, model in found}) > 1
    return {(task, model): f"{task}, {PurePath(model).name or model}" if several else task for task, model in found}


def group_of(name: str, key: Key, documents: Sequence[Document]) -> dict[str, Any]:
    """Everything about one task and one model."""
    given = [attempt for document in documents for attempt in attempts_of(document)]
    attempts = list({one.identity: one for one in reversed(given)}.values())[::-1]
    sets = {name: comparison.of(attempts) for name, comparison in COMPARISONS.items()}
    metric = str(documents[0].get("metric"))
    return {
        "name": name,
        "task": key[0],
        "model": key[1],
        "metric": metric,
        "original": documents[0]["original"],
        "repeated": len(given) - len(attempts),
        "runs": [run_of(one, in_methods=one in sets["methods"]) for one in attempts],
        "comparisons": {name: compared(COMPARISONS[name], of) for name, of in sets.items() if of},
        "bins": bins_of(sets["methods"], SCORES.get(metric, lambda error: 1 - error)),
    }


def run_of(attempt: Attempt, *, in_methods: bool) -> dict[str, Any]:
    """What a picture of single runs needs."""
    kept = {name: attempt.result.get(name) for name in ("hypervolume", "seconds", "folder", "front")}
    return {**attempt.settings, "seed": attempt.seed, **kept, "front": kept["front"] or [], "in_methods": in_methods}


def compared(comparison: Comparison, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """Hypervolumes and regrets of every name, on quantiles pooled over all of these runs."""
    by_name: dict[str, list[Attempt]] = {}
    for one in attempts:
        by_name.setdefault(str(one.settings[comparison.varied]), []).append(one)
    points = pooled_quantiles({name: [one.points for one in of] for name, of in by_name.items()})
    regrets = {name: [regret_over_trials(seed) for seed in seeds] for name, seeds in points.items()}
    steps = max(len(curve) for of in regrets.values() for curve in of)
    grid = time_grid(attempts)
    return {
        "varied": comparison.varied,
        "fixed": {name: values_of(attempts, name) for name in SETTINGS if name != comparison.varied},
        "pooled": sum(len(one.points) for one in attempts),
        "names": {name: entry(of, points[name], regrets[name], steps, grid) for name, of in by_name.items()},
    }


def values_of(attempts: Sequence[Attempt], name: str) -> list[Any]:
    return list(dict.fromkeys(one.settings[name] for one in attempts))


def time_grid(attempts: Sequence[Attempt]) -> Curve:
    """Equal steps from when every run has a first point to when the last one ends."""
    first, last = max(min(one.seconds) for one in attempts), max(max(one.seconds) for one in attempts)
    return np.linspace(first, last, STEPS) if last > first else np.array([last])


def entry(
    attempts: Sequence[Attempt], points: Sequence[Curve], regrets: Sequence[Curve], steps: int, grid: Curve
) -> dict[str, Any]:
    """One name of a comparison; a run that ends early keeps its last regret."""
    volumes = [normalised_hypervolume(seed) for seed in points]
    mean, deviation = over_seeds([[volume] for volume in volumes])
    longest = [np.concatenate([curve, np.repeat(curve[-1], steps - len(curve))]) for curve in regrets]
    timed = [at_times(one.seconds, curve, grid) for one, curve in zip(attempts, regrets, strict=True)]
    return {
        "seeds": [one.seed for one in attempts],
        "hypervolume": volumes,
        "mean": float(mean[0]),
        "deviation": finite(deviation[0]),
        "regret": BEST - float(mean[0]),
        "over": {"trials": curve_of(np.arange(1.0, steps + 1), longest), "seconds": curve_of(grid, timed)},
    }


def curve_of(x: Curve, seeds: Sequence[Curve]) -> dict[str, Any]:
    mean, deviation = over_seeds(seeds)
    return {
        "x": x.tolist(),
        "mean": mean.tolist(),
        "deviation": [finite(value) for value in deviation],
        "seeds": [seed.tolist() for seed in seeds],
    }


def finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def ranks_of(name: str, groups: Sequence[Mapping[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Average ranks over the tasks of each model, of the names that all of its compared tasks have."""
    comparison, found = COMPARISONS[name], []
    several = len({of["model"] for of in groups}) > 1
    for model in dict.fromkeys(of["model"] for of in groups):
        tasks = {
            of["task"]: of["comparisons"][name]["names"]
            for of in groups
            if of["model"] == model and len(of["comparisons"].get(name, {"names": ()})["names"]) > 1
        }
        common = [one for one in next(iter(tasks.values()), ()) if all(one in names for names in tasks.values())]
        if len(common) > 1:
            about = {
                "varied": comparison.varied,
                "model": model,
                "name": f"{comparison.title}{', ' + model if several else ''}",
            }
            found.append({**about, **ranked(tasks, common, comparison.steps, seed)})
    return found


def ranked(tasks: Mapping[str, Mapping[str, Any]], names: Sequence[str], steps: str, seed: int) -> dict[str, Any]:
    """Ranks at every trial that all tasks have, or at every hundredth of their time."""
    curves = {task: {name: of[name]["over"][steps]["seeds"] for name in names} for task, of in tasks.items()}
    shortest = min(len(seeds[0]) for of in curves.values() for seeds in of.values())
    cut = {task: {name: [c[:shortest] for c in seeds] for name, seeds in of.items()} for task, of in curves.items()}
    ranks = average_ranks(cut, rng=np.random.default_rng(seed))
    return {
        "tasks": list(tasks),
        "unit": UNITS[steps],
        "steps": list(range(1, shortest + 1)),
        "ranks": {name: values.tolist() for name, values in ranks.items()},
    }


def bins_of(attempts: Sequence[Attempt], score: Callable[[float], float]) -> dict[str, Any] | None:
    """Best test score of every method within each size, relative to the unpruned model; None without test errors."""
    methods: dict[str, list[list[float | None]]] = {}
    for one in attempts:
        tested = [m for m in one.result["front"] if is_number(m.get("test_error")) and is_measured(m)]
        unpruned = one.result["original"].get("test_error")
        if tested and is_number(unpruned):
            scores = [score(member["test_error"]) for member in tested]
            shares = [member["nonembedding_share"] for member in tested]
            bins = size_bins(shares, scores, unpruned=score(unpruned))
            methods.setdefault(one.settings["method"], []).append(bins)
    if not methods:
        return None
    means = {name: [bin_of(values) for values in zip(*seeds, strict=True)] for name, seeds in methods.items()}
    return {"shares": list(SHARES), "lines": list(LINES), "methods": means}


def bin_of(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Mean and deviation over those seeds that have a network this small."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean, deviation = over_seeds([[value] for value in known])
    return {"mean": float(mean[0]), "deviation": finite(deviation[0]), "seeds": len(known)}


def studies(documents: Sequence[Document], key: str, names: Mapping[Key, str]) -> list[dict[str, Any]]:
    """This block of all results that have it, with what it is about."""
    about = ("task", "model", "metric", "seed")
    return [
        {**{name: of.get(name) for name in about}, "name": names[key_of(of)], **of[key]}
        for of in documents
        if of.get(key)
    ]


def notes_of(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the runs do not allow to say."""
    notes = []
    for of in groups:
        seeds = {run["seed"] for run in of["runs"]}
        if of["repeated"]:
            notes.append(f"{of['name']}: {of['repeated']} runs have the settings and seed of another and are left out.")
        if len(seeds) == 1:
            notes.append(
                f"{of['name']}: only seed {min(seeds)}, so nothing is known about the deviation between seeds."
            )
        if not any(len(one["names"]) > 1 for one in of["comparisons"].values()):
            notes.append(
                f"{of['name']}: nothing to compare with; runs of another method, space, strategy or sampler are needed."
            )
        if of["bins"] is None:
            notes.append(f"{of['name']}: no test errors, so no scores within sizes.")
    return notes
