"""The trainings of a run: the original, the order of its parts, the super-network; each is done once."""

from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from archwright.jobs import options as o
from archwright.jobs.scene import Scene
from archwright.networks.load import load_supernet, saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.search import sample, smallest
from archwright.spaces.subnetwork import SubnetSpace, subnet_space
from archwright.store import RunFolder, whole_folder
from archwright.subnet.importance import Order, reorder, taylor_order
from archwright.subnet.keep import anatomy
from archwright.subnet.strategies import STRATEGIES, Draw
from archwright.subnet.supernet import plain_update, supernet_update
from archwright.train import Schedule, distillation, task_loss, train

ORDER_ROWS = 512
"""Training rows on which importance is measured."""
TRAINING_SHARE = 0.6
"""Part of --minutes that the timed steps of both trainings may take; optimizer, order and search need the rest."""


@dataclass(frozen=True)
class Plan:
    """Steps of the two trainings, fixed once per run."""

    original: int
    supernet: int


def fresh(scene: Scene, model: o.Model, settings: o.Supernet) -> PrunedNetwork:
    """The checkpoint as it was given, with a head for the task."""
    network = load_supernet(
        scene.source, labels=scene.task.labels, pooling=model.pooling, seed=scene.seed, keep_head=scene.fitted
    )
    network.backbone.embeddings.requires_grad_(settings.train_embeddings)
    return network.to(scene.device)


def planned(run: RunFolder, scene: Scene, model: o.Model, settings: o.Supernet, minutes: float | None) -> Plan:
    """How many steps each training takes: the epochs asked for, fewer when --minutes is short."""
    noted = run.note("plan")
    if noted:
        return Plan(**noted)
    per_epoch = scene.steps_per_epoch(settings.batch_size)
    usual = 0.0 if scene.tuned else 2.0
    epochs = usual if settings.original_epochs is None else settings.original_epochs
    plan = Plan(round(per_epoch * epochs), round(per_epoch * settings.epochs))
    if minutes is not None:
        plan = shortened(plan, fresh(scene, model, settings), scene, settings, minutes)
    run.note("plan", asdict(plan))
    return plan


def shortened(plan: Plan, network: PrunedNetwork, scene: Scene, settings: o.Supernet, minutes: float) -> Plan:
    """The plan scaled to the time there is, from a few timed steps of each kind."""
    network.train()
    space = subnet_space(settings.space, anatomy(network.config))
    updates = [plain_update(network, loss=task_loss), super_step(network, space, settings)]
    plain, whole = (seconds_per_step(update, scene, settings.batch_size) for update in updates)
    cost = plan.original * plain + plan.supernet * whole
    scale = min(1.0, TRAINING_SHARE * minutes * 60 / max(cost, 1e-9))
    return Plan(int(plan.original * scale), max(1, int(plan.supernet * scale)))


def seconds_per_step(update: Any, scene: Scene, batch_size: int, steps: int = 6) -> float:
    rng, batches = np.random.default_rng(0), iter(scene.training(batch_size, stream=9)(0))
    update(next(batches), rng, 0.5)
    begun = perf_counter()
    done = 0
    for batch, _ in zip(batches, range(steps), strict=False):
        update(batch, rng, 0.5)
        done += 1
    return (perf_counter() - begun) / max(1, done)


def original_network(run: RunFolder, scene: Scene, model: o.Model, settings: o.Supernet, steps: int) -> PrunedNetwork:
    """The whole network, fine-tuned in the ordinary way: what every sub-network is compared with."""
    if run.original.exists():
        run.checkpoints("original").remove()  # a kill may have come between the two
        return saved_network(run.original).to(scene.device)
    network = fresh(scene, model, settings)
    with run.phase("original"):
        fit(network, plain_update(network, loss=task_loss), run, scene, settings, phase="original", steps=steps)
    keep(network, scene, run.original)
    run.checkpoints("original").remove()
    return network


def importance_order(run: RunFolder, scene: Scene, settings: o.Supernet, original: PrunedNetwork) -> Order | None:
    """The order of heads, units and layers for this task, None when none is wanted."""
    if ORDERS[settings.order] is None:
        return None
    if noted_order(run) is None:
        with run.phase("order"):
            rows = scene.training(settings.batch_size, stream=2)(0)
            chosen = [batch.to(scene.device) for batch in islice(rows, -(-ORDER_ROWS // settings.batch_size))]
            order = ORDERS[settings.order](original, chosen, task_loss)
        run.note("order", {**asdict(order), "rows": sum(len(batch.targets) for batch in chosen)})
    return noted_order(run)


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


def space_of(name: str, network: PrunedNetwork, order: Order | None) -> SubnetSpace:
    return subnet_space(name, anatomy(network.config), order.layers if order else None)


def super_network(
    run: RunFolder,
    scene: Scene,
    model: o.Model,
    settings: o.Supernet,
    *,
    original: PrunedNetwork,
    order: Order | None,
    steps: int,
) -> PrunedNetwork:
    """The trained super-network, its heads and units in the given order."""
    if run.supernet.exists():
        run.checkpoints("supernet").remove()
        return saved_network(run.supernet).to(scene.device)
    network = STARTS[settings.start](original, lambda: fresh(scene, model, settings))
    network.backbone.embeddings.requires_grad_(settings.train_embeddings)
    if order:
        reorder(network, order)
    with run.phase("supernet"):
        update = super_step(network, space_of(settings.space, network, order), settings)
        fit(network, update, run, scene, settings, phase="supernet", steps=steps)
    keep(network, scene, run.supernet)
    run.checkpoints("supernet").remove()
    return network


STARTS: dict[str, Any] = {"original": lambda original, fresh: original, "pretrained": lambda original, fresh: fresh()}


def super_step(network: PrunedNetwork, space: SubnetSpace, settings: o.Supernet) -> Any:
    draw = Draw(
        largest=space.anatomy.full,
        smallest=space.build(smallest(space.choices)),
        random=lambda rng: space.build(sample(space.choices, rng)),
    )
    return supernet_update(
        network,
        draw,
        STRATEGIES[settings.strategy],
        loss=task_loss,
        distil=lambda logits, teacher: distillation(logits, teacher, settings.temperature),
    )


def fit(
    network: Any, update: Any, run: RunFolder, scene: Scene, settings: o.Supernet, *, phase: str, steps: int
) -> None:
    """One training of the run, resumable."""
    train(
        network,
        scene.training(settings.batch_size, stream=STREAMS[phase]),
        update,
        Schedule(steps=steps, learning_rate=settings.learning_rate),
        seed=scene.seed * len(STREAMS) + STREAMS[phase],
        checkpoints=run.checkpoints(phase),
        every_seconds=settings.checkpoint_seconds,
        title=TITLES[phase],
    )


STREAMS = {"original": 0, "supernet": 1}
TITLES = {"original": "fine-tuning the original", "supernet": "training the super-network"}


def keep(network: PrunedNetwork, scene: Scene, folder: Path) -> None:
    """The network and its tokenizer on disk, whole or not at all."""
    with whole_folder(folder) as beside:
        network.save_pretrained(beside)
        scene.tokenizer.save_pretrained(beside)
