"""Importance order of heads, units and layers for a task: measured once per run on the fine-tuned original."""

from dataclasses import asdict
from itertools import islice

from archwright.compression.context import RunContext
from archwright.compression.ray_calibration import RayRunner, measures_on_ray
from archwright.compression.vectors import draw_targets
from archwright.data.batching import Batch
from archwright.errors import Failed
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.random_streams import CALIBRATION_BATCHES
from archwright.subnet.importance import REDUCTIONS, BatchRunner, ImportanceOrder, order_by_importance, reorder
from archwright.tasks import TASK_KINDS
from archwright.training.task_data import load_checkpoint

SAMPLE_ROWS = 512
"""Training rows on which importance is measured."""


def measure_order(context: RunContext, original: PrunedNetwork) -> ImportanceOrder | None:
    """The order of heads, units and layers for this task; None with --order none."""
    if context.config.supernet.order == "none":
        return None
    if context.group.agree(context.run.note("order") is None):
        with context.run.phase("order"):
            batches = sample_batches(context)
            options = context.config.supernet
            order = order_by_importance(
                *(original, batches, context.task_data.row_loss, REDUCTIONS[options.order]),
                remove_layers=options.space != "chain",
                span=TASK_KINDS[context.task_data.task.kind].importance_span,
                runner=batch_runner(context, original),
            )
        context.run.note("order", {**asdict(order), "rows": sum(len(batch.targets) for batch in batches)})
    context.group.wait_for_first()  # its order counts: that of others may differ where two are equal but for rounding
    return read_order(context)


def batch_runner(context: RunContext, network: PrunedNetwork) -> BatchRunner:
    """Who measures on batches: the processes that train together, the nodes of --ray, or this process."""
    if context.group.processes == 1 and measures_on_ray(context):
        return RayRunner(str(context.config.search.ray), network)
    return context.group


def read_order(context: RunContext) -> ImportanceOrder | None:
    """The order as the run folder has it; Failed when it is lost."""
    noted = context.run.note("order")
    if noted is None and context.config.supernet.order == "none":
        return None
    if noted is None:
        raise Failed(f"{context.run.path} has lost its order.json; run its `archwright compress` command again.")
    rows = {name: tuple(map(tuple, noted.get(name, ()))) for name in ("heads", "units", "head_scores", "unit_scores")}
    return ImportanceOrder(**rows, layers=tuple(noted["layers"]))


def sample_batches(context: RunContext, *, least: int = 0) -> list[Batch]:
    """About 512 training rows, fewer when they are long: as many tokens as measuring importance takes, or `least`."""
    task_data, batch_size = context.task_data, context.config.supernet.batch_size
    kind = TASK_KINDS[task_data.task.kind]
    most = max(least, kind.importance_tokens)
    batches, tokens = [], 0
    for batch in islice(task_data.training(batch_size, stream=CALIBRATION_BATCHES)(0), -(-SAMPLE_ROWS // batch_size)):
        if tokens >= most:
            break
        batch = draw_targets(batch, task_data.seed) if kind.teach is not None else batch
        batches.append(batch.to(task_data.device))
        tokens += int(batch.inputs["attention_mask"].sum())
    return batches


def load_start(context: RunContext) -> PrunedNetwork:
    """The pre-trained network, or where nothing is trained any more the fine-tuned one, which has the same shape."""
    if not context.task_data.trains:
        return load_saved_network(context.start).to(context.task_data.device)
    return load_checkpoint(context.task_data, context.config.model, context.config.supernet)


def load_reordered_network(context: RunContext) -> PrunedNetwork:
    """The network of `load_start` with its heads and units in the order of their importance."""
    network = load_start(context)
    if order := read_order(context):
        reorder(network, order)
    return network
