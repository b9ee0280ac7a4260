"""Retraining-free pruning: every design has weights of its own, into which its tuned masks are folded."""

from archwright.compression.context import RunContext
from archwright.compression.finetuning import finetune_original, sample_batches, space_of
from archwright.compression.methods.config_list import note_designs, noted_designs
from archwright.compression.methods.one_shot import PRUNING_ROWS, SHARES
from archwright.compression.methods.standard import name_of
from archwright.compression.search import SubnetEvaluator
from archwright.networks.load import saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.search import Config, largest
from archwright.spaces.subnetwork import large_config
from archwright.subnet.anatomy import anatomy
from archwright.subnet.pruning.baselines import retraining_free
from archwright.subnet.pruning.tuning import fold
from archwright.training.losses import task_loss
from archwright.training.pretrained import save_network


def listed_by_fisher(context: RunContext) -> None:
    """One network per share of the FLOPs; done again from the start when it was interrupted, it takes a minute."""
    original, task_data = finetune_original(context), context.task_data
    of, found = anatomy(original.config), []
    with context.run.phase("prune"):
        rows = sample_batches(task_data, context.supernet.batch_size, rows=PRUNING_ROWS)
        length = task_data.length(context.measure.length)
        for _, tuned in retraining_free(original, rows, task_loss, SHARES, length=length):
            folder = context.run.networks / name_of(large_config(of, tuned.keep))
            if not folder.exists():
                save_network(fold(original, tuned), task_data, folder)
            found.append(tuned.keep)
    note_designs(context, of, found)


def tuned_ground(context: RunContext) -> SubnetEvaluator:
    network = saved_network(context.run.original).to(context.task_data.device)
    space = space_of(context, network, None)
    designs = noted_designs(context.run)

    def home(config: Config) -> tuple[PrunedNetwork, None]:
        if config == largest(space.choices):
            return network, None
        return saved_network(context.run.networks / name_of(config)).to(context.task_data.device), None

    return SubnetEvaluator(context, network, space, home=home, first=designs, trials=len(designs))
