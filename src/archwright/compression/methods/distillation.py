"""Networks that are trained by themselves towards the original's answers, beside one that shares its weights."""

from collections.abc import Mapping
from time import monotonic

from archwright.compression.context import RunContext
from archwright.compression.finetuning import original_teacher, seconds_per_step, training_options
from archwright.logs import logger
from archwright.networks.load import freeze_embeddings, load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.progress import Bar
from archwright.random_streams import STAND_ALONE_BATCHES
from archwright.spaces.subnetwork import DISTILLED
from archwright.subnet.supernet import plain_update
from archwright.tasks import TASK_KINDS
from archwright.training.loop import train_network
from archwright.training.schedule import Schedule
from archwright.training.task_data import save_network

FEWEST_EPOCHS = 1.0
"""Passes over the training rows below which a network that is trained by itself is no fair candidate."""


def distil_epochs(context: RunContext) -> float:
    """Passes over the training rows: those of --distil-epochs, or what suits the task."""
    epochs = context.config.supernet.distil_epochs
    return TASK_KINDS[context.task_data.task.kind].distil_epochs if epochs is None else epochs


def distil(context: RunContext, shares: list[int], deadline: float | None, bar: Bar) -> list[int]:
    """Trains repaired cuts of the original, by the percent of the cost that is left, as many as time permits: those."""
    ready = [share for share in shares if context.group.agree((context.run.networks / f"original-{share}").exists())]
    steps = plan_distillation(context, ready, deadline)
    bar.advance(len(shares) - len(steps))
    for share in steps:
        train_alone(context, load_repaired(context, share), f"{DISTILLED}-{share}", steps[share])
        bar.advance()
    return list(steps)


def load_repaired(context: RunContext, share: int) -> PrunedNetwork:
    """The cut of the original with this percent of the cost, ready to be trained."""
    network = load_saved_network(context.run.networks / f"original-{share}").to(context.task_data.device)
    freeze_embeddings(network, not context.config.supernet.train_embeddings)
    return network


def plan_distillation(context: RunContext, shares: list[int], deadline: float | None) -> dict[int, int]:
    """Steps of every training that there is time for, by share. Counted once per run."""
    run, group = context.run, context.group
    plan = run.note("plan") or {}
    sources = {share: f"{DISTILLED}-{share}" for share in shares}
    noted = group.agree({share: int(plan[source]) for share, source in sources.items() if source in plan})
    if len(noted) < len(shares):
        per_epoch = context.task_data.steps_per_epoch(context.config.supernet.batch_size)
        epochs = affordable_epochs(context, shares, per_epoch, deadline)
        counts = {share: max(1, round(part * per_epoch)) if part else 0 for share, part in epochs.items()}
        noted = group.agree(counts)
        run.note("plan", {**plan, **{sources[share]: count for share, count in noted.items()}})
    return {share: noted[share] for share in shares if noted[share]}


def affordable_epochs(
    context: RunContext, shares: list[int], per_epoch: int, deadline: float | None
) -> dict[int, float]:
    """Passes over the training rows by share: those of --distil-epochs, or as many as end before the deadline.

    A step takes its network's share of the cost, so that timing one tells the others.
    """
    epochs = dict.fromkeys(shares, distil_epochs(context))
    if deadline is None:
        return epochs
    network = load_repaired(context, shares[0])
    update = plain_update(network, loss=context.loss, teacher=original_teacher(context))
    step = seconds_per_step(context, network, update)
    seconds = context.group.agree(deadline - monotonic())
    dealt = deal_time(epochs, seconds, {share: per_epoch * step * share / shares[0] for share in shares})
    if left_out := [f"{share} %" for share, part in dealt.items() if not part]:
        logger.warning("no time to train networks of %s by themselves; raise --minutes", ", ".join(left_out))
    return dealt


def deal_time(epochs: Mapping[int, float], seconds: float, per_epoch: Mapping[int, float]) -> dict[int, float]:
    """Epochs by share: equal time for all, at most as many epochs as given.

    Small networks, which need their training most, so have the most epochs, and what they do not need goes to larger
    ones. While one has fewer than FEWEST_EPOCHS, the last, which is the least useful, is left out.
    """
    chosen = list(epochs)
    while chosen:
        dealt, left = dict.fromkeys(epochs, 0.0), seconds
        for n, share in enumerate(sorted(chosen)):
            whole = epochs[share] * per_epoch[share]
            taken = min(whole, left / (len(chosen) - n))
            # not whole / per_epoch, which rounding may make a little less than the epochs, as if time were short
            dealt[share], left = epochs[share] if taken == whole else taken / per_epoch[share], left - taken
        if all(dealt[share] >= min(FEWEST_EPOCHS, epochs[share]) for share in chosen):
            return dealt
        chosen.pop()
    return dict.fromkeys(epochs, 0.0)


def train_alone(context: RunContext, network: PrunedNetwork, source: str, steps: int) -> None:
    """Trains a network by itself with the original as teacher, into the run folder, unless it is there."""
    folder, options, group = context.run.networks / source, context.config.supernet, context.group
    if not group.agree(folder.exists()):
        train_network(
            network,
            context.task_data.training(options.batch_size, stream=STAND_ALONE_BATCHES),
            plain_update(network, loss=context.loss, teacher=original_teacher(context)),
            Schedule(steps=steps, learning_rate=options.learning_rate),
            seed=context.seed,
            checkpoints=context.run.checkpoints(source),
            title=f"training the candidate {source}",
            group=group,
            share_rows=True,
            **training_options(options),
        )
        if group.first:
            save_network(network, context.task_data, folder)
    context.run.checkpoints(source).remove()
