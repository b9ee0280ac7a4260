"""Pruning without training after: a rule lists the designs, and the fine-tuned original lends them its weights."""

import numpy as np

from archwright.compression.context import RunContext
from archwright.compression.finetuning import finetune_original, sample_batches, space_of
from archwright.compression.methods.config_list import note_designs, noted_designs
from archwright.compression.search import SubnetEvaluator
from archwright.networks.load import saved_network
from archwright.subnet.anatomy import anatomy
from archwright.subnet.pruning.baselines import head_pruning, magnitude_pruning, random_pruning
from archwright.training.losses import task_loss

SHARES = tuple(round(0.1 * tenth, 1) for tenth in range(9, 0, -1))
"""Of the non-embedding parameters: the sizes that the rules prune to."""
PRUNING_ROWS = 512
"""Training rows on which gradients are recorded."""
RANDOM_STREAM = 7


def listed_by_heads(context: RunContext) -> None:
    """Sizes that no removal of heads alone can reach are left out."""
    original = finetune_original(context)
    with context.run.phase("prune"):
        rows = sample_batches(context.task_data, context.supernet.batch_size, rows=PRUNING_ROWS)
        keeps = head_pruning(original, rows, task_loss, SHARES)
    note_designs(context, anatomy(original.config), keeps.values())


def listed_by_magnitude(context: RunContext) -> None:
    original = finetune_original(context)
    with context.run.phase("prune"):
        keeps = magnitude_pruning(original, SHARES)
    note_designs(context, anatomy(original.config), keeps.values())


def listed_at_random(context: RunContext) -> None:
    """As many designs as there are trials, of sizes between nothing and everything."""
    original = finetune_original(context)
    rng = np.random.default_rng((context.seed, RANDOM_STREAM))
    shares = rng.uniform(min(SHARES), max(SHARES), size=context.search.trials - 1).tolist()
    note_designs(context, anatomy(original.config), random_pruning(original, shares, rng).values())


def oneshot_ground(context: RunContext) -> SubnetEvaluator:
    network = saved_network(context.run.original).to(context.task_data.device)
    space = space_of(context, network, None)
    designs = noted_designs(context.run)
    return SubnetEvaluator(
        context,
        network,
        space,
        home=lambda config: (network, space.build(config)),
        first=designs,
        trials=len(designs),
    )
