"""Fidelity of shared weights, `compress --honesty K`: do they rank sub-networks as training each alone would?"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from archwright.compression.context import RunContext
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.finetuning import extract_trainable, finetune
from archwright.compression.order import load_reordered_network
from archwright.errors import BadInput
from archwright.progress import progress
from archwright.random_streams import FIDELITY
from archwright.search import Config, sample
from archwright.search.encoding import config_key
from archwright.spaces.subnetwork import SubnetSpace, TrainedSpace
from archwright.statistics.bootstrap import CORRELATIONS, bootstrap_correlation
from archwright.subnet.spec import sizes

NOTE = "honesty"
PATIENCE = 200
"""Draws per sub-network before a space counts as too small."""


def measure_fidelity(evaluator: SubnetEvaluator) -> dict[str, Any]:
    """Rank correlations of the errors of --honesty random sub-networks with shared and with own weights, and the pairs.

    A pair is the validation error with the super-network's weights, the one after fine-tuning alone from the
    pre-trained weights, and the share of the non-embedding parameters. Finished pairs are noted in the run folder.
    """
    context, count = evaluator.context, evaluator.context.config.fidelity.honesty
    epochs = context.config.fidelity.honesty_epochs or supernet_epochs(context)
    noted = context.run.note(NOTE) or {}
    pairs: dict[str, list[float]] = noted.get("pairs", {}) if noted.get("epochs") == epochs else {}
    configs = draw_subnets(evaluator.space, count, context.seed)
    with progress("honesty", count, unit="sub-networks") as bar:
        for config in configs:
            key = config_key(config)
            if key not in pairs:
                pairs[key] = measure_pair(evaluator, config, epochs)
                context.run.note(NOTE, {"epochs": epochs, "pairs": pairs})
            bar.advance()
    drawn = [pairs[config_key(config)] for config in configs]
    return {"k": count, "epochs": epochs, **correlations(drawn, context.seed), "pairs": drawn}


def supernet_epochs(context: RunContext) -> float:
    """Passes over the training rows that the super-network had: --epochs, or what --minutes left of them."""
    options, plan = context.config.supernet, context.run.note("plan")
    steps_per_epoch = context.task_data.steps_per_epoch(options.batch_size)
    return min(options.epochs, plan["supernet"] / steps_per_epoch) if plan else options.epochs


def draw_subnets(space: SubnetSpace | TrainedSpace, count: int, seed: int) -> list[Config]:
    """The first `count` different sub-networks of a random stream; one without any layer has nothing to train."""
    rng = np.random.default_rng((seed, FIDELITY))
    configs: dict[str, Config] = {}
    for _ in range(PATIENCE * count):
        if len(configs) == count:
            break
        config = space.canonical(sample(space.choices, rng))
        if any(map(any, sizes(space.build(config)))):
            configs.setdefault(config_key(config), config)
    if len(configs) == count:
        return list(configs.values())
    raise BadInput(
        f"--honesty must be at most {len(configs)}, the different sub-networks that were drawn, got {count}."
    )


def measure_pair(evaluator: SubnetEvaluator, config: Config, epochs: float) -> list[float]:
    """Error with the shared weights, error trained alone, and share of the non-embedding parameters."""
    context, spec = evaluator.context, evaluator.space.build(config)
    task_data = context.task_data
    network = extract_trainable(load_reordered_network(context), spec)
    finetune(task_data, network, replace(context.config.supernet, epochs=epochs), epochs=epochs)
    return [
        task_data.error(evaluator.network, task_data.validation, spec),
        task_data.error(network, task_data.validation),
        evaluator.share(spec),
    ]


def correlations(pairs: list[list[float]], seed: int) -> dict[str, Any]:
    """Each rank correlation with its interval, of the shared weights and, under "size", of the size alone.

    None where one of the two sides is always the same. A larger network is taken for the better one: shared weights
    that rank no better than this tell nothing that a parameter count does not.
    """
    shared, alone, shares = zip(*pairs, strict=True)

    def correlate(predicted: Sequence[float]) -> dict[str, Any]:
        values = {
            name: bootstrap_correlation(predicted, alone, statistic, rng=np.random.default_rng((seed, FIDELITY)))
            for name, statistic in CORRELATIONS.items()
        }
        return {name: None if value is None else value._asdict() for name, value in values.items()}

    return {**correlate(shared), "size": correlate([-share for share in shares])}
