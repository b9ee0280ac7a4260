"""Retraining-free pruning: every design has weights of its own, into which its tuned masks are folded."""

from archwright.jobs.brief import Brief
from archwright.jobs.methods.designs import note_designs, noted_designs
from archwright.jobs.methods.oneshot import PRUNING_ROWS, SHARES
from archwright.jobs.methods.standard import name_of
from archwright.jobs.searching import Ground
from archwright.jobs.training import keep, original_network, sample_batches, space_of
from archwright.networks.load import saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.search import Config, largest
from archwright.spaces.subnetwork import large_config
from archwright.subnet.anatomy import anatomy
from archwright.subnet.pruning.baselines import retraining_free
from archwright.subnet.pruning.tuning import fold
from archwright.train import task_loss


def listed_by_fisher(brief: Brief) -> None:
    """One network per share of the FLOPs; done again from the start when it was interrupted, it takes a minute."""
    original, scene = original_network(brief), brief.scene
    of, found = anatomy(original.config), []
    with brief.run.phase("prune"):
        rows = sample_batches(scene, brief.supernet.batch_size, rows=PRUNING_ROWS)
        length = scene.length(brief.measure.length)
        for _, tuned in retraining_free(original, rows, task_loss, SHARES, length=length):
            folder = brief.run.networks / name_of(large_config(of, tuned.keep))
            if not folder.exists():
                keep(fold(original, tuned), scene, folder)
            found.append(tuned.keep)
    note_designs(brief, of, found)


def tuned_ground(brief: Brief) -> Ground:
    network = saved_network(brief.run.original).to(brief.scene.device)
    space = space_of(brief, network, None)
    designs = noted_designs(brief.run)

    def home(config: Config) -> tuple[PrunedNetwork, None]:
        if config == largest(space.choices):
            return network, None
        return saved_network(brief.run.networks / name_of(config)).to(brief.scene.device), None

    return Ground(brief, network, space, home=home, first=designs, trials=len(designs))
