"""Standard NAS: every sub-network that a sampler proposes is fine-tuned by itself from the pre-trained weights."""

from archwright.compression.context import RunContext
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods.method import FISHER_ONLY, RULE_ONLY, SUPERNET_ONLY, Method
from archwright.compression.order import load_reordered_network, read_order
from archwright.compression.space import open_space
from archwright.compression.weights import StandaloneWeights
from archwright.networks.pruned import PrunedNetwork
from archwright.search import SAMPLERS, rungs
from archwright.spaces.subnetwork import TrainedSpace
from archwright.subnet.importance import ImportanceOrder


def prepare(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    """Nothing: networks are trained when the search needs them."""


def build_evaluator(context: RunContext) -> SubnetEvaluator:
    """Networks trained for --epochs, or for the rungs below when the sampler uses them."""
    options, start = context.config.supernet, load_reordered_network(context)
    epochs = SAMPLERS[context.config.search.sampler].epochs(rungs(options.min_epochs, options.epochs))
    space = TrainedSpace(open_space(context, start, read_order(context)), tuple(epochs))
    return SubnetEvaluator(context, start, space, StandaloneWeights(context, start, space, load_reordered_network))


STANDARD = Method(
    spaces=("small", "stock", "layer", "medium", "large"),
    prepare=prepare,
    build_evaluator=build_evaluator,
    samplers=True,
    standalone=True,
    unused=(*SUPERNET_ONLY, *FISHER_ONLY, *RULE_ONLY),
)
