"""LPZero's ablations: other sizes of the population, other numbers of unary operations, and no formula twice."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from archwright.discovery.context import DiscoveryContext, lazily
from archwright.discovery.evolution import EvolutionResult, EvolutionSettings, evolve
from archwright.progress import progress
from archwright.statistics.bootstrap import mean_over_seeds as mean

POPULATIONS = (80, 100, 200)
"""Figure 7."""
UNARY = (2, 3, 4, 5)
"""Figure 13 and Table 5."""
ITERATIONS = 100
"""Generations of Figure 13."""
OURS = (0.1, 0.25, 0.5)
"""Shares of parents when no formula is scored twice."""

Run = Callable[[DiscoveryContext, EvolutionSettings, Callable[..., EvolutionResult], int, int], EvolutionResult]
Study = tuple[str, str, DiscoveryContext, EvolutionSettings]
"""What is varied, its value, and where with which settings."""


def ablated(land: DiscoveryContext, settings: EvolutionSettings, seeds: Sequence[int], run: Run) -> dict[str, Any]:
    """Searches on all rows; those of a seed share their sample of architectures."""
    studies = [*populations(land, settings), *parents(land, settings), *unaries(land, settings)]
    found: dict[str, Any] = {}
    with progress("ablations", len(studies) * len(seeds), "searches") as bar:
        for name, value, where, chosen in studies:
            runs = []
            for seed in seeds:
                runs.append(run(where, chosen, evolve, -1, seed))
                bar.advance()
            found.setdefault(name, {})[value] = told(runs)
    return found


def populations(land: DiscoveryContext, settings: EvolutionSettings) -> list[Study]:
    return [("population", str(size), land, replace(settings, population=size)) for size in POPULATIONS]


def parents(land: DiscoveryContext, settings: EvolutionSettings) -> list[Study]:
    """Not in the paper."""
    chosen = {f"{share:.0%}": replace(settings, parents=share, distinct=True) for share in OURS}
    return [("distinct, parents", value, land, one) for value, one in chosen.items()]


def unaries(land: DiscoveryContext, settings: EvolutionSettings) -> list[Study]:
    """Statistics of chains that do not lie ready are taken when they are wanted."""
    short = replace(settings, generations=min(settings.generations, ITERATIONS))
    return [("unary", str(unary), at(land, unary), short) for unary in UNARY]


def at(land: DiscoveryContext, unary: int) -> DiscoveryContext:
    """The same rows with formulas of so many operations."""
    if unary == land.space.unary:
        return land
    space = replace(land.space, unary=unary)
    return replace(land, space=space, table=lazily(land.looks, space, land.folder, land.eyes))


def told(runs: Sequence[EvolutionResult]) -> dict[str, Any]:
    values: dict[str, list[float | None]] = {
        "best": [one.curve[-1] for one in runs],
        "initial": [one.curve[0] for one in runs],
        "winning_rate": [one.winning_rate for one in runs],
        "evaluations": [float(one.evaluations[-1]) for one in runs],
        "looks": [float(one.counts["looks"]) for one in runs],
        "seconds": [one.seconds for one in runs],
    }
    return {**{name: mean(column) for name, column in values.items()}, "runs": [one.as_dict() for one in runs]}
