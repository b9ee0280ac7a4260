"""Training of the super-network: in every step some of its sub-networks are trained together."""

from functools import partial

from archwright.compression.context import RunContext
from archwright.compression.finetuning import original_teacher, plan_steps, seconds_per_step, train_phase
from archwright.compression.space import open_space
from archwright.configs import compress as o
from archwright.networks.load import freeze_embeddings
from archwright.networks.pruned import PrunedNetwork
from archwright.random_streams import SUPERNET_BATCHES
from archwright.search import smallest
from archwright.spaces.frontier import Frontier
from archwright.spaces.subnetwork import ChainSpace, SubnetSpace
from archwright.subnet.chain import SMALLEST
from archwright.subnet.importance import ImportanceOrder, Loss, reorder
from archwright.subnet.strategies import STRATEGIES, SubnetDraws
from archwright.subnet.supernet import FixedTeacher, plain_update, supernet_update
from archwright.tasks import TASK_KINDS
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.loop import Update
from archwright.training.losses import find_distillation
from archwright.training.schedule import Schedule
from archwright.training.task_data import load_checkpoint, save_network

SHORT_STEPS, SHORT_SMALLEST = 100, 0.4
"""Below so many steps a language model is trained along the upper part of the chain alone."""


def train_supernet(context: RunContext, original: PrunedNetwork, order: ImportanceOrder | None) -> None:
    """Trains the super-network, its heads and units in the given order, into the run folder.

    With --start original it is `original` itself that is trained.
    """
    run, options, group = context.run, context.config.supernet, context.group
    if group.agree(run.supernet.exists()):
        run.checkpoints("supernet").remove()
        return
    pretrained = options.start == "pretrained"
    network = load_checkpoint(context.task_data, context.config.model, options) if pretrained else original
    freeze_embeddings(network, not options.train_embeddings)
    if order:
        reorder(network, order)
    with group.first_ahead():  # it may measure what heads and units cost
        space = open_space(context, network, order)
    taught = TASK_KINDS[context.task_data.task.kind].teach is not None
    teacher = original_teacher(context) if options.teacher == "original" or taught else None
    steps = plan_steps(context, "supernet", lambda: supernet_steps(context, network, space, teacher))
    with run.phase("supernet"):
        frontier, end = Frontier(space), lower_end(context, steps)
        step = supernet_step(network, space, options, teacher, frontier, end, loss=context.loss, group=group)
        train_phase(
            *(context, network, step),
            phase="supernet",
            stream=SUPERNET_BATCHES,
            steps=steps,
            title="training the super-network",
            carry=frontier,
        )
    with group.first_ahead():
        if group.first:
            save_network(network, context.task_data, run.supernet)
        run.checkpoints("supernet").remove()


def supernet_steps(
    context: RunContext, network: PrunedNetwork, space: SubnetSpace, teacher: FixedTeacher | None
) -> int:
    """How long the super-network is trained: --epochs, fewer when little is left of the training's part of --minutes.

    A step is as long as it is measured here, or as the original's steps were with everything around them.
    """
    run, options, minutes = context.run, context.config.supernet, context.config.search.minutes
    steps = round(context.task_data.steps_per_epoch(options.batch_size) * options.epochs)
    if minutes is None:
        return steps
    end = TASK_KINDS[context.task_data.task.kind].shares.training
    seconds_left = 60 * minutes * end - sum(run.seconds.values())
    loss, group = context.loss, context.group
    step = supernet_step(network, space, options, teacher, loss=loss, group=group)
    plain, whole = (seconds_per_step(context, network, update) for update in (plain_update(network, loss=loss), step))
    original_steps = (run.note("plan") or {}).get("original", 0)
    original_step = run.seconds.get("original", 0.0) / original_steps if original_steps else 0.0
    return max(1, min(steps, int(seconds_left / max(whole, whole / plain * original_step))))


def supernet_step(
    network: PrunedNetwork,
    space: SubnetSpace,
    options: o.SupernetOptions,
    teacher: FixedTeacher | None,
    frontier: Frontier | None = None,
    smallest_share: float = SMALLEST,
    *,
    loss: Loss,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Update:
    """One step of the strategy; a frontier that is given learns which sub-networks do well for their size.

    On the chain no sub-network is smaller than `smallest_share` of the cost. Of several processes all draw the same
    sub-networks, each learns from its own rows, and `loss` is over those of all.
    """
    frontier = frontier or Frontier(space)
    distillation = find_distillation(network.config.kind)
    return supernet_update(
        network,
        subnet_draws(space, frontier, smallest_share),
        STRATEGIES[options.strategy],
        loss=loss,
        distil=lambda logits, answers: distillation(logits, answers, options.temperature, group),
        teacher=teacher,
        clip=Schedule.clip if teacher else None,
        seen=lambda spec, worse: frontier.record_loss(spec, group.mean(worse)),
        average=group.average_part if group.processes > 1 else None,
    )


def lower_end(context: RunContext, steps: int) -> float:
    """The smallest share of the chain that is worth training: few steps of a language model teach small ones nothing,
    and what they cost is missing at the larger ones."""
    return SHORT_SMALLEST if context.task_data.task.kind == "lm" and steps < SHORT_STEPS else SMALLEST


def subnet_draws(space: SubnetSpace, frontier: Frontier, smallest_share: float = SMALLEST) -> SubnetDraws:
    """What strategies draw from: along the chain where there is one, otherwise from the whole space."""
    whole = space.anatomy.full
    if isinstance(space, ChainSpace):
        draw = partial(space.chain.draw, smallest=smallest_share)
        return SubnetDraws(whole, space.chain.spec(smallest_share), draw, frontier.near)
    return SubnetDraws(whole, space.build(smallest(space.choices)), frontier.random, frontier.near)
