"""Training of the super-network: in every step some of its sub-networks are trained together."""

import copy

from archwright.compression.context import RunContext
from archwright.compression.finetuning import plan_steps, seconds_per_step, train_phase
from archwright.configs import compress as o
from archwright.networks.load import freeze_embeddings
from archwright.networks.pruned import PrunedNetwork
from archwright.random_streams import SUPERNET_BATCHES
from archwright.search import smallest
from archwright.spaces.frontier import Frontier
from archwright.spaces.subnetwork import SubnetSpace
from archwright.subnet.importance import ImportanceOrder, reorder
from archwright.subnet.strategies import STRATEGIES, SubnetDraws
from archwright.subnet.supernet import plain_update, supernet_update
from archwright.training.loop import Update
from archwright.training.losses import distillation, task_loss
from archwright.training.task_data import load_checkpoint, save_network

TRAINING_SHARE = 0.75
"""Part of --minutes after which the super-network's training ends; the search has the rest."""


def train_supernet(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    """Trains the super-network, its heads and units in the given order, into the run folder.

    With --start original it is `original` itself that is trained.
    """
    run, options = context.run, context.config.supernet
    if run.supernet.exists():
        run.checkpoints("supernet").remove()
        return
    pretrained = options.start == "pretrained"
    network = load_checkpoint(context.task_data, context.config.model, options) if pretrained else original
    freeze_embeddings(network, not options.train_embeddings)
    if order:
        reorder(network, order)
    space = context.space(network, order)
    steps = plan_steps(context, "supernet", lambda: supernet_steps(context, network, space))
    with run.phase("supernet"):
        frontier = Frontier(space)
        train_phase(
            *(context, network, supernet_step(network, space, options, frontier)),
            phase="supernet",
            stream=SUPERNET_BATCHES,
            steps=steps,
            title="training the super-network",
            carry=frontier,
        )
    save_network(network, context.task_data, run.supernet)
    run.checkpoints("supernet").remove()


def supernet_steps(context: RunContext, network: PrunedNetwork, space: SubnetSpace) -> int:
    """How long the super-network is trained: --epochs, fewer when little is left of the training's part of --minutes.

    A step is as long as it is measured here, or as the original's steps were with everything around them.
    """
    run, options, minutes = context.run, context.config.supernet, context.config.search.minutes
    steps = round(context.task_data.steps_per_epoch(options.batch_size) * options.epochs)
    if minutes is None:
        return steps
    seconds_left = 60 * minutes * TRAINING_SHARE - sum(run.seconds.values())
    twin = copy.deepcopy(network).train()
    plain, whole = (
        seconds_per_step(update, context.task_data, options.batch_size)
        for update in (plain_update(twin, loss=task_loss), supernet_step(twin, space, options))
    )
    original_steps = (run.note("plan") or {}).get("original", 0)
    original_step = run.seconds.get("original", 0.0) / original_steps if original_steps else 0.0
    return max(1, min(steps, int(seconds_left / max(whole, whole / plain * original_step))))


def supernet_step(
    network: PrunedNetwork, space: SubnetSpace, options: o.SupernetOptions, frontier: Frontier | None = None
) -> Update:
    """One step of the strategy; a frontier that is given learns which sub-networks do well for their size."""
    frontier = frontier or Frontier(space)
    draw = SubnetDraws(
        largest=space.anatomy.full,
        smallest=space.build(smallest(space.choices)),
        random=frontier.random,
        near=frontier.near,
    )
    return supernet_update(
        network,
        draw,
        STRATEGIES[options.strategy],
        loss=task_loss,
        distil=lambda logits, teacher: distillation(logits, teacher, options.temperature),
        seen=frontier.record_loss,
    )
