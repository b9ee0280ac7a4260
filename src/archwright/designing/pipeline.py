"""The pipeline of `archwright design`, from its options to design.json and the page."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from archwright.configs import design as do
from archwright.configs.yaml_file import write_config
from archwright.designing import METHODS, EvaluationRequest
from archwright.designing.limits import DesignLimits, LatencyMeter
from archwright.designing.report import Document, best_search, describe_best, describe_search
from archwright.designing.search import DesignTask, search_designs
from archwright.environment import environment
from archwright.errors import BadInput
from archwright.reports.design import render_design_page
from archwright.scoring.setup import check_page
from archwright.spaces import ARCHITECTURES
from archwright.store import ScoreStore, write_atomic

SCHEMA = "archwright/design/1"
FILE, PAGE = "design.json", "design.html"
COMPARED = (
    "synaptic_saliency",
    "activation_distance",
    "synaptic_diversity",
    "attention_confidence",
    "softmax_confidence",
    "parameters",
    "v_pca",
    "w_pca",
)
"""Proxies of W-PCA, Tables 2, 3 and 5."""


def design_architecture(config: do.DesignConfig) -> tuple[Document, Path]:
    """The design with the highest score within the limits as a JSON document, and the page about it.

    One search per seed and sampler; the best search of the first sampler is the answer.
    """
    options, scoring, seed = config.search, config.scoring, config.scoring.seed
    samplers = (options.sampler, *options.against)
    if len(set(samplers)) < len(samplers):
        raise BadInput(f"--against must name other samplers than --sampler, each once, got {', '.join(samplers)}.")
    space = ARCHITECTURES[config.space.space].with_variant(config.space.variant)
    limits = DesignLimits.from_options(space, config.limits)
    limits.bounds()
    if config.output.scale_up is not None:  # refused now, not after the search
        space.scale_up(space.plan(space.sample(np.random.default_rng(0))), config.output.scale_up)
    known = ScoreStore(scoring.out)
    request = EvaluationRequest(space, config.goal, scoring, config.one_shot, known)
    with METHODS[config.goal.method](request) as evaluation:
        page = check_page(config.output.html or scoring.out / PAGE)  # makes a folder: not before all else is in order
        task = DesignTask(space, evaluation.objectives, limits, LatencyMeter(space, space.batch[1], known), options)
        searches = {
            sampler: [
                search_designs(
                    task,
                    evaluation.evaluator(repeat),
                    sampler=sampler,
                    repeat=repeat,
                    seed=seed,
                    title=f"{sampler} search {repeat + 1} of {options.seeds}",
                )
                for repeat in range(options.seeds)
            ]
            for sampler in samplers
        }
        best = best_search(task, searches[options.sampler])
        layer_scores = evaluation.layer_scores(best.front[0].config, best.repeat)
    compared = compare_proxies(task, request) if config.goal.compare_proxies else []
    document = {
        "schema": SCHEMA,
        "space": config.space.space,
        "variant": space.variant,
        "size": space.size(),
        "proxies": list(task.objectives),
        "sampler": options.sampler,
        "population": options.population,
        "generations": options.generations,
        "distinct_only": options.distinct,
        "seed": seed,
        "seeds": options.seeds,
        "limits": limits.as_json(),
        **describe_best(task, searches[options.sampler], config.output.scale_up),
        "layer_scores": layer_scores,
        "against": {name: [describe_search(task, each) for each in results] for name, results in searches.items()},
        "proxies_compared": compared,
        "judged": {
            **evaluation.details,
            "looked": len(evaluation.cost.evaluated),
            "core_seconds": evaluation.cost.core_seconds,
        },
        "environment": environment(),
    }
    write_atomic(scoring.out / FILE, json.dumps(document, indent=1))
    write_config(scoring.out / "config.yaml", config)
    write_atomic(page, render_design_page(document))
    return document, page


def compare_proxies(task: DesignTask, request: EvaluationRequest) -> list[dict[str, Any]]:
    """A row for each proxy: the design of a search under it alone, and what that took."""
    rows = []
    for name in dict.fromkeys((*COMPARED, *request.goal.proxy)):
        goal = replace(request.goal, method="proxy", proxy=(name,))
        with METHODS["proxy"](replace(request, goal=goal, one_shot=do.OneShotOptions())) as evaluation:
            (objective,) = evaluation.objectives
            search = search_designs(
                replace(task, objectives=evaluation.objectives),
                evaluation.evaluator(0),
                sampler=task.options.sampler,
                repeat=0,
                seed=request.scoring.seed,
                title=f"search by {objective}",
            )
        best = search.front[0]
        rows.append(
            {
                "proxy": objective,
                "config": best.config,
                "layers": task.space.layers(best.config),
                "score": best.scores[objective],
                "counts": task.limits.counts(best.config).as_json(),
                "latency_ms": task.latency.measure(best.config)._asdict(),
                "seconds": search.seconds,
                "core_seconds": evaluation.cost.core_seconds,
                "looked": len(evaluation.cost.evaluated),
                "evaluations": search.evaluations,
                "distinct": search.distinct,
            }
        )
    return rows
