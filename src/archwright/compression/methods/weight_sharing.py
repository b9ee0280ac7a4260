"""Weight-sharing NAS: one super-network is fine-tuned, its sub-networks are searched with the weights they share."""

from archwright.compression.context import RunContext
from archwright.compression.finetuning import finetune_original, known_order, measure_order, space_of, train_supernet
from archwright.compression.search import SubnetEvaluator, corners
from archwright.networks.load import saved_network


def trained_supernet(context: RunContext) -> None:
    """The original, the order of its parts, and the super-network."""
    original = finetune_original(context)
    train_supernet(context, original=original, order=measure_order(context, original))


def shared_ground(context: RunContext) -> SubnetEvaluator:
    network = saved_network(context.run.supernet).to(context.task_data.device)
    space = space_of(context, network, known_order(context))
    return SubnetEvaluator(
        context,
        network,
        space,
        home=lambda config: (network, space.build(config)),
        first=corners(context.search, space),
        trials=context.search.trials,
        supernet=True,
    )
