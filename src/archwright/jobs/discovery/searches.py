"""The two ways to search, with what the report says about each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archwright.errors import BadInput, Failed
from archwright.jobs import scoring_options as so
from archwright.jobs.discovery.evolution import Evolved, Evolving, Judge, at_random, evolve, sampled
from archwright.jobs.discovery.exhaustive import BINS, keys, order, ranked, read
from archwright.jobs.discovery.ground import Land
from archwright.jobs.discovery.known import placed
from archwright.jobs.discovery.nested import Chosen, ladder, merged
from archwright.progress import progress
from archwright.proxies.formula import parse

NOTHING = "no formula is finite, not constant and there for 95 % of the rows; look at more texts or other inputs."
FINALISTS = 200
SEARCHES = {
    "evolution with PPS": (evolve, True),
    "evolution without PPS": (evolve, False),
    "random search": (at_random, False),
}
"""The lines of LPZero's Figure 6: what searches, and whether formulas are pruned."""


@dataclass(frozen=True)
class Found:
    """Formulas, the best first, and the numbers of the report."""

    chosen: list[Chosen]
    numbers: Mapping[str, Any]
    notes: list[str]


def all_ranked(land: Land) -> Found:
    """Every formula of the space."""
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


def front(rows: Sequence[Sequence[Any]], land: Land) -> list[dict[str, Any]]:
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


def evolved(land: Land, options: so.Evolution) -> Found:
    """Evolution for every set of rows, and on all rows its curves beside those of its rivals."""
    settings = settings_of(options)
    if land.space.unary == 1 and settings.pps:
        note = ["with one unary operation per branch Table 6 has nothing to prune: compare with --unary 2."]
    else:
        note = []
    total = options.seeds * (land.trial.count + len(SEARCHES))
    with progress("evolution", total * settings.generations, "generations") as bar:
        curves: dict[str, list[Evolved]] = {name: [] for name in SEARCHES}
        for name, seed in [(name, seed) for name in SEARCHES for seed in range(options.seeds)]:
            search, pps = SEARCHES[name]
            curves[name].append(one_search(land, replace(settings, pps=pps), search, -1, seed))
            bar.advance(settings.generations)
        own = "evolution with PPS" if settings.pps else "evolution without PPS"
        best: list[list[list[Any]]] = []
        for place in range(land.trial.count):
            best.append([])
            for seed in range(options.seeds):
                best[-1] += one_search(land, settings, evolve, place, seed).best[:FINALISTS]
                bar.advance(settings.generations)
    best.append([row for one in curves[own] for row in one.best[:FINALISTS]])
    chosen = ladder([rescored(rows, land, place) for place, rows in enumerate(best)])
    if not chosen:
        raise Failed(NOTHING)
    return Found(chosen, {**numbers(curves), "exhaustive_best": known_best(land)}, note)


def settings_of(options: so.Evolution) -> Evolving:
    least = {"generations": 1, "population": 2, "sample": 0, "seeds": 1}
    for name, value in least.items():
        if getattr(options, name) < value:
            raise BadInput(f"--{name} must be at least {value}, got {getattr(options, name)}.")
    shared = ("generations", "population", "pps", "sample", "distinct")
    return Evolving(parents=share(options.parents), **{name: getattr(options, name) for name in shared})


def share(text: str) -> float:
    """10% or 0.1 as a number."""
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 < found <= 1:
        raise BadInput(f"--parents must be a share such as 10%, got {text!r}.")
    return found


def one_search(land: Land, settings: Evolving, search: Any, place: int, seed: int) -> Evolved:
    """A search on the rows of one set (-1: all), on a sample of its architectures."""
    rng = np.random.default_rng((land.glass.seed, seed, place + 1))
    rows = sampled(land.trial, land.trial.sets[place], settings.sample, rng)
    found: Evolved = search(land.space, Judge(land.table, land.trial, rows, settings.pps), settings, rng)
    return found


def rescored(rows: Sequence[Sequence[Any]], land: Land, place: int) -> list[list[Any]]:
    """The finalists on all rows of their set."""
    judge = Judge(land.table, land.trial, land.trial.sets[place], pps=False)
    texts = {str(text): int(size) for _, size, text in rows}
    found: list[list[Any]] = [[judge(parse(text)), size, text] for text, size in texts.items()]
    return sorted((row for row in found if np.isfinite(row[0])), key=order)


def numbers(curves: Mapping[str, Sequence[Evolved]]) -> dict[str, Any]:
    """Curves of every search, and how many formulas were looked at."""
    told = {name: [one.as_dict() for one in runs] for name, runs in curves.items()}
    valid = len({row[2] for runs in curves.values() for one in runs for row in one.best})
    return {"search": "evolve", "formulas_valid": valid, "evolution": told, "histogram": None, "published": []}


def known_best(land: Land) -> dict[str, Any] | None:
    """The best of all formulas on all rows, where they were ranked before."""
    names = [*(" ".join(pair) for pair in land.space.pairs), *land.space.inputs]
    found = keys(land.space, land.table, land.trial, names)
    files = [land.folder / "discover" / f"{key}.json" for key in found.values()]
    if not all(file.exists() for file in files):
        return None
    fitness, size, text = merged([read(file) for file in files], land.trial.count + 1)[-1][0]
    return {"fitness": fitness, "size": size, "formula": text}
