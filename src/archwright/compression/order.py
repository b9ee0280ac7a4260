"""Importance order of heads, units and layers for a task: measured once per run on the fine-tuned original."""

from dataclasses import asdict
from itertools import islice

from archwright.compression.context import RunContext
from archwright.data.batching import Batch
from archwright.errors import Failed
from archwright.networks.pruned import PrunedNetwork
from archwright.random_streams import CALIBRATION_BATCHES
from archwright.subnet.importance import ImportanceOrder, reorder, taylor_order
from archwright.training.losses import task_loss
from archwright.training.task_data import load_checkpoint

SAMPLE_ROWS = 512
"""Training rows on which importance is measured."""
SAMPLE_TOKENS = 32 * SAMPLE_ROWS
"""Tokens after which no further batch is taken: rows may be long."""


def measure_order(context: RunContext, original: PrunedNetwork) -> ImportanceOrder | None:
    """The order of heads, units and layers for this task; None with --order none."""
    if context.config.supernet.order == "none":
        return None
    if context.run.note("order") is None:
        with context.run.phase("order"):
            batches = sample_batches(context)
            order = taylor_order(original, batches, task_loss)
        context.run.note("order", {**asdict(order), "rows": sum(len(batch.targets) for batch in batches)})
    return read_order(context)


def read_order(context: RunContext) -> ImportanceOrder | None:
    """The order as the run folder has it; Failed when it is lost."""
    noted = context.run.note("order")
    if noted is None and context.config.supernet.order == "none":
        return None
    if noted is None:
        raise Failed(f"{context.run.path} has lost its order.json; run its `archwright compress` command again.")
    return ImportanceOrder(
        heads=tuple(map(tuple, noted["heads"])), units=tuple(map(tuple, noted["units"])), layers=tuple(noted["layers"])
    )


def sample_batches(context: RunContext) -> list[Batch]:
    """About 512 training rows, fewer when they are long, for measuring importance."""
    task_data, batch_size = context.task_data, context.config.supernet.batch_size
    batches, tokens = [], 0
    for batch in islice(task_data.training(batch_size, stream=CALIBRATION_BATCHES)(0), -(-SAMPLE_ROWS // batch_size)):
        if tokens >= SAMPLE_TOKENS:
            break
        batches.append(batch.to(task_data.device))
        tokens += int(batch.inputs["attention_mask"].sum())
    return batches


def load_reordered_network(context: RunContext) -> PrunedNetwork:
    """The pre-trained network with its heads and units in the order of their importance."""
    network = load_checkpoint(context.task_data, context.config.model, context.config.supernet)
    if order := read_order(context):
        reorder(network, order)
    return network
