"""Networks out of a run: extracted, and trained a little further."""

from typing import Any

from archwright.compression.context import read_options
from archwright.compression.search import SubnetEvaluator, load_evaluator
from archwright.configs import compress as o
from archwright.networks.load import freeze_embeddings, saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.search import Config
from archwright.store import RunFolder
from archwright.subnet.extract import extract
from archwright.subnet.spec import SubnetSpec
from archwright.subnet.supernet import plain_update
from archwright.training.loop import train_network
from archwright.training.losses import distillation, task_loss
from archwright.training.pretrained import save_network
from archwright.training.schedule import Schedule

RECOVERY_STREAM = 3


def extract_subnet(run: RunFolder, config: Config) -> PrunedNetwork:
    """The sub-network of this config as a network of its own."""
    return standing_alone(*load_evaluator(run).home(config))


def standing_alone(network: PrunedNetwork, keep: SubnetSpec | None) -> PrunedNetwork:
    """The sub-network with tensors of its own."""
    return (network if keep is None else extract(network, keep)).eval()


def recover_subnet(run: RunFolder, trial: int, config: Config, settings: o.RecoveryOptions) -> dict[str, Any]:
    """Trains the extracted sub-network by itself, also towards the original's answers; errors before and after.

    The result lies in the run folder and `export --recovered` finds it there.
    """
    evaluator, options = load_evaluator(run, device=run.settings["device"]), read_options(run, o.SupernetOptions)
    network = standing_alone(*evaluator.home(config))
    freeze_embeddings(network, not options.train_embeddings)
    before = errors(evaluator, network)
    steps = max(1, round(evaluator.task_data.steps_per_epoch(options.batch_size) * settings.recover_epochs))
    train_network(
        network,
        evaluator.task_data.training(options.batch_size, stream=RECOVERY_STREAM),
        plain_update(
            network,
            loss=task_loss,
            teacher=saved_network(run.original).to(evaluator.task_data.device),
            distil=lambda logits, teacher: distillation(logits, teacher, options.temperature),
        ),
        Schedule(steps=steps, learning_rate=settings.recover_learning_rate),
        seed=evaluator.seed,
        title="recovery",
    )
    save_network(network, evaluator.task_data, run.recovered(trial))
    return {"epochs": settings.recover_epochs, "before": before, "after": errors(evaluator, network)}


def errors(evaluator: SubnetEvaluator, network: PrunedNetwork) -> dict[str, float]:
    return {
        "validation_error": evaluator.task_data.error(network, evaluator.task_data.validation),
        "test_error": evaluator.task_data.error(network, evaluator.task_data.test),
    }
