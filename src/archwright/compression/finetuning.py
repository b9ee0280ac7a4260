"""The trainings of a run: the original, the order of its parts, the super-network; each is done once."""

import copy
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from time import monotonic, perf_counter
from typing import Any

import numpy as np

from archwright.compression.context import RunContext
from archwright.configs import compress as o
from archwright.data.batching import Batch
from archwright.errors import Failed
from archwright.networks.load import freeze_embeddings, saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.search import smallest
from archwright.spaces.frontier import Frontier
from archwright.spaces.subnetwork import SubnetSpace, subnet_space
from archwright.store import RunFolder
from archwright.subnet.anatomy import anatomy
from archwright.subnet.importance import Order, reorder, taylor_order
from archwright.subnet.strategies import STRATEGIES, Draw
from archwright.subnet.supernet import plain_update, supernet_update
from archwright.training.loop import train_network
from archwright.training.losses import distillation, task_loss
from archwright.training.pretrained import load_checkpoint, save_network
from archwright.training.schedule import Schedule
from archwright.training.state import Checkpoints
from archwright.training.task_data import TaskData

ORDER_ROWS = 512
"""Training rows on which importance is measured."""
USUAL_TOKENS = 32
"""Of a row: so many times the rows are the most tokens that importance is measured on."""
ORIGINAL_SHARE = 0.25
"""Part of --minutes that the timed steps of the original's fine-tuning may take."""
TRAINING_SHARE = 0.75
"""Part of --minutes after which the super-network's training ends; the search has the rest."""


class TimeUp(Exception):
    """The run's --minutes are over in the middle of a training."""


def original_steps(context: RunContext) -> int:
    """How long the original is fine-tuned: the epochs asked for, fewer when --minutes is short.

    It does not depend on the method, so that methods can be compared.
    """
    settings, minutes = context.supernet, context.search.minutes
    usual = 0.0 if context.task_data.tuned else 2.0
    epochs = usual if settings.original_epochs is None else settings.original_epochs
    steps = round(context.task_data.steps_per_epoch(settings.batch_size) * epochs)
    if minutes is None or not steps:
        return steps
    network = load_checkpoint(context.task_data, context.model, settings).train()
    plain = seconds_per_step(plain_update(network, loss=task_loss), context.task_data, settings.batch_size)
    return max(1, min(steps, int(60 * minutes * ORIGINAL_SHARE / plain)))


def supernet_steps(context: RunContext, network: PrunedNetwork, space: SubnetSpace) -> int:
    """The same for the super-network, in what is left of the training's part of --minutes."""
    settings, minutes = context.supernet, context.search.minutes
    steps = round(context.task_data.steps_per_epoch(settings.batch_size) * settings.epochs)
    if minutes is None:
        return steps
    left = 60 * minutes * TRAINING_SHARE - sum(context.run.seconds.values())
    twin = copy.deepcopy(network).train()
    updates = (plain_update(twin, loss=task_loss), supernet_step(twin, space, settings))
    plain, whole = (seconds_per_step(update, context.task_data, settings.batch_size) for update in updates)
    return max(1, min(steps, int(left / max(whole, whole / plain * lived(context)))))


def lived(context: RunContext) -> float:
    """Seconds that a step of the original's fine-tuning took with everything around it, 0 when there was none."""
    steps = plan_steps(context, "original", lambda: 0)
    return context.run.seconds.get("original", 0.0) / steps if steps else 0.0


def plan_steps(context: RunContext, phase: str, steps: Callable[[], int]) -> int:
    """The steps of a training, decided once per run."""
    noted = context.run.note("plan") or {}
    if phase not in noted:
        noted = context.run.note("plan", {**noted, phase: steps()})
    return int(noted[phase])


def seconds_per_step(update: Any, task_data: TaskData, batch_size: int, steps: int = 6) -> float:
    rng, batches = np.random.default_rng(0), iter(task_data.training(batch_size, stream=9)(0))
    update(next(batches), rng, 0.5)
    begun = perf_counter()
    done = 0
    for batch, _ in zip(batches, range(steps), strict=False):
        update(batch, rng, 0.5)
        done += 1
    return (perf_counter() - begun) / max(1, done)


def finetune_original(context: RunContext) -> PrunedNetwork:
    """The whole network, fine-tuned in the ordinary way: what every sub-network is compared with."""
    run, task_data, settings = context.run, context.task_data, context.supernet
    if run.original.exists():
        run.checkpoints("original").remove()  # a kill may have come between the two
        return saved_network(run.original).to(task_data.device)
    steps = plan_steps(context, "original", lambda: original_steps(context))
    network = load_checkpoint(task_data, context.model, settings)
    with run.phase("original"):
        fit(network, plain_update(network, loss=task_loss), context, phase="original", steps=steps)
    save_network(network, task_data, run.original)
    run.checkpoints("original").remove()
    return network


def measure_order(context: RunContext, original: PrunedNetwork) -> Order | None:
    """The order of heads, units and layers for this task, None when none is wanted."""
    run, task_data, settings = context.run, context.task_data, context.supernet
    if ORDERS[settings.order] is None:
        return None
    if noted_order(run) is None:
        with run.phase("order"):
            chosen = sample_batches(task_data, settings.batch_size, rows=ORDER_ROWS)
            order = ORDERS[settings.order](original, chosen, task_loss)
        run.note("order", {**asdict(order), "rows": sum(len(batch.targets) for batch in chosen)})
    return noted_order(run)


