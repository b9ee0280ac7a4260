"""Pruning without training after: a rule lists what to keep, and the fine-tuned original lends its weights."""

from collections.abc import Callable

import numpy as np

from archwright.compression.context import RunContext
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods.method import FISHER_ONLY, ONE_SHOT, RULE_ONLY, Method, read_configs, write_subnets
from archwright.compression.order import sample_batches
from archwright.compression.space import open_space
from archwright.compression.weights import SharedWeights
from archwright.configs import compress as o
from archwright.configs.budget import parse_budget
from archwright.errors import BadInput
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.random_streams import RANDOM_SUBNETS
from archwright.subnet.importance import ImportanceOrder
from archwright.subnet.pruning.baselines import head_pruning, magnitude_pruning, random_pruning

SHARES = tuple(round(0.1 * tenth, 1) for tenth in range(9, 0, -1))
"""Of the non-embedding parameters: the sizes that the rules prune to."""


def chosen_shares(options: o.SupernetOptions) -> tuple[float, ...]:
    """The sizes that --shares names, largest first; the usual ones if it names none. BadInput for what is no share."""
    shares = {round(parse_budget(value, 1.0, option="--shares"), 6) for value in options.shares}
    wrong = [value for value in options.shares if parse_budget(value, 1.0, option="--shares") >= 1]
    if wrong:
        raise BadInput(f"--shares must be below 100%, such as 80%,50%, got {wrong[0]!r}.")
    return tuple(sorted(shares, reverse=True)) or SHARES


def prune_heads(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    """Sizes that no removal of heads alone can reach are left out."""
    with context.run.phase("prune"):
        specs = head_pruning(
            original, sample_batches(context), context.task_data.loss, chosen_shares(context.config.supernet)
        )
    write_subnets(context, original, specs.values())


def prune_by_magnitude(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    with context.run.phase("prune"):
        specs = magnitude_pruning(original, chosen_shares(context.config.supernet))
    write_subnets(context, original, specs.values())


def prune_at_random(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    """With the whole network as many as there are trials, of sizes drawn uniformly between 10 and 90 %."""
    rng = np.random.default_rng((context.seed, RANDOM_SUBNETS))
    shares = rng.uniform(min(SHARES), max(SHARES), size=context.config.search.trials - 1).tolist()
    write_subnets(context, original, random_pruning(original, shares, rng).values())


def build_evaluator(context: RunContext) -> SubnetEvaluator:
    network = load_saved_network(context.start).to(context.task_data.device)
    space = open_space(context, network)
    return SubnetEvaluator(context, network, space, SharedWeights(network, space), read_configs(context.run))


def one_shot(prepare: Callable[[RunContext, PrunedNetwork, ImportanceOrder | None], None], *unused: str) -> Method:
    unused = (*ONE_SHOT, *FISHER_ONLY, *unused)
    return Method(spaces=("large",), prepare=prepare, build_evaluator=build_evaluator, unused=unused)


HEAD_PRUNING = one_shot(prune_heads)
MAGNITUDE = one_shot(prune_by_magnitude)
RANDOM = one_shot(prune_at_random, *RULE_ONLY)
