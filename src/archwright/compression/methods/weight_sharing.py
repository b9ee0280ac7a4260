"""Weight-sharing NAS: one super-network is fine-tuned, its sub-networks are searched with the weights they share."""

from archwright.compression.context import RunContext
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods.candidates import prepare_candidates
from archwright.compression.methods.method import FISHER_ONLY, RULE_ONLY, Method
from archwright.compression.order import read_order
from archwright.compression.space import open_space
from archwright.compression.supernet import train_supernet
from archwright.compression.weights import ChainWeights, SharedWeights
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.spaces.subnetwork import ChainSpace
from archwright.subnet.importance import ImportanceOrder


def prepare(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    """Trains the super-network; on the chain also the candidates, so that no front lies below them."""
    train_supernet(context, original, order)
    if context.config.supernet.space == "chain" and order is not None:
        prepare_candidates(context, order)


def build_evaluator(context: RunContext) -> SubnetEvaluator:
    network = load_saved_network(context.run.supernet).to(context.task_data.device)
    space = open_space(context, network, read_order(context))
    weights = ChainWeights(context, network, space) if isinstance(space, ChainSpace) else SharedWeights(network, space)
    return SubnetEvaluator(context, network, space, weights)


WEIGHT_SHARING = Method(
    spaces=("chain", "small", "stock", "layer", "medium", "large"),
    prepare=prepare,
    build_evaluator=build_evaluator,
    samplers=True,
    shared=True,
    trains_together=True,
    unused=("min_epochs", *FISHER_ONLY, *RULE_ONLY),
)
