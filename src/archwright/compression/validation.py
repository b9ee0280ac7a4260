"""What can be wrong with the options of `compress`, found before anything is written or trained."""

from dataclasses import fields
from typing import Any

from archwright.compression.evaluator import ERROR, check_latency, params_bound
from archwright.compression.methods import METHODS
from archwright.compression.studies.fidelity import draw_subnets
from archwright.configs import compress as o
from archwright.configs.compress import CompressConfig
from archwright.errors import BadInput
from archwright.networks.load import stock_config, supernet_config
from archwright.objectives.costs import OBJECTIVES
from archwright.objectives.latency import measure_latency
from archwright.parallel.ray_cluster import check_ray
from archwright.search import SAMPLERS, rungs, smallest
from archwright.spaces.subnetwork import SubnetSpace, TrainedSpace, subnet_space
from archwright.store import check_store
from archwright.subnet.anatomy import read_anatomy
from archwright.training.task_data import TaskData, check_positions, load_checkpoint

FEWEST_SUBNETS = 3
"""Sub-networks below which a rank correlation says nothing."""


def validate(config: CompressConfig, task_data: TaskData) -> None:
    """BadInput for everything that can be known before the weights are loaded."""
    validate_method(config.supernet, config.search)
    validate_fidelity(config.fidelity, method=config.supernet.method)
    space = build_space(config, task_data)
    validate_search(config, space)
    draw_subnets(space, config.fidelity.honesty, task_data.seed)  # refuses more than there are


def validate_method(options: o.SupernetOptions, search: o.SearchOptions) -> None:
    """What the method cannot use, and epochs that contradict each other."""
    if options.epochs < options.min_epochs != o.SupernetOptions.min_epochs:
        raise BadInput(f"--min-epochs must be at most --epochs, {options.epochs:g}, got {options.min_epochs:g}.")
    method, usual = METHODS[options.method], usual_values(options)
    for name in method.unused:
        if getattr(options, name) != usual[name]:
            raise BadInput(
                f"--{name.replace('_', '-')} means nothing for --method {options.method}, "
                f"got {getattr(options, name)!r}; leave it out."
            )
    if search.ray is not None:
        if not method.standalone:
            able = " or ".join(name for name in METHODS if METHODS[name].standalone)
            raise BadInput(f"--ray trains networks one by one, so it needs --method {able}, got {options.method}.")
        check_ray(search.ray)


def usual_values(options: o.SupernetOptions) -> dict[str, Any]:
    """The values that the options have when only the preset is given."""
    return {f.name: o.PRESETS[options.preset].get(f.name, f.default) for f in fields(options)}


def validate_fidelity(options: o.FidelityOptions, *, method: str) -> None:
    """Too few sub-networks for a correlation, and methods without shared weights."""
    count = options.honesty
    if 0 < count < FEWEST_SUBNETS:
        raise BadInput(f"--honesty must be 0 or at least {FEWEST_SUBNETS} sub-networks to rank, got {count}.")
    if count and not METHODS[method].shared:
        raise BadInput(
            f"--honesty is about weights that sub-networks share, got --method {method}; take weight-sharing."
        )


def build_space(config: CompressConfig, task_data: TaskData) -> SubnetSpace | TrainedSpace:
    """The space as it can be known before the weights are loaded."""
    options, task = config.supernet, task_data.task
    source = stock_config(task_data.source)
    network = supernet_config(source, kind=task.kind, labels=task.labels, grouping=config.model.grouping)
    space = subnet_space(options.space or "small", read_anatomy(network))
    if not METHODS[options.method].standalone:
        return space
    epochs = SAMPLERS[config.search.sampler].epochs(rungs(options.min_epochs, options.epochs))
    return TrainedSpace(space, tuple(epochs))


def validate_search(config: CompressConfig, space: SubnetSpace | TrainedSpace) -> None:
    """Objectives, sampler and budget of the search."""
    search = config.search
    unknown = [name for name in search.objectives if name not in OBJECTIVES]
    costs = [name for name in search.objectives if name != ERROR]
    if unknown or not costs or len(set(search.objectives)) < len(search.objectives):
        raise BadInput(
            f"--objectives must be {ERROR} and one or more of {', '.join(n for n in OBJECTIVES if n != ERROR)}, "
            f"each once, got {','.join(search.objectives)!r}."
        )
    SAMPLERS[search.sampler](space.choices, seed=0)  # refuses a space that it cannot serve
    params_bound(config.budget, space)


def validate_new_run(config: CompressConfig, task_data: TaskData) -> None:
    """What is wrong with the weights, a budget that they cannot meet, a store that cannot be used."""
    options, measure, most = config.supernet, config.measure, config.budget.latency_ms
    network = load_checkpoint(task_data, config.model, options)
    longest = max(encoded.lengths.max() for encoded in task_data.encoded.values())
    check_positions(network, {"--max-length": longest, "--length": measure.length})
    if most is not None:
        space = subnet_space(options.space or "small", read_anatomy(network.config))
        specs = {"smallest": space.build(smallest(space.choices))}
        length = task_data.length(measure.length)
        timings = measure_latency(network, specs, batch=1, length=length, rounds=measure.rounds)
        check_latency(most, timings["smallest"].low)
    check_store(config.search.store)
