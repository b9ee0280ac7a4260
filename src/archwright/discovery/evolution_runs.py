"""Evolution as a command has it: for every set of rows, beside its rivals, each search kept once it is done."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from archwright.configs import scoring as so
from archwright.discovery.ablations import ablated
from archwright.discovery.comparison import compared
from archwright.discovery.context import DiscoveryContext
from archwright.discovery.cross_fitting import ladder, merged
from archwright.discovery.evolution import EvolutionResult, EvolutionSettings, at_random, evolve, finalists
from archwright.discovery.exhaustive import keys, order, read
from archwright.discovery.exhaustive_report import NOTHING, Found, front
from archwright.discovery.fitness import FitnessFunction, sampled
from archwright.discovery.folds import AIMS
from archwright.discovery.score_table import Table
from archwright.errors import BadInput, Failed
from archwright.progress import progress
from archwright.proxies.formulas.formula import parse
from archwright.spaces.formulas import COUNTED
from archwright.store import digest, write_whole

FINALISTS, FEWER = 200, 10
"""Formulas of a search that are compared on all rows of its set; fewer where their statistics have to be taken."""
RANDOM = "random search"
SEARCHES: dict[str, tuple[Callable[..., EvolutionResult], dict[str, bool]]] = {
    "evolution with PPS": (evolve, {"pps": True, "distinct": False}),
    "evolution without PPS": (evolve, {"pps": False, "distinct": False}),
    RANDOM: (at_random, {"pps": False, "distinct": False}),
    "evolution, no formula twice": (evolve, {"pps": True, "distinct": True}),
}
"""The lines of LPZero's Figure 6, and ours: what searches, and how."""


def evolved(land: DiscoveryContext, options: so.EvolutionOptions) -> Found:
    """Evolution for every set of rows, and on all rows its curves beside those of its rivals."""
    settings = settings_of(options, land.trial.fitness)
    seeds = range(options.seeds)
    with progress("evolution", options.seeds * (land.trial.count + len(SEARCHES)), "searches") as bar:
        curves: dict[str, list[EvolutionResult]] = {name: [] for name in SEARCHES}
        for name, seed in [(name, seed) for name in SEARCHES for seed in seeds]:
            search, changes = SEARCHES[name]
            curves[name].append(one_search(land, replace(settings, **changes), search, -1, seed))
            bar.advance()
        best: list[list[list[Any]]] = []
        for place in range(land.trial.count):
            found = []
            for seed in seeds:
                found.append(one_search(land, settings, evolve, place, seed))
                bar.advance()
            best.append(finalists(found, most(land)))
    best.append(finalists([one_search(land, settings, evolve, -1, seed) for seed in seeds], most(land)))
    chosen = ladder([rescored(rows, land, place) for place, rows in enumerate(best)])
    if not chosen:
        raise Failed(NOTHING)
    land.table.fetch([parse(row[2]) for one in chosen for row in one.rows], slice(None))
    ablation = ablated(land, settings, seeds, one_search) if options.ablate else None
    told = {**numbers(curves), **close(curves, land), "ablation": ablation, **fronts(land, best[-1])}
    land.table.rest()
    return Found(chosen, told, notes(land, settings))


def most(land: DiscoveryContext) -> int:
    return FEWER if land.table.lazy else FINALISTS


def notes(land: DiscoveryContext, settings: EvolutionSettings) -> list[str]:
    found = []
    if land.space.unary == 1 and settings.pps:
        found.append("with one unary operation per branch Table 6 has nothing to prune: compare with --unary 2.")
    if land.space.unary > COUNTED:
        found.append(f"with {land.space.unary} unary operations per branch different formulas are too many to count.")
    return found


def settings_of(options: so.EvolutionOptions, fitness: str = "spearman") -> EvolutionSettings:
    """With several aims no formula is scored twice: copies would crowd the front."""
    shared = {name: getattr(options, name) for name in ("generations", "population", "pps", "sample")}
    rates = {name: getattr(options, name) for name in ("crossover", "mutation")}
    distinct = options.distinct or fitness in AIMS
    return EvolutionSettings(parents=share(options.parents), distinct=distinct, **shared, **rates)


