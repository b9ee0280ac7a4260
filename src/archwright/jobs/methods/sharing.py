"""Weight-sharing NAS: one super-network is fine-tuned, its sub-networks are searched with the weights they share."""

from archwright.jobs.brief import Brief
from archwright.jobs.searching import Ground, corners
from archwright.jobs.training import importance_order, known_order, original_network, space_of, super_network
from archwright.networks.load import saved_network


def trained_supernet(brief: Brief) -> None:
    """The original, the order of its parts, and the super-network."""
    original = original_network(brief)
    super_network(brief, original=original, order=importance_order(brief, original))


def shared_ground(brief: Brief) -> Ground:
    network = saved_network(brief.run.supernet).to(brief.scene.device)
    space = space_of(brief, network, known_order(brief))
    return Ground(
        brief,
        network,
        space,
        home=lambda config: (network, space.build(config)),
        first=corners(brief.search, space),
        trials=brief.search.trials,
        supernet=True,
    )
