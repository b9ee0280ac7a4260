"""Networks out of a run: extracted, and trained a little further."""

from typing import Any

from archwright.errors import BadInput
from archwright.jobs import options as o
from archwright.jobs.brief import group_from
from archwright.jobs.searching import Ground
from archwright.jobs.training import keep
from archwright.jobs.worker import ground_of
from archwright.networks.load import freeze_embeddings, saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.search import Config
from archwright.store import RunFolder
from archwright.subnet.extract import extract
from archwright.subnet.keep import Keep
from archwright.subnet.supernet import plain_update
from archwright.train import Schedule, distillation, task_loss, train

RECOVERY_STREAM = 3


def extracted(run: RunFolder, config: Config) -> PrunedNetwork:
    """The sub-network of this config as a network of its own."""
    return standing_alone(*ground_of(run).home(config))


def standing_alone(network: PrunedNetwork, keep: Keep | None) -> PrunedNetwork:
    """The sub-network with tensors of its own."""
    return (network if keep is None else extract(network, keep)).eval()


def recover(run: RunFolder, trial: int, config: Config, settings: o.Recovery) -> dict[str, Any]:
    """Trains the extracted sub-network by itself, also towards the original's answers; errors before and after.

    The result lies in the run folder and `export --recovered` finds it there.
    """
    if settings.recover_epochs < 0 or not 0 < settings.recover_learning_rate < 1:
        raise BadInput(
            f"--recover-epochs must not be negative, got {settings.recover_epochs}; the rate must be in (0, 1)."
        )
    ground, options = ground_of(run, device=run.settings["device"]), group_from(run, o.Supernet)
    network = standing_alone(*ground.home(config))
    freeze_embeddings(network, not options.train_embeddings)
    before = errors(ground, network)
    steps = max(1, round(ground.scene.steps_per_epoch(options.batch_size) * settings.recover_epochs))
    train(
        network,
        ground.scene.training(options.batch_size, stream=RECOVERY_STREAM),
        plain_update(
            network,
            loss=task_loss,
            teacher=saved_network(run.original).to(ground.scene.device),
            distil=lambda logits, teacher: distillation(logits, teacher, options.temperature),
        ),
        Schedule(steps=steps, learning_rate=settings.recover_learning_rate),
        seed=ground.seed,
        title="recovery",
    )
    keep(network, ground.scene, run.recovered(trial))
    return {"epochs": settings.recover_epochs, "before": before, "after": errors(ground, network)}


def errors(ground: Ground, network: PrunedNetwork) -> dict[str, float]:
    return {
        "validation_error": ground.scene.error(network, ground.scene.validation),
        "test_error": ground.scene.error(network, ground.scene.test),
    }