def share(text: str) -> float:
    """10% or 0.1 as a number."""
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 < found <= 1:
        raise BadInput(f"--parents must be a share such as 10%, got {text!r}.")
    return found


def one_search(
    land: DiscoveryContext, settings: EvolutionSettings, search: Callable[..., EvolutionResult], place: int, seed: int
) -> EvolutionResult:
    """A search on the rows of one set (-1: all), on a sample of its architectures; one done before is read."""
    file = land.folder / "discover" / f"search-{name_of(land, settings, search, place, seed)}.json"
    if file.exists():
        return remembered(file)
    rng = np.random.default_rng((land.setup.seed, seed, place + 1))
    rows = sampled(land.trial, land.trial.sets[place], settings.sample, rng)
    found = search(land.space, FitnessFunction(land.table, land.trial, rows, settings.pps), settings, rng)
    land.table.rest()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(asdict(found)))
    return found


def name_of(
    land: DiscoveryContext, settings: EvolutionSettings, search: Callable[..., EvolutionResult], place: int, seed: int
) -> str:
    """Everything that a search depends on, this code included."""
    trial = (land.trial.cells, land.trial.fitness, land.trial.fold.tolist(), land.space, settings)
    return digest(land.digest, repr(trial), repr((search.__name__, place, seed, land.setup.seed)), code())


@cache
def code() -> str:
    return digest(*(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py"))))


def remembered(file: Path) -> EvolutionResult:
    try:
        return EvolutionResult(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise Failed(f"{file} is damaged; delete it and run the same command again.") from error


def rescored(rows: Sequence[Sequence[Any]], land: DiscoveryContext, place: int) -> list[list[Any]]:
    """The finalists on all rows of their set."""
    judge = FitnessFunction(land.table, land.trial, land.trial.sets[place], pps=False)
    formulas = {str(text): parse(str(text)) for _, _, text in rows}
    judge.prepare(list(formulas.values()))
    found: list[list[Any]] = [[judge(formula).fitness, formula.size, text] for text, formula in formulas.items()]
    return sorted((row for row in found if np.isfinite(row[0])), key=order)


def numbers(curves: Mapping[str, Sequence[EvolutionResult]]) -> dict[str, Any]:
    """Curves of every search, and how many formulas were looked at."""
    told = {name: [one.as_dict() for one in runs] for name, runs in curves.items()}
    valid = len({row[2] for runs in curves.values() for one in runs for row in one.best})
    shared = {"search": "evolve", "formulas_valid": valid, "histogram": None, "published": []}
    return {**shared, "evolution": told, "comparison": compared(curves, RANDOM)}


def close(curves: Mapping[str, Sequence[EvolutionResult]], land: DiscoveryContext) -> dict[str, Any]:
    """The best of all formulas on all rows, where they were ranked before, and how near each search came to it."""
    if not isinstance(land.table, Table):
        return {"exhaustive_best": None, "on_all_rows": None}
    reached = {
        name: [rescored(finalists([one], FINALISTS), land, -1)[0][0] for one in runs if one.best]
        for name, runs in curves.items()
    }
    return {"exhaustive_best": known_best(land, land.table), "on_all_rows": reached}


def known_best(land: DiscoveryContext, table: Table) -> dict[str, Any] | None:
    names = [*(" ".join(pair) for pair in land.space.pairs), *land.space.inputs]
    found = keys(land.space, table, land.trial, names)
    files = [land.folder / "discover" / f"{key}.json" for key in found.values()]
    if not all(file.exists() for file in files):
        return None
    fitness, size, text = merged([read(file) for file in files], land.trial.count + 1)[-1][0]
    return {"fitness": fitness, "size": size, "formula": text}


def fronts(land: DiscoveryContext, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """With several aims: the front of the finalists on all rows."""
    return {"front": front(rescored(rows, land, -1), land)} if land.trial.fitness in AIMS else {}
