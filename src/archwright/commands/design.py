"""`archwright design`: the architecture of a small language model, searched without training any."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna

from archwright.configs import design as do
from archwright.designing.comparison import compare_proxies
from archwright.designing.layers import layers_of_design, leanings, shares
from archwright.designing.limits import Clock, ceilings_of
from archwright.designing.methods import METHODS, Evaluation, EvaluationRequest
from archwright.designing.search import Design, DesignTask, SearchResult, search_designs
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.progress import progress
from archwright.reports.design import design_drawing, design_html, design_table
from archwright.scoring.scorer import check_page
from archwright.spaces import ARCHITECTURES
from archwright.spaces.architectures import ArchitectureSpace
from archwright.spaces.scaling import counts_of, scaled_up
from archwright.store import Scores, write_whole

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "archwright/design/1"
FILE, PAGE = "design.json", "design.html"


@dataclass(frozen=True)
class DesignResult:
    """The found architecture, and how it was found."""

    document: Mapping[str, Any]
    folder: Path
    page: Path

    @property
    def config(self) -> dict[str, Any]:
        """The found design; `score`, `train` and others read it from design.json."""
        return dict(self.document["config"])

    @property
    def front(self) -> list[dict[str, Any]]:
        """Designs that no other beats in every proxy: one where there is one proxy."""
        return list(self.document["front"])

    def as_json(self) -> dict[str, Any]:
        return dict(self.document)

    def show(self, console: "Console") -> None:
        console.print(design_drawing(self.document), highlight=False, markup=False)
        console.print(design_table(self.document))
        for where in (self.folder / FILE, self.page):
            console.print(f"{where.suffix[1:]}: {where}", soft_wrap=True, highlight=False)


def design(config: do.DesignConfig) -> DesignResult:
    """The design with the highest score within the limits, one search per seed; the best of them is the answer."""
    where, aim, limits, searching = config.space, config.goal, config.limits, config.search
    shot, looking, result = config.one_shot, config.scoring, config.output
    check(searching, result)
    space = ARCHITECTURES[where.space].space(where.variant)
    ceilings = ceilings_of(space, limits)
    ceilings.bounds()
    check_scale(space, result.scale_up)
    known = Scores(looking.out)
    question = EvaluationRequest(space, aim, looking, shot, known)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with METHODS[aim.method](question) as jury:
        page = check_page(result.html or looking.out / PAGE)  # makes a folder: not before all else is in order
        task = DesignTask(space, jury.names, ceilings, Clock(space, space.batch[1], known), searching)
        runs = {name: repeated(task, jury, name, looking.seed) for name in (searching.sampler, *searching.against)}
    table = compare_proxies(task, question, seed=looking.seed) if aim.compare_proxies else []
    document = {
        **summary(where, task, looking),
        **answer(task, runs[searching.sampler], result),
        "against": {name: [as_search(task, one) for one in found] for name, found in runs.items()},
        "proxies_compared": table,
        "judged": {**jury.told, "looked": len(jury.done), "core_seconds": sum(jury.spent.values())},
        "environment": environment(),
    }
    write_whole(looking.out / FILE, json.dumps(document, indent=1))
    write_whole(page, design_html(document))
    return DesignResult(document, looking.out, page)


LEAST = {"population": 2, "generations": 1, "seeds": 1}


def check(searching: do.DesignSearchOptions, result: do.DesignOutputOptions) -> None:
    for name, least in LEAST.items():
        if getattr(searching, name) < least:
            raise BadInput(f"--{name} must be at least {least}, got {getattr(searching, name)}.")
    if result.scale_up is not None and result.scale_up < 2:
        raise BadInput(f"--scale-up must be at least 2, got {result.scale_up}.")
    tried = (searching.sampler, *searching.against)
    if len(set(tried)) < len(tried):
        raise BadInput(f"--against must name other samplers than --sampler, each once, got {', '.join(tried)}.")


def check_scale(space: ArchitectureSpace, factor: int | None) -> None:
    """Raises BadInput before the search where its result could not be scaled up."""
    if factor is not None:
        scaled_up(space.plan(space.sample(np.random.default_rng(0))), factor)


def repeated(task: DesignTask, jury: Evaluation, sampler: str, seed: int) -> list[SearchResult]:
    found = []
    for repeat in range(task.searching.seeds):
        with progress(f"{sampler} search {repeat + 1} of {task.searching.seeds}", task.budget, "designs") as bar:
            found.append(search_designs(task, jury.judge(repeat), sampler=sampler, repeat=repeat, seed=seed, bar=bar))
    return found


def summary(where: do.SpaceOptions, task: DesignTask, looking: do.DesignScoringOptions) -> dict[str, Any]:
    """What was searched, and how."""
    of = task.searching
    return {
        "schema": SCHEMA,
        "space": where.space,
        "variant": where.variant or ARCHITECTURES[where.space].variants[0],
        "size": task.space.size(),
        "proxies": list(task.names),
        "sampler": of.sampler,
        "population": of.population,
        "generations": of.generations,
        "distinct_only": of.distinct,
        "seed": looking.seed,
        "seeds": of.seeds,
        "limits": task.ceilings.as_json(),
    }


def answer(task: DesignTask, runs: Sequence[SearchResult], result: do.DesignOutputOptions) -> dict[str, Any]:
    """The best search by the first proxy, and what all of them have in common."""
    best = max(runs, key=lambda one: one.front[0].scores[task.names[0]])
    chosen = best.front[0]
    scores = [one.front[0].scores[task.names[0]] for one in runs]
    found = [layers_of_design(task.space, one.front[0].config) for one in runs]
    crowd = [layers_of_design(task.space, one.config) for run in runs for one in run.best]
    larger = {} if result.scale_up is None else {"scaled_up": scaled(task, chosen, result.scale_up)}
    return {
        **as_row(task, chosen),
        "score": chosen.scores[task.names[0]],
        "latency_ms": task.clock.timed(chosen.config)._asdict(),
        "front": [as_row(task, one) for one in best.front],
        "evaluations": best.evaluations,
        "distinct": best.distinct,
        "missing": best.missing,
        "seconds": best.seconds,
        "history": best.history,
        "spread": spread(scores),
        "blocks": {
            "found": shares(found), "population": shares(crowd),
            "found_leanings": leanings(found), "population_leanings": leanings(crowd),
        },
        **larger,
    }  # fmt: skip


def spread(scores: Sequence[float]) -> dict[str, float]:
    return {"mean": float(np.mean(scores)), "std": float(np.std(scores)), "low": min(scores), "high": max(scores)}


def as_row(task: DesignTask, one: Design) -> dict[str, Any]:
    counts = task.ceilings.counting.of(one.config)
    return {
        "config": one.config,
        "layers": layers_of_design(task.space, one.config),
        "scores": dict(one.scores),
        "counts": vars(counts),
        "parameters": counts.parameters,
    }


def as_search(task: DesignTask, one: SearchResult) -> dict[str, Any]:
    """One search in short."""
    row = as_row(task, one.front[0])
    return {
        "repeat": one.repeat,
        "config": row["config"],
        "layers": row["layers"],
        "parameters": row["parameters"],
        "score": one.front[0].scores[task.names[0]],
        "evaluations": one.evaluations,
        "distinct": one.distinct,
        "seconds": one.seconds,
        "history": one.history,
    }


def scaled(task: DesignTask, chosen: Design, factor: int) -> dict[str, Any]:
    """The design widened and deepened: outside the space, so a Hugging Face config."""
    plan = scaled_up(task.space.plan(chosen.config), factor)
    return {"factor": factor, "counts": vars(counts_of(plan)), "config": plan.to_diff_dict()}
