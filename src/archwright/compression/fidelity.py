"""`compress --honesty K`: do the shared weights rank sub-networks as training each of them by itself would?"""

from dataclasses import replace
from typing import Any

import numpy as np

from archwright.compression.finetuning import finetune
from archwright.compression.methods.standard import frozen_as, ordered
from archwright.compression.search import SubnetEvaluator
from archwright.errors import BadInput
from archwright.progress import progress
from archwright.search import Config, sample
from archwright.search.encoding import key_of
from archwright.spaces.subnetwork import SubnetSpace
from archwright.spaces.trained import TrainedSpace
from archwright.statistics.bootstrap import CORRELATIONS, bootstrap_correlation
from archwright.subnet.extract import extract
from archwright.subnet.spec import nonembedding_parameters, sizes

NOTE = "honesty"
STREAM = 5
"""Of the seed, for drawing the sub-networks."""
FEWEST = 3
"""Sub-networks below which a rank correlation says nothing."""
PATIENCE = 200
"""Draws per sub-network before a space counts as too small."""


def check_fidelity(k: int, epochs: float | None, *, method: str, shared: bool) -> None:
    """Refuses numbers that give no correlation, and methods without shared weights."""
    if k and k < FEWEST:
        raise BadInput(f"--honesty must be 0 or at least {FEWEST} sub-networks to rank, got {k}.")
    if k and not shared:
        raise BadInput(
            f"--honesty is about weights that sub-networks share, got --method {method}; take weight-sharing."
        )


def measure_fidelity(evaluator: SubnetEvaluator, k: int, *, epochs: float | None = None) -> dict[str, Any]:
    """Rank correlations of the errors of k random sub-networks with shared and with own weights, and the pairs.

    A pair is the validation error with the super-network's weights, the one after fine-tuning alone from the
    pre-trained weights, and the share of the non-embedding parameters. Finished pairs are noted in the run folder.
    """
    epochs = epochs or trained_epochs(evaluator)
    noted = evaluator.run.note(NOTE) or {}
    done: dict[str, list[float]] = noted.get("pairs", {}) if noted.get("epochs") == epochs else {}
    configs = draw_subnets(evaluator.space, k, evaluator.seed)
    with progress("honesty", k, unit="sub-networks") as bar:
        for config in configs:
            key = key_of(config)
            if key not in done:
                done[key] = pair(evaluator, config, epochs)
                evaluator.run.note(NOTE, {"epochs": epochs, "pairs": done})
            bar.advance()
    pairs = [done[key_of(config)] for config in configs]
    return {"k": k, "epochs": epochs, **correlations(pairs, evaluator.seed), "pairs": pairs}


def trained_epochs(evaluator: SubnetEvaluator) -> float:
    """As many as the super-network had: --epochs, or what --minutes left of them."""
    settings, plan = evaluator.context.supernet, evaluator.run.note("plan")
    per_epoch = evaluator.task_data.steps_per_epoch(settings.batch_size)
    return min(settings.epochs, plan["supernet"] / per_epoch) if plan else settings.epochs


def draw_subnets(space: SubnetSpace | TrainedSpace, k: int, seed: int) -> list[Config]:
    """The first k different sub-networks of a random stream; one without any layer has nothing to train."""
    rng = np.random.default_rng((seed, STREAM))
    found: dict[str, Config] = {}
    for _ in range(PATIENCE * k):
        if len(found) == k:
            break
        config = space.canonical(sample(space.choices, rng))
        if any(map(any, sizes(space.build(config)))):
            found.setdefault(key_of(config), config)
    if len(found) == k:
        return list(found.values())
    raise BadInput(f"--honesty must be at most {len(found)}, the different sub-networks that were drawn, got {k}.")


def pair(evaluator: SubnetEvaluator, config: Config, epochs: float) -> list[float]:
    """Error with the shared weights, error trained alone, and size."""
    context, part, of = evaluator.context, evaluator.space.build(config), evaluator.space.anatomy
    start = ordered(context)
    network = frozen_as(extract(start, part), start)
    finetune(context.task_data, network, replace(context.supernet, epochs=epochs), epochs=epochs)
    share = nonembedding_parameters(of, part) / nonembedding_parameters(of, of.full)
    rows = context.task_data.validation
    return [context.task_data.error(evaluator.network, rows, part), context.task_data.error(network, rows), share]


def correlations(pairs: list[list[float]], seed: int) -> dict[str, Any]:
    inherited, alone, _ = zip(*pairs, strict=True)
    found = {
        name: bootstrap_correlation(inherited, alone, statistic, rng=np.random.default_rng((seed, STREAM)))
        for name, statistic in CORRELATIONS.items()
    }
    return {name: None if value is None else value._asdict() for name, value in found.items()}
