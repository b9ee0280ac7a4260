"""Pruning without training after: a rule lists the designs, and the fine-tuned original lends them its weights."""

import numpy as np

from archwright.jobs.brief import Brief
from archwright.jobs.methods.designs import note_designs, noted_designs
from archwright.jobs.searching import Ground
from archwright.jobs.training import original_network, sample_batches, space_of
from archwright.networks.load import saved_network
from archwright.subnet.anatomy import anatomy
from archwright.subnet.pruning.baselines import head_pruning, magnitude_pruning, random_pruning
from archwright.train import task_loss

SHARES = tuple(round(0.1 * tenth, 1) for tenth in range(9, 0, -1))
"""Of the non-embedding parameters: the sizes that the rules prune to."""
PRUNING_ROWS = 512
"""Training rows on which gradients are recorded."""
RANDOM_STREAM = 7


def listed_by_heads(brief: Brief) -> None:
    """Sizes that no removal of heads alone can reach are left out."""
    original = original_network(brief)
    with brief.run.phase("prune"):
        rows = sample_batches(brief.scene, brief.supernet.batch_size, rows=PRUNING_ROWS)
        keeps = head_pruning(original, rows, task_loss, SHARES)
    note_designs(brief, anatomy(original.config), keeps.values())


def listed_by_magnitude(brief: Brief) -> None:
    original = original_network(brief)
    with brief.run.phase("prune"):
        keeps = magnitude_pruning(original, SHARES)
    note_designs(brief, anatomy(original.config), keeps.values())


def listed_at_random(brief: Brief) -> None:
    """As many designs as there are trials, of sizes between nothing and everything."""
    original = original_network(brief)
    rng = np.random.default_rng((brief.seed, RANDOM_STREAM))
    shares = rng.uniform(min(SHARES), max(SHARES), size=brief.search.trials - 1).tolist()
    note_designs(brief, anatomy(original.config), random_pruning(original, shares, rng).values())


def oneshot_ground(brief: Brief) -> Ground:
    network = saved_network(brief.run.original).to(brief.scene.device)
    space = space_of(brief, network, None)
    designs = noted_designs(brief.run)
    return Ground(
        brief,
        network,
        space,
        home=lambda config: (network, space.build(config)),
        first=designs,
        trials=len(designs),
    )
