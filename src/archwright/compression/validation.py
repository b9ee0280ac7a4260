"""What can be wrong with the options of `compress`, found before anything is written or trained."""

from dataclasses import fields
from typing import Any

from archwright.compression.budgets.targets import TARGETS, validate_target
from archwright.compression.checkpoint_size import checkpoint_anatomy
from archwright.compression.evaluator import check_latency, params_bounds
from archwright.compression.methods import METHODS
from archwright.compression.methods.one_shot import chosen_shares
from archwright.compression.space import ERROR, GENERATION, LATENCY
from archwright.compression.studies.fidelity import draw_subnets
from archwright.configs import compress as o
from archwright.configs.compress import CompressConfig
from archwright.devices import resolve_device
from archwright.errors import BadInput
from archwright.networks.load import stock_config
from archwright.networks.precision import LOW, choose_weights, stored_precisions
from archwright.objectives.costs import OBJECTIVES
from archwright.objectives.latency import measure_latency
from archwright.parallel.ray_cluster import check_ray
from archwright.search import SAMPLERS, rungs, smallest
from archwright.spaces.subnetwork import SubnetSpace, TrainedSpace, subnet_space
from archwright.statistics.vectors import NEIGHBOURS
from archwright.store import check_store
from archwright.subnet.anatomy import read_anatomy
from archwright.tasks import TASK_KINDS
from archwright.training.recomputation import can_recompute
from archwright.training.task_data import TaskData, check_positions, describe_checkpoint, load_checkpoint

FEWEST_SUBNETS = 3
"""Sub-networks below which a rank correlation says nothing."""


def validate(config: CompressConfig, task_data: TaskData) -> None:
    """BadInput for everything that can be known before the weights are loaded."""
    validate_method(config.supernet, config.search)
    validate_fidelity(config.fidelity, method=config.supernet.method)
    validate_memory(config, task_data)
    if config.model.width is not None:
        validate_width(config)
    if TASK_KINDS[task_data.task.kind].teach is not None:
        validate_vector_task(config, task_data)
    whole = describe_checkpoint(task_data, config.model, whole=True)
    validate_target(config, stock_family=whole.family.stock, family=whole.backbone["model_type"])
    resolve_device(config.measure.latency_device, "--latency-device")  # refuses one that is not there
    space = build_space(config, task_data)
    validate_search(config, space)
    if GENERATION in config.search.objectives and task_data.task.kind != "lm":
        raise BadInput(
            f"--objectives {GENERATION} is about models that write text, so it needs --task lm, got the task "
            f"{task_data.task.name}; take {LATENCY}."
        )
    params_bounds(config.budget, space, checkpoint_anatomy(task_data, config.model))
    draw_subnets(space, config.fidelity.honesty, task_data.seed)  # refuses more than there are


def validate_method(options: o.SupernetOptions, search: o.SearchOptions) -> None:
    """What the method cannot use, and epochs that contradict each other."""
    if options.epochs < options.min_epochs != o.SupernetOptions.min_epochs:
        raise BadInput(f"--min-epochs must be at most --epochs, {options.epochs:g}, got {options.min_epochs:g}.")
    method, usual = METHODS[options.method], usual_values(options)
    chosen_shares(options)  # refuses what is no share
    for name in method.unused:
        if getattr(options, name) != usual[name]:
            raise BadInput(
                f"--{name.replace('_', '-')} means nothing for --method {options.method}, "
                f"got {getattr(options, name)!r}; leave it out."
            )
    if method.shared and options.strategy == "teacher" and options.teacher != "original":
        raise BadInput(
            f"--strategy teacher needs a teacher that stays as it is, --teacher original, got {options.teacher}; "
            "take it, or --strategy full."
        )
    if options.space == "chain" and options.order == "none":
        raise BadInput("--space chain is made of importance scores, got --order none; take fisher or taylor.")
    if options.distil_epochs and options.space != "chain":
        raise BadInput(
            f"--distil-epochs trains members of --space chain, got --space {options.space}; leave one of the two out."
        )
    if search.ray is not None:
        check_ray(search.ray)


