"""What design.json says: the best design, the searches, and what many designs have in common."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archwright.designing.search import DesignSearchResult, DesignTask, ScoredDesign
from archwright.spaces.architectures import LayerSummary

Document = dict[str, Any]


def describe_best(task: DesignTask, searches: Sequence[DesignSearchResult], scale_up: int | None) -> Document:
    """The best search by the first objective, and what all of them have in common."""
    objective = task.objectives[0]
    scores = [search.front[0].scores[objective] for search in searches]
    best = best_search(task, searches)
    chosen = best.front[0]
    winners = [task.space.layers(search.front[0].config) for search in searches]
    larger = {}
    if scale_up is not None:  # outside the space, so a Hugging Face config
        plan = task.space.scale_up(task.space.plan(chosen.config), scale_up)
        counts = task.space.plan_counts(plan).as_json()
        larger = {"scaled_up": {"factor": scale_up, "counts": counts, "config": plan.to_diff_dict()}}
    population = [task.space.layers(design.config) for search in searches for design in search.best]
    return {
        **describe_design(task, chosen),
        "score": chosen.scores[objective],
        "latency_ms": task.latency.measure(chosen.config)._asdict(),
        "front": [describe_design(task, design) for design in best.front],
        "evaluations": best.evaluations,
        "distinct": best.distinct,
        "missing": best.missing,
        "seconds": best.seconds,
        "history": best.history,
        "spread": {
            "mean": float(np.mean(scores)),
            "std": float(np.std(scores)),
            "low": min(scores),
            "high": max(scores),
        },
        "blocks": {
            "found": shares(winners),
            "population": shares(population),
            "found_leanings": leanings(winners),
            "population_leanings": leanings(population),
        },
        **larger,
    }


def best_search(task: DesignTask, searches: Sequence[DesignSearchResult]) -> DesignSearchResult:
    """That with the highest first objective."""
    return max(searches, key=lambda search: search.front[0].scores[task.objectives[0]])


def describe_design(task: DesignTask, design: ScoredDesign) -> Document:
    counts = task.limits.counts(design.config)
    return {
        "config": design.config,
        "layers": task.space.layers(design.config),
        "scores": dict(design.scores),
        "counts": counts.as_json(),
        "parameters": counts.parameters,
    }


def describe_search(task: DesignTask, search: DesignSearchResult) -> Document:
    """One search in short."""
    design = search.front[0]
    return {
        "repeat": search.repeat,
        "config": design.config,
        "layers": task.space.layers(design.config),
        "parameters": task.limits.counts(design.config).parameters,
        "score": design.scores[task.objectives[0]],
        "evaluations": search.evaluations,
        "distinct": search.distinct,
        "seconds": search.seconds,
        "history": search.history,
    }


def shares(designs: Sequence[Sequence[LayerSummary]]) -> list[dict[str, float]]:
    """Of each layer the share of each kind, among the designs that have the layer."""
    depth = max(map(len, designs))
    places = [[layers[place]["kind"] for layers in designs if place < len(layers)] for place in range(depth)]
    kinds = sorted({kind for place in places for kind in place})
    return [{kind: place.count(kind) / len(place) for kind in kinds} for place in places]


def leanings(designs: Sequence[Sequence[LayerSummary]]) -> dict[str, dict[str, float]]:
    """Of each kind: its share of all layers, of the lower half and of the upper half of them."""
    halves: Mapping[str, list[str]] = {
        "all": [layer["kind"] for layers in designs for layer in layers],
        "lower": [layer["kind"] for layers in designs for layer in layers[: len(layers) // 2]],
        "upper": [layer["kind"] for layers in designs for layer in layers[(len(layers) + 1) // 2 :]],
    }
    return {
        kind: {name: kinds.count(kind) / len(kinds) if kinds else 0.0 for name, kinds in halves.items()}
        for kind in sorted(set(halves["all"]))
    }
