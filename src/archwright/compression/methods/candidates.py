"""Candidates before a search along the chain, in the same study as everything else.

Members of the chain are cut from the original and repaired in closed form, which takes seconds, and then distilled:
each is trained by itself towards the original's answers. For the few sizes that users ask for this is worth more than
weights that all sizes share. Beside them stand cuts of the super-network and the first half of the layers. Each is a
network in the run folder. With --minutes all have a part of the time.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
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
from archwright.spaces.subnetwork import DISTILLED, ChainSpace
from archwright.subnet.chain import SMALLEST
from archwright.subnet.importance import ImportanceOrder, reorder
from archwright.subnet.pruning import REPAIRS
from archwright.subnet.pruning.streams import StreamRecording, record_streams
from archwright.subnet.spec import LayerSpec, SubnetSpec
from archwright.subnet.supernet import plain_update
from archwright.tasks import TASK_KINDS
from archwright.training.loop import train_network
from archwright.training.schedule import Schedule
from archwright.training.task_data import save_network

DISTILLED_SHARES = (50, 30, 20, 40, 60)
"""Percent of the cost of the members of the chain that are trained by themselves, the most useful first."""
PRUNED = (("original", 80), ("repaired", 40), ("original", 60), ("repaired", 20))
"""Pruned without training, beside what is distilled: of which network, and the percent of the cost that is left."""
PRUNED_DECODERS = (
    *(("repaired", 50), ("repaired", 80), ("original", 80), ("repaired", 90)),
    *(("repaired", 65), ("original", 50), ("repaired", 35), ("repaired", 20)),
)
"""The same for language models, whose sub-networks repair helps most."""
FEWEST_EPOCHS = 1.0
"""Passes over the training rows below which a network that is trained by itself is no fair candidate."""
APART = 5
"""Percent of the cost by which a size differs from a budget to be worth a training beside that of the budget."""


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
    distilled, pruned, dropped = distilled_shares(context, space), pruned_shares(context, space), half_depth(space)
    with context.run.phase("candidates"), progress("candidates", len(pruned) + len(distilled) + 1, "networks") as bar:
        with group.first_ahead():  # the others train what the first one has repaired
            networks = {"original": original, "repaired": supernet}
            specs = prune(context, space, networks, deadline, bar) if group.first else {}
        alone = distil(context, space, distilled, deadline, bar)
        begun = {source.replace(DISTILLED, "original") for source in alone}  # what these were before is no candidate
        specs = {**alone, **{source: spec for source, spec in specs.items() if source not in begun}}
        for source, spec in dropped.items():
            if parameter_budget(context, space)(spec) and drop_layers(context, original, source, spec, deadline):
                specs[source] = spec
            bar.advance()
    if group.first:
        write_candidates(context, specs)
        for source in begun:
            shutil.rmtree(context.run.networks / source, ignore_errors=True)


def distilled_shares(context: RunContext, space: ChainSpace) -> list[int]:
    """Percent of the cost of what is distilled: what a budget of parameters has room for, and smaller ones."""
    if not distil_epochs(context):
        return []
    fits = parameter_budget(context, space)
    shares = range(100, round(100 * SMALLEST) - 1, -1)
    most = next((share for share in shares if fits(space.chain.spec(share / 100))), None)
    if most is None or most > max(DISTILLED_SHARES):
        return [] if most is None else list(DISTILLED_SHARES)
    return [most, *(share for share in DISTILLED_SHARES if share <= most - APART)]


def distil_epochs(context: RunContext) -> float:
    """Passes over the training rows: those of --distil-epochs, or what suits the task."""
    epochs = context.config.supernet.distil_epochs
    return TASK_KINDS[context.task_data.task.kind].distil_epochs if epochs is None else epochs


def pruned_shares(context: RunContext, space: ChainSpace) -> list[tuple[str, int]]:
    """Which networks are cut to which percent of the cost, the most useful first; all that are distilled among them."""
    usual = PRUNED_DECODERS if context.task_data.task.kind == "lm" else PRUNED
    starts = [("original", share) for share in distilled_shares(context, space)]
    fits = parameter_budget(context, space)
    return list(dict.fromkeys((*starts, *(cut for cut in usual if fits(space.chain.spec(cut[1] / 100))))))


def prune(
    context: RunContext, space: ChainSpace, networks: Mapping[str, PrunedNetwork], deadline: float | None, bar: Bar
) -> dict[str, SubnetSpec]:
    """Members of the chain with the weights of these networks, repaired in closed form, as many as time permits."""
    folder = context.run.networks
    cuts = pruned_shares(context, space)
    chosen = {f"{name}-{share}": (name, space.chain.spec(share / 100)) for name, share in cuts}
    missing = {source: part for source, part in chosen.items() if not (folder / source).exists()}
    bar.advance(len(chosen) - len(missing))
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


def half_depth(space: ChainSpace) -> dict[str, SubnetSpec]:
    """The first half of the layers, by source; nothing of a network with one layer."""
    full = space.anatomy.full
    half = len(full) // 2
    return {f"first-{half}-layers": (*full[:half], *[LayerSpec(0, 0)] * (len(full) - half))} if half else {}


def parameter_budget(context: RunContext, space: ChainSpace) -> Callable[[SubnetSpec], bool]:
    """Whether a sub-network is within --params and --total-params; nothing else can be on the front."""
    checkpoint = checkpoint_anatomy(context.task_data, context.config.model)
    bounds = params_bounds(context.config.budget, space, checkpoint)
    return lambda spec: all(COSTS[name].measure(space.anatomy, spec, length=1) <= most for name, most in bounds.items())


def distil(
    context: RunContext, space: ChainSpace, shares: list[int], deadline: float | None, bar: Bar
) -> dict[str, SubnetSpec]:
    """Repaired cuts of the original, each trained by itself towards the original's answers, as many as time permits."""
    ready = [share for share in shares if context.group.agree((context.run.networks / f"original-{share}").exists())]
    steps, specs = plan_distillation(context, ready, deadline), dict[str, SubnetSpec]()
    for share in ready:
        source = f"{DISTILLED}-{share}"
        if steps[source]:
            network = load_repaired(context, share)
            train_alone(context, network, source, steps[source])
            specs[source] = space.chain.spec(share / 100)
        bar.advance()
    bar.advance(len(shares) - len(ready))
    return specs