def sample_batches(task_data: TaskData, batch_size: int, *, rows: int) -> list[Batch]:
    """About so many training rows, fewer when they are long, for measuring importance."""
    chosen, tokens = [], 0
    for batch in islice(task_data.training(batch_size, stream=2)(0), -(-rows // batch_size)):
        if tokens >= rows * USUAL_TOKENS:
            break
        chosen.append(batch.to(task_data.device))
        tokens += int(batch.inputs["attention_mask"].sum())
    return chosen


def noted_order(run: RunFolder) -> Order | None:
    """The order that the super-network's parts were put into, if any was measured."""
    noted = run.note("order")
    if noted is None:
        return None
    return Order(
        heads=tuple(map(tuple, noted["heads"])),
        units=tuple(map(tuple, noted["units"])),
        layers=tuple(noted["layers"]),
    )


ORDERS: dict[str, Any] = {"taylor": taylor_order, "none": None}


def known_order(context: RunContext) -> Order | None:
    """The noted order; Failed when it is lost."""
    order = noted_order(context.run)
    if order is None and ORDERS[context.supernet.order]:
        raise Failed(f"{context.run.path} has lost its order.json; run its `archwright compress` command again.")
    return order


def space_of(context: RunContext, network: PrunedNetwork, order: Order | None) -> SubnetSpace:
    return subnet_space(context.supernet.space or "small", anatomy(network.config), order.layers if order else None)


def train_supernet(context: RunContext, *, original: PrunedNetwork, order: Order | None) -> None:
    """Trains the super-network, its heads and units in the given order, into the run folder."""
    run, settings = context.run, context.supernet
    if run.supernet.exists():
        run.checkpoints("supernet").remove()
        return
    network = STARTS[settings.start](original, lambda: load_checkpoint(context.task_data, context.model, settings))
    freeze_embeddings(network, not settings.train_embeddings)
    if order:
        reorder(network, order)
    space = space_of(context, network, order)
    steps = plan_steps(context, "supernet", lambda: supernet_steps(context, network, space))
    with run.phase("supernet"):
        frontier = Frontier(space)
        update = supernet_step(network, space, settings, frontier)
        fit(network, update, context, phase="supernet", steps=steps, carry=frontier)
    save_network(network, context.task_data, run.supernet)
    run.checkpoints("supernet").remove()


STARTS: dict[str, Any] = {"original": lambda original, fresh: original, "pretrained": lambda original, fresh: fresh()}


def supernet_step(
    network: PrunedNetwork, space: SubnetSpace, settings: o.SupernetOptions, frontier: Frontier | None = None
) -> Any:
    frontier = frontier or Frontier(space)
    draw = Draw(
        largest=space.anatomy.full,
        smallest=space.build(smallest(space.choices)),
        random=frontier.random,
        near=frontier.near,
    )
    return supernet_update(
        network,
        draw,
        STRATEGIES[settings.strategy],
        loss=task_loss,
        distil=lambda logits, teacher: distillation(logits, teacher, settings.temperature),
        seen=frontier.seen,
    )


def fit(
    network: Any, update: Any, context: RunContext, *, phase: str, steps: int, carry: Frontier | None = None
) -> None:
    """One training of the run, resumable."""
    settings = context.supernet
    train_network(
        network,
        context.task_data.training(settings.batch_size, stream=STREAMS[phase]),
        update,
        Schedule(steps=steps, learning_rate=settings.learning_rate),
        seed=context.seed * len(STREAMS) + STREAMS[phase],
        checkpoints=context.run.checkpoints(phase),
        every_seconds=settings.checkpoint_seconds,
        title=TITLES[phase],
        carry=carry,
    )


def finetune(
    task_data: TaskData,
    network: PrunedNetwork,
    settings: o.SupernetOptions,
    *,
    epochs: float,
    checkpoints: Checkpoints | None = None,
    deadline: float | None = None,
) -> PrunedNetwork:
    """The network after so many of the --epochs that a network is trained by itself; TimeUp at the deadline.

    The learning rate follows all --epochs, so that a checkpoint of fewer can be continued to more.
    """
    per_epoch = task_data.steps_per_epoch(settings.batch_size)
    train_network(
        network,
        task_data.training(settings.batch_size, stream=ALONE_STREAM),
        within(plain_update(network, loss=task_loss), deadline),
        Schedule(steps=round(per_epoch * settings.epochs), learning_rate=settings.learning_rate),
        seed=task_data.seed,
        checkpoints=checkpoints,
        every_seconds=settings.checkpoint_seconds,
        title="fine-tuning one network",
        stop=round(per_epoch * epochs),
    )
    return network


def within(update: Any, deadline: float | None) -> Any:
    """The same update until the deadline, a value of `time.monotonic()`."""

    def timed(batch: Any, rng: np.random.Generator, progress: float) -> float:
        if deadline is not None and monotonic() >= deadline:
            raise TimeUp
        loss: float = update(batch, rng, progress)
        return loss

    return timed


STREAMS = {"original": 0, "supernet": 1}
ALONE_STREAM = 4
TITLES = {"original": "fine-tuning the original", "supernet": "training the super-network"}
