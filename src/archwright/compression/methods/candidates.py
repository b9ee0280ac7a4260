"""Candidates before a search along the chain: what simpler methods find, in the same study as everything else.

Pruning without training, of the original and of the super-network, takes seconds; the largest member of the chain
within a budget of parameters, or the first layers, trained by themselves, take minutes. Each is a network in the run
folder. With --minutes all have a part of the time.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from time import monotonic

from archwright.compression.checkpoint_size import checkpoint_anatomy
from archwright.compression.context import RunContext
from archwright.compression.evaluator import params_bounds
from archwright.compression.finetuning import (
    extract_trainable,
    original_teacher,
    plan_steps,
    seconds_per_step,
    training_options,
)
from archwright.compression.order import sample_batches
from archwright.compression.ray_calibration import Wanted, measures_on_ray, repair_on_ray
from archwright.compression.space import CANDIDATES, open_space, write_candidates
from archwright.data.batching import Batch
from archwright.logs import logger
from archwright.networks.load import freeze_embeddings, load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.costs import COSTS
from archwright.progress import Bar, progress
from archwright.random_streams import STAND_ALONE_BATCHES
from archwright.spaces.subnetwork import ChainSpace
from archwright.subnet.chain import SMALLEST
from archwright.subnet.importance import ImportanceOrder, reorder
from archwright.subnet.pruning import REPAIRS
from archwright.subnet.pruning.streams import StreamRecording, record_streams
from archwright.subnet.spec import LayerSpec, SubnetSpec
from archwright.subnet.supernet import plain_update
from archwright.tasks import TASK_KINDS
from archwright.training.loop import Update, train_network
from archwright.training.schedule import Schedule
from archwright.training.task_data import save_network

PRUNED = (("original", 80), ("repaired", 40), ("original", 60), ("repaired", 20))
"""Pruned without training, the most useful first: of which network, and the percent of the cost that is left."""
PRUNED_DECODERS = (
    *(("repaired", 50), ("repaired", 80), ("original", 80), ("repaired", 90)),
    *(("repaired", 65), ("original", 50), ("repaired", 35), ("repaired", 20)),
)
"""The same for language models, whose sub-networks repair helps most."""
FEWEST_EPOCHS = 1.0
"""Passes over the training rows below which a network that is trained by itself is no fair candidate."""


def prepare_candidates(context: RunContext, order: ImportanceOrder) -> None:
    """Puts the networks into the run folder and notes what each of them keeps; what exists is not made again."""
    group = context.group
    if group.agree(context.run.note(CANDIDATES) is not None):
        return
    original, supernet = (
        load_saved_network(folder).to(context.task_data.device) for folder in (context.start, context.run.supernet)
    )
    reorder(original, order)
    with group.first_ahead():
        space = open_space(context, supernet, order)
    assert isinstance(space, ChainSpace)
    minutes, shares = context.config.search.minutes, TASK_KINDS[context.task_data.task.kind].shares
    deadline = None if minutes is None else monotonic() + 60 * shares.candidates * minutes
    trained = trained_specs(context, space)
    pruned = PRUNED_DECODERS if context.task_data.task.kind == "lm" else PRUNED
    with context.run.phase("candidates"), progress("candidates", len(pruned) + len(trained), "networks") as bar:
        networks = {"original": original, "repaired": supernet}
        specs = prune(context, space, networks, deadline, bar) if group.first else {}
        for source, spec in trained.items():
            if train_alone(context, original, source, spec, deadline):
                specs[source] = spec
            bar.advance()
    if group.first:
        write_candidates(context, specs)


def prune(
    context: RunContext, space: ChainSpace, networks: Mapping[str, PrunedNetwork], deadline: float | None, bar: Bar
) -> dict[str, SubnetSpec]:
    """Members of the chain with the weights of these networks, repaired in closed form, as many as time permits."""
    pruned = PRUNED_DECODERS if context.task_data.task.kind == "lm" else PRUNED
    folder, fits = context.run.networks, parameter_budget(context, space)
    chosen = {f"{name}-{share}": (name, space.chain.spec(share / 100)) for name, share in pruned}
    chosen = {source: (name, spec) for source, (name, spec) in chosen.items() if fits(spec)}
    missing = {source: part for source, part in chosen.items() if not (folder / source).exists()}
    bar.advance(len(pruned) - len(missing))
    repair = repair_on_ray if measures_on_ray(context) else repair_here
    for source, network in repair(context, networks, missing, sample_batches(context), deadline):
        save_network(network, context.task_data, folder / source)
        bar.advance()
    return {source: spec for source, (_, spec) in chosen.items() if (folder / source).exists()}


def repair_here(
    context: RunContext,
    networks: Mapping[str, PrunedNetwork],
    wanted: Wanted,
    batches: list[Batch],
    deadline: float | None,
) -> Iterator[tuple[str, PrunedNetwork]]:
    """The candidates one after another, until time is up."""
    recordings: dict[str, StreamRecording] = {}
    for source, (name, spec) in wanted.items():
        if deadline is not None and monotonic() > deadline:
            logger.info("no time for the candidate %s and those after it", source)
            return
        if name not in recordings:
            recordings[name] = record_streams(networks[name], batches)
        yield source, REPAIRS[context.config.supernet.repair](networks[name], spec, recordings[name])


def trained_specs(context: RunContext, space: ChainSpace) -> dict[str, SubnetSpec]:
    """What is trained by itself: what a budget of parameters has room for, and the first half of the layers."""
    full, fits = space.anatomy.full, parameter_budget(context, space)
    specs: dict[str, SubnetSpec] = {}
    if not fits(full):
        members = ((share, space.chain.spec(share / 100)) for share in range(99, round(100 * SMALLEST) - 1, -1))
        specs |= {f"budget-{share}": spec for share, spec in islice((each for each in members if fits(each[1])), 1)}
    half = len(full) // 2
    first = (*full[:half], *[LayerSpec(0, 0)] * (len(full) - half))
    return {**specs, f"first-{half}-layers": first} if half and fits(first) else specs


def parameter_budget(context: RunContext, space: ChainSpace) -> Callable[[SubnetSpec], bool]:
    """Whether a sub-network is within --params and --total-params; nothing else can be on the front."""
    checkpoint = checkpoint_anatomy(context.task_data, context.config.model)
    bounds = params_bounds(context.config.budget, space, checkpoint)
    return lambda spec: all(COSTS[name].measure(space.anatomy, spec, length=1) <= most for name, most in bounds.items())


def train_alone(
    context: RunContext, original: PrunedNetwork, source: str, spec: SubnetSpec, deadline: float | None
) -> bool:
    """Trains this part of the original by itself with the original as teacher; False if there is no time."""
    folder, options, group = context.run.networks / source, context.config.supernet, context.group
    network = extract_trainable(original, spec)
    freeze_embeddings(network, not options.train_embeddings)
    update = plain_update(network, loss=context.loss, teacher=original_teacher(context))
    steps_per_epoch = context.task_data.steps_per_epoch(options.batch_size)
    steps = plan_steps(context, source, lambda: affordable_steps(context, network, update, deadline))
    if deadline is not None and steps < FEWEST_EPOCHS * steps_per_epoch:
        logger.info("no time for the candidate %s: %d steps, an epoch has %d", source, steps, steps_per_epoch)
        return False
    if not group.agree(folder.exists()):
        train_network(
            network,
            context.task_data.training(options.batch_size, stream=STAND_ALONE_BATCHES),
            update,
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
    return True


def affordable_steps(context: RunContext, network: PrunedNetwork, update: Update, deadline: float | None) -> int:
    """Steps of --epochs, or as many as end before the deadline."""
    options = context.config.supernet
    usual = round(context.task_data.steps_per_epoch(options.batch_size) * options.epochs)
    if deadline is None:
        return usual
    if context.group.agree(monotonic() > deadline):
        return 0
    step = seconds_per_step(network, update, context.task_data, options, context.group)
    return max(0, min(usual, int((deadline - monotonic()) / step)))
