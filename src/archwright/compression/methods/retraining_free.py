"""Retraining-free pruning (Kwon et al. 2022): every sub-network has weights of its own, repaired without training."""

from dataclasses import dataclass
from pathlib import Path

from archwright.compression.context import RunContext
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods.method import ONE_SHOT, Method, read_configs, write_subnets
from archwright.compression.methods.one_shot import chosen_shares
from archwright.compression.order import sample_batches
from archwright.compression.space import open_space
from archwright.compression.weights import config_name
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.progress import progress
from archwright.search import Config, largest
from archwright.spaces.subnetwork import SubnetSpace, large_config
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.importance import ImportanceOrder
from archwright.subnet.pruning import REPAIRS
from archwright.subnet.pruning.baselines import prune_by_fisher
from archwright.subnet.pruning.streams import record_streams
from archwright.subnet.spec import nonembedding_parameters
from archwright.tasks import TASK_KINDS
from archwright.training.task_data import save_network

CALIBRATION_TOKENS = 8192
"""At least so many tokens of training rows: nothing is trained after, so that there is time for them."""


@dataclass(frozen=True)
class TunedWeights:
    """Of every sub-network its own, saved when it was repaired; of the whole network the original's."""

    context: RunContext
    network: PrunedNetwork
    space: SubnetSpace

    def locate(self, config: Config) -> tuple[PrunedNetwork, None]:
        if config == largest(self.space.choices):
            return self.network, None
        folder = self.context.run.networks / config_name(config)
        return load_saved_network(folder).to(self.context.task_data.device), None

    def is_kept(self, config: Config) -> bool:
        folder = self.own_folder(config)
        return folder is None or folder.exists()

    def own_folder(self, config: Config) -> Path | None:
        whole = config == largest(self.space.choices)
        return None if whole else self.context.run.networks / config_name(config)


def prepare(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    """One network per share of the non-embedding parameters; after an interruption those that are missing.

    With --preset paper shares are of the FLOPs, as published.
    """
    whole, repair = read_anatomy(original.config), REPAIRS[context.config.supernet.repair]
    with context.run.phase("prune"):
        batches = sample_batches(context, least=CALIBRATION_TOKENS)
        chosen = prune_by_fisher(
            *(original, batches, context.task_data.loss, chosen_shares(context.config.supernet)),
            length=context.length,
            trust=context.config.supernet.fisher_trust,
            span=TASK_KINDS[context.task_data.task.kind].importance_span,
            cost=None if context.config.supernet.preset == "paper" else nonembedding_parameters,
        )
        specs = chosen.values()
        recording = record_streams(original, batches)
        with progress("repair", len(specs), "networks") as bar:
            for spec in specs:
                folder = context.run.networks / config_name(large_config(whole, spec))
                if not folder.exists():
                    save_network(repair(original, spec, recording), context.task_data, folder)
                bar.advance()
    write_subnets(context, original, specs)


def build_evaluator(context: RunContext) -> SubnetEvaluator:
    network = load_saved_network(context.start).to(context.task_data.device)
    space = open_space(context, network)
    return SubnetEvaluator(context, network, space, TunedWeights(context, network, space), read_configs(context.run))


RETRAINING_FREE = Method(
    spaces=("large",),
    prepare=prepare,
    build_evaluator=build_evaluator,
    unused=tuple(name for name in ONE_SHOT if name != "repair"),
)