def load_repaired(context: RunContext, share: int) -> PrunedNetwork:
    """The cut of the original with this percent of the cost, ready to be trained."""
    network = load_saved_network(context.run.networks / f"original-{share}").to(context.task_data.device)
    freeze_embeddings(network, not context.config.supernet.train_embeddings)
    return network


def plan_distillation(context: RunContext, shares: list[int], deadline: float | None) -> dict[str, int]:
    """Steps of every training by source; 0 for those without time. Counted once per run.

    A step takes its network's share of the cost, so that timing one tells the others.
    """
    run, group, sources = context.run, context.group, [f"{DISTILLED}-{share}" for share in shares]
    plan = run.note("plan") or {}
    noted = group.agree({source: plan[source] for source in sources if source in plan})
    if not shares or len(noted) == len(sources):
        return {source: int(noted[source]) for source in sources}
    per_epoch = context.task_data.steps_per_epoch(context.config.supernet.batch_size)
    epochs = dict.fromkeys(shares, distil_epochs(context))
    if deadline is not None:
        network = load_repaired(context, shares[0])
        update = plain_update(network, loss=context.loss, teacher=original_teacher(context))
        step = seconds_per_step(network, update, context.task_data, context.config.supernet, group)
        seconds = group.agree(deadline - monotonic())
        epochs = deal_time(epochs, seconds, {share: per_epoch * step * share / shares[0] for share in shares})
        left_out = [f"{share} %" for share, part in epochs.items() if not part]
        if left_out:
            logger.warning("no time to train networks of %s by themselves; raise --minutes", ", ".join(left_out))
    counts = {share: max(1, round(part * per_epoch)) if part else 0 for share, part in epochs.items()}
    steps = group.agree({f"{DISTILLED}-{share}": count for share, count in counts.items()})
    run.note("plan", {**plan, **steps})
    return steps


def deal_time(epochs: Mapping[int, float], seconds: float, per_epoch: Mapping[int, float]) -> dict[int, float]:
    """Epochs by share: equal time for all, at most as many epochs as given.

    Small networks, which need their training most, so have the most epochs, and what they do not need goes to larger
    ones. While one has fewer than FEWEST_EPOCHS, the last, which is the least useful, is left out.
    """
    chosen = list(epochs)
    while chosen:
        dealt, left = dict.fromkeys(epochs, 0.0), seconds
        for n, share in enumerate(sorted(chosen)):
            taken = min(epochs[share] * per_epoch[share], left / (len(chosen) - n))
            dealt[share], left = taken / per_epoch[share], left - taken
        if all(dealt[share] >= min(FEWEST_EPOCHS, epochs[share]) for share in chosen):
            return dealt
        chosen.pop()
    return dict.fromkeys(epochs, 0.0)


def drop_layers(
    context: RunContext, original: PrunedNetwork, source: str, spec: SubnetSpec, deadline: float | None
) -> bool:
    """Trains these layers of the original by themselves with the original as teacher; False if there is no time."""
    options = context.config.supernet
    network = extract_trainable(original, spec)
    freeze_embeddings(network, not options.train_embeddings)
    steps_per_epoch = context.task_data.steps_per_epoch(options.batch_size)
    steps = plan_steps(context, source, lambda: affordable_steps(context, network, deadline))
    if deadline is not None and steps < FEWEST_EPOCHS * steps_per_epoch:
        logger.info("no time for the candidate %s: %d steps, an epoch has %d", source, steps, steps_per_epoch)
        return False
    train_alone(context, network, source, steps)
    return True


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


def affordable_steps(context: RunContext, network: PrunedNetwork, deadline: float | None) -> int:
    """Steps of --epochs, or as many as end before the deadline."""
    options = context.config.supernet
    usual = round(context.task_data.steps_per_epoch(options.batch_size) * options.epochs)
    if deadline is None:
        return usual
    if context.group.agree(monotonic() > deadline):
        return 0
    update = plain_update(network, loss=context.loss, teacher=original_teacher(context))
    step = seconds_per_step(network, update, context.task_data, options, context.group)
    return max(0, min(usual, int((deadline - monotonic()) / step)))
