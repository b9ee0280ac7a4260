"""`select --recover-epochs`: the chosen sub-network, repaired where that helps, and trained by itself."""

from typing import Any

import torch

from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.finetuning import recover_subnet
from archwright.compression.order import sample_batches
from archwright.configs import compress as o
from archwright.data.batching import Batch
from archwright.devices import deterministic_algorithms
from archwright.networks.pruned import PrunedNetwork
from archwright.search import Config
from archwright.subnet.importance import Loss, evaluating
from archwright.subnet.pruning import REPAIRS
from archwright.subnet.pruning.streams import record_streams


def recover(evaluator: SubnetEvaluator, config: Config, trial: int, recovery: o.RecoveryOptions) -> dict[str, Any]:
    """Errors of the sub-network before and after, and of what was between: `repaired` is None where nothing was."""
    context = evaluator.context
    start, repair = choose_start(evaluator, config, recovery.repair)
    with deterministic_algorithms(context.config.output.deterministic):
        record, repaired = recover_subnet(context, start, trial, recovery), None
    if repair != "none" and context.group.first:
        repaired, record["before"] = record["before"], context.errors(evaluator.extract(config))
    return {**record, "repair": repair, "repaired": repaired}


def choose_start(evaluator: SubnetEvaluator, config: Config, repair: str | None) -> tuple[PrunedNetwork, str]:
    """The sub-network as a network of its own, and which of REPAIRS it went through.

    It learns from the super-network on every other batch of training rows. Without a name least squares is taken if
    that lowers the loss on the batches in between. A network that has weights of its own has nothing to learn from.
    """
    network, spec = evaluator.weights.locate(config)
    plain = evaluator.extract(config)
    if spec is None or repair == "none":
        return plain, "none"
    batches, group = sample_batches(evaluator.context), evaluator.context.group
    name = repair or "least-squares"
    repaired = REPAIRS[name](network, spec, record_streams(network, batches[::2]))
    checked = batches[1::2] or batches
    loss = evaluator.context.task_data.loss
    if repair is None and group.agree(mean_loss(repaired, checked, loss) >= mean_loss(plain, checked, loss)):
        return plain, "none"
    return repaired, name


@torch.no_grad()
def mean_loss(network: PrunedNetwork, batches: list[Batch], loss: Loss) -> float:
    """The task's loss per row."""
    with evaluating(network):
        losses = [float(loss(network(**b.inputs).logits, b.targets)) * len(b.targets) for b in batches]
    return sum(losses) / sum(len(batch.targets) for batch in batches)
