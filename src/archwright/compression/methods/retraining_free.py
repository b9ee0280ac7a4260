"""Retraining-free pruning (Kwon et al. 2022): every sub-network has weights with its tuned masks folded in."""

from dataclasses import dataclass

from archwright.compression.context import RunContext
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods.method import ONE_SHOT, Method, read_configs, write_subnets
from archwright.compression.methods.one_shot import SHARES
from archwright.compression.order import sample_batches
from archwright.compression.weights import config_name
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.search import Config, largest
from archwright.spaces.subnetwork import SubnetSpace, large_config
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.importance import ImportanceOrder
from archwright.subnet.pruning.baselines import prune_retraining_free
from archwright.subnet.pruning.tuning import fold
from archwright.training.losses import task_loss
from archwright.training.task_data import save_network


@dataclass(frozen=True)
class TunedWeights:
    """Of every sub-network its own, saved when it was tuned; of the whole network the original's."""

    context: RunContext
    network: PrunedNetwork
    space: SubnetSpace

    def locate(self, config: Config) -> tuple[PrunedNetwork, None]:
        if config == largest(self.space.choices):
            return self.network, None
        folder = self.context.run.networks / config_name(config)
        return load_saved_network(folder).to(self.context.task_data.device), None


def prepare(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    """One network per share of the FLOPs; done again from the start when it was interrupted, it takes a minute."""
    whole, specs = read_anatomy(original.config), []
    with context.run.phase("prune"):
        batches = sample_batches(context)
        for _, tuned in prune_retraining_free(original, batches, task_loss, SHARES, length=context.length):
            folder = context.run.networks / config_name(large_config(whole, tuned.spec))
            if not folder.exists():
                save_network(fold(original, tuned), context.task_data, folder)
            specs.append(tuned.spec)
    write_subnets(context, original, specs)


def build_evaluator(context: RunContext) -> SubnetEvaluator:
    network = load_saved_network(context.run.original).to(context.task_data.device)
    space = context.space(network)
    return SubnetEvaluator(context, network, space, TunedWeights(context, network, space), read_configs(context.run))


RETRAINING_FREE = Method(spaces=("large",), prepare=prepare, build_evaluator=build_evaluator, unused=ONE_SHOT)
