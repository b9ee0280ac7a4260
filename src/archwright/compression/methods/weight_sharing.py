"""Weight-sharing NAS: one super-network is fine-tuned, its sub-networks are searched with the weights they share."""

from archwright.compression.context import RunContext
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods.method import Method
from archwright.compression.order import read_order
from archwright.compression.supernet import train_supernet
from archwright.compression.weights import SharedWeights
from archwright.networks.load import load_saved_network


def build_evaluator(context: RunContext) -> SubnetEvaluator:
    network = load_saved_network(context.run.supernet).to(context.task_data.device)
    space = context.space(network, read_order(context))
    return SubnetEvaluator(context, network, space, SharedWeights(network, space))


WEIGHT_SHARING = Method(
    spaces=("small", "layer", "medium", "large"),
    prepare=train_supernet,
    build_evaluator=build_evaluator,
    samplers=True,
    shared=True,
    unused=("min_epochs",),
)
