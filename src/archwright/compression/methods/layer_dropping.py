"""Layer dropping (Sajjad et al. 2022): all but the top n layers, fine-tuned by itself from the pre-trained weights."""

from archwright.compression.context import RunContext
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods.method import (
    FISHER_ONLY,
    RULE_ONLY,
    SUPERNET_ONLY,
    Method,
    read_configs,
    write_configs,
)
from archwright.compression.order import load_start
from archwright.compression.space import open_space
from archwright.compression.weights import StandaloneWeights
from archwright.networks.pruned import PrunedNetwork
from archwright.search import EPOCHS
from archwright.spaces.subnetwork import TrainedSpace, layer_config
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.importance import ImportanceOrder
from archwright.subnet.pruning.baselines import drop_layers


def prepare(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    """The original and a config for every n; the middle ones first, in case the time is short."""
    specs = sorted(drop_layers(original), key=lambda spec: abs(sum(map(any, spec)) - len(spec) / 2))
    whole, epochs = read_anatomy(original.config), {EPOCHS: context.config.supernet.epochs}
    write_configs(context.run, [layer_config(whole, spec) | epochs for spec in (whole.full, *specs)])


def build_evaluator(context: RunContext) -> SubnetEvaluator:
    start = load_start(context)
    space = TrainedSpace(open_space(context, start), (context.config.supernet.epochs,))
    weights = StandaloneWeights(context, start, space, load_start)
    return SubnetEvaluator(context, start, space, weights, read_configs(context.run))


LAYER_DROPPING = Method(
    spaces=("layer",),
    prepare=prepare,
    build_evaluator=build_evaluator,
    standalone=True,
    unused=(*SUPERNET_ONLY, *FISHER_ONLY, *RULE_ONLY, "order", "min_epochs"),
)
