"""Pruning without training after: a rule lists what to keep, and the fine-tuned original lends its weights."""

from collections.abc import Callable

import numpy as np

from archwright.compression.context import RunContext
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods.method import FISHER_ONLY, ONE_SHOT, Method, read_configs, write_subnets
from archwright.compression.order import sample_batches
from archwright.compression.space import open_space
from archwright.compression.weights import SharedWeights
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.random_streams import RANDOM_SUBNETS
from archwright.subnet.importance import ImportanceOrder
from archwright.subnet.pruning.baselines import head_pruning, magnitude_pruning, random_pruning

SHARES = tuple(round(0.1 * tenth, 1) for tenth in range(9, 0, -1))
"""Of the non-embedding parameters: the sizes that the rules prune to."""


def prune_heads(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    """Sizes that no removal of heads alone can reach are left out."""
    with context.run.phase("prune"):
        specs = head_pruning(original, sample_batches(context), context.task_data.loss, SHARES)
    write_subnets(context, original, specs.values())


def prune_by_magnitude(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    with context.run.phase("prune"):
        specs = magnitude_pruning(original, SHARES)
    write_subnets(context, original, specs.values())


def prune_at_random(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    """As many sub-networks as there are trials, of sizes between nothing and everything."""
    rng = np.random.default_rng((context.seed, RANDOM_SUBNETS))
    shares = rng.uniform(min(SHARES), max(SHARES), size=context.config.search.trials - 1).tolist()
    write_subnets(context, original, random_pruning(original, shares, rng).values())


def build_evaluator(context: RunContext) -> SubnetEvaluator:
    network = load_saved_network(context.start).to(context.task_data.device)
    space = open_space(context, network)
    return SubnetEvaluator(context, network, space, SharedWeights(network, space), read_configs(context.run))


def one_shot(prepare: Callable[[RunContext, PrunedNetwork, ImportanceOrder | None], None]) -> Method:
    return Method(spaces=("large",), prepare=prepare, build_evaluator=build_evaluator, unused=(*ONE_SHOT, *FISHER_ONLY))


HEAD_PRUNING = one_shot(prune_heads)
MAGNITUDE = one_shot(prune_by_magnitude)
RANDOM = one_shot(prune_at_random)
