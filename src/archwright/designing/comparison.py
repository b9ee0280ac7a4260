"""The same search under one proxy after another (W-PCA, Tables 2, 3 and 5)."""

from dataclasses import replace
from typing import Any

from archwright.configs import design as do
from archwright.designing.layers import layers_of_design
from archwright.designing.methods import METHODS, EvaluationRequest
from archwright.designing.search import DesignTask, search_designs
from archwright.progress import progress

BY = "proxy"
"""The method of all of them."""
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
"""Those of the paper's tables."""


def compare_proxies(task: DesignTask, question: EvaluationRequest, *, seed: int) -> list[dict[str, Any]]:
    """A row for each proxy: what the search under it found, and what that took."""
    names = tuple(dict.fromkeys((*COMPARED, *question.aim.proxy)))
    plain = replace(question, shot=do.OneShotOptions())
    return [row_of(task, replace(plain, aim=replace(question.aim, method=BY, proxy=(name,))), seed) for name in names]


def row_of(task: DesignTask, question: EvaluationRequest, seed: int) -> dict[str, Any]:
    with METHODS[question.aim.method](question) as jury:
        own = replace(task, names=jury.names)
        (name,) = jury.names
        with progress(f"search by {name}", own.budget, "designs") as bar:
            found = search_designs(own, jury.judge(0), sampler=task.searching.sampler, repeat=0, seed=seed, bar=bar)
    config = found.front[0].config
    return {
        "proxy": name,
        "config": config,
        "layers": layers_of_design(task.space, config),
        "score": found.front[0].scores[name],
        "counts": vars(task.ceilings.counting.of(config)),
        "latency_ms": task.clock.timed(config)._asdict(),
        "seconds": found.seconds,
        "core_seconds": sum(jury.spent.values()),
        "looked": len(jury.done),
        "evaluations": found.evaluations,
        "distinct": found.distinct,
    }
