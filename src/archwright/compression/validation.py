"""What can be wrong with the options of `compress`, found before anything is written or trained."""

from dataclasses import fields
from typing import Any

from archwright.compression.methods import METHODS
from archwright.compression.search import check_latency
from archwright.configs import compress as o
from archwright.errors import BadInput
from archwright.networks.load import stock_config, supernet_config
from archwright.objectives.latency import measure_latency
from archwright.parallel.ray_cluster import check_ray
from archwright.search import SAMPLERS, rungs, smallest
from archwright.spaces.subnetwork import SubnetSpace, subnet_space
from archwright.spaces.trained import TrainedSpace
from archwright.subnet.anatomy import anatomy
from archwright.training.pretrained import check_room, load_checkpoint
from archwright.training.task_data import TaskData


def check_method(settings: o.SupernetOptions, search: o.SearchOptions) -> None:
    """What the method cannot use."""
    if settings.epochs < settings.min_epochs != o.SupernetOptions.min_epochs:
        raise BadInput(f"--min-epochs must be at most --epochs, {settings.epochs:g}, got {settings.min_epochs:g}.")
    usual = usual_values(settings)
    for name in METHODS[settings.method].unused:
        if getattr(settings, name) != usual[name]:
            raise BadInput(
                f"--{name.replace('_', '-')} means nothing for --method {settings.method}, "
                f"got {getattr(settings, name)!r}; leave it out."
            )
    if search.ray is not None and not METHODS[settings.method].alone:
        able = " or ".join(name for name, other in METHODS.items() if other.alone)
        raise BadInput(f"--ray trains networks one by one, so it needs --method {able}, got {settings.method}.")
    if search.ray is not None:
        check_ray(search.ray)


def usual_values(settings: o.SupernetOptions) -> dict[str, Any]:
    """The values of the preset where nothing else is said."""
    return {f.name: o.PRESETS[settings.preset].get(f.name, f.default) for f in fields(settings)}


def space_before(
    task_data: TaskData, model: o.ModelOptions, settings: o.SupernetOptions, search: o.SearchOptions
) -> SubnetSpace | TrainedSpace:
    """The space as it can be known before the weights are loaded."""
    config = supernet_config(
        stock_config(task_data.source), kind=task_data.task.kind, labels=task_data.task.labels, grouping=model.grouping
    )
    space = subnet_space(settings.space or "small", anatomy(config))
    if not METHODS[settings.method].alone:
        return space
    return TrainedSpace(space, tuple(SAMPLERS[search.sampler].epochs(rungs(settings.min_epochs, settings.epochs))))


def check_network(
    task_data: TaskData,
    model: o.ModelOptions,
    settings: o.SupernetOptions,
    budget: o.BudgetOptions,
    measure: o.MeasureOptions,
) -> None:
    """What is wrong with the weights, or asks too much of them, found before anything is written."""
    network = load_checkpoint(task_data, model, settings)
    check_room(
        network, {"--max-length": max(e.lengths.max() for e in task_data.encoded.values()), "--length": measure.length}
    )
    if budget.latency_ms is None:
        return
    space = subnet_space(settings.space or "small", anatomy(network.config))
    keeps = {"smallest": space.build(smallest(space.choices))}
    timings = measure_latency(network, keeps, batch=1, length=task_data.length(measure.length), rounds=measure.rounds)
    check_latency(budget.latency_ms, timings["smallest"].low)