def validate_memory(config: CompressConfig, task_data: TaskData) -> None:
    """Weights in bfloat16 and what needs more digits; layers that keep all that they compute."""
    model, options = config.model, config.supernet
    dtype = choose_weights(model.weights, task_data.source, stored_precisions(task_data.source))
    if dtype in LOW:
        needs = "--precision float32" if options.precision == "float32" else None
        needs = "--embedding-rank" if model.embedding_rank is not None else needs
        needs = "--width" if model.width is not None else needs
        needs = "--compare quantized" if "quantized" in config.compare.compare else needs
        if needs is not None:
            raise BadInput(
                f"{needs} needs weights in float32, got --weights {model.weights}, which keeps bfloat16 here; take "
                "--weights float32."
            )
    if options.gradient_checkpointing and not can_recompute(describe_checkpoint(task_data, model, whole=True)):
        family = stock_config(task_data.source).model_type
        raise BadInput(
            f"--gradient-checkpointing needs layers that transformers can run again, got {family}; leave it out."
        )


def validate_width(config: CompressConfig) -> None:
    """Channels are chosen in the fine-tuned original: networks that start from the pre-trained one have none."""
    options = config.supernet
    start = "--start pretrained" if METHODS[options.method].shared and options.start == "pretrained" else None
    start = f"--method {options.method}" if METHODS[options.method].standalone else start
    start = "--honesty" if config.fidelity.honesty else start
    if start is not None:
        raise BadInput(
            f"--width cuts the fine-tuned original, got {start}, which trains from the pre-trained weights; leave one "
            "of the two out."
        )


def validate_vector_task(config: CompressConfig, task_data: TaskData) -> None:
    """Networks that learn the original's vectors: these must stay as wide, and rows enough to be neighbours."""
    if config.model.width is not None:
        raise BadInput(f"--width makes the vectors themselves smaller, got --task {task_data.task.kind}; leave it out.")
    if config.model.cut == "before":
        raise BadInput(
            f"--cut before needs fine-tuning after the cut, got --task {task_data.task.kind}, whose original is not "
            "trained; leave it out."
        )
    for split in ("validation", "test"):
        encoded = task_data.encoded[split]
        texts = len(encoded) * encoded.choices
        if task_data.task.metric == "neighbour_recall" and texts <= NEIGHBOURS:
            raise BadInput(
                f"the {split} rows need more than {NEIGHBOURS} texts to have {NEIGHBOURS} neighbours, got {texts}; "
                "give more rows."
            )


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
    options = config.supernet
    space = subnet_space(options.space or "small", read_anatomy(describe_checkpoint(task_data, config.model)))
    if not METHODS[options.method].standalone:
        return space
    epochs = SAMPLERS[config.search.sampler].epochs(rungs(options.min_epochs, options.epochs))
    return TrainedSpace(space, tuple(epochs))


def validate_search(config: CompressConfig, space: SubnetSpace | TrainedSpace) -> None:
    """Objectives and sampler of the search."""
    search = config.search
    unknown = [name for name in search.objectives if name not in OBJECTIVES]
    costs = [name for name in search.objectives if name != ERROR]
    if unknown or not costs or len(set(search.objectives)) < len(search.objectives):
        raise BadInput(
            f"--objectives must be {ERROR} and one or more of {', '.join(n for n in OBJECTIVES if n != ERROR)}, "
            f"each once, got {','.join(search.objectives)!r}."
        )
    SAMPLERS[search.sampler](space.choices, seed=0)  # refuses a space that it cannot serve


def validate_new_run(config: CompressConfig, task_data: TaskData) -> None:
    """What is wrong with the weights, a budget that they cannot meet, a store that cannot be used."""
    options, measure, most = config.supernet, config.measure, config.budget.latency_ms
    network = load_checkpoint(task_data, config.model, options)
    longest = max(encoded.lengths.max() for encoded in task_data.encoded.values())
    check_positions(network, {"--max-length": longest, "--length": measure.length})
    if most is not None:
        space = subnet_space(options.space or "small", read_anatomy(network.config))  # an upper bound with --width
        specs = {"smallest": space.build(smallest(space.choices))}
        length = task_data.length(measure.length)
        timings = measure_latency(
            *(network, specs),
            batch=1,
            length=length,
            rounds=measure.rounds,
            prepare=TARGETS[config.search.for_].prepare,
            device=resolve_device(measure.latency_device, "--latency-device"),
        )
        check_latency(most, timings["smallest"].low)
    check_store(config.search.store)
