"""Candidates before a search along the chain, in the same study as everything else.

Members of the chain are cut from the original and repaired in closed form, which takes seconds, and then distilled:
each is trained by itself towards the original's answers. For the few sizes that users ask for this is worth more than
weights that all sizes share. Beside them stand cuts of the super-network and the first half of the layers. Each is a
network in the run folder. With --minutes all have a part of the time.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from archwright.compression.budgets.minutes import candidates_deadline
from archwright.compression.checkpoint_size import checkpoint_anatomy
from archwright.compression.context import RunContext
from archwright.compression.evaluator import params_bounds
from archwright.compression.finetuning import (
    extract_trainable,
    original_teacher,
    plan_steps,
    seconds_per_step,
)
from archwright.compression.methods.distillation import FEWEST_EPOCHS, distil, distil_epochs, train_alone
from archwright.compression.order import sample_batches
from archwright.compression.ray_calibration import Wanted, measures_on_ray, repair_on_ray
from archwright.compression.space import CANDIDATES, open_space, write_candidates
from archwright.data.batching import Batch
from archwright.logs import logger
from archwright.networks.load import freeze_embeddings, load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.costs import COSTS
from archwright.progress import Bar, progress
from archwright.spaces.subnetwork import DISTILLED, ChainSpace
from archwright.subnet.chain import SMALLEST
from archwright.subnet.importance import ImportanceOrder, reorder
from archwright.subnet.pruning import REPAIRS
from archwright.subnet.pruning.streams import StreamRecording, record_streams
from archwright.subnet.spec import LayerSpec, SubnetSpec
from archwright.subnet.supernet import plain_update
from archwright.training.task_data import save_network

DISTILLED_SHARES = (50, 30, 20, 10, 40, 60)
"""Percent of the cost of the members of the chain that are trained by themselves, the most useful first."""
PRUNED = (("original", 80), ("repaired", 40), ("original", 60), ("repaired", 20))
"""Pruned without training, beside what is distilled: of which network, and the percent of the cost that is left."""
PRUNED_DECODERS = (
    *(("repaired", 50), ("repaired", 80), ("original", 80), ("repaired", 90)),
    *(("repaired", 65), ("original", 50), ("repaired", 35), ("repaired", 20)),
)
"""The same for language models, whose sub-networks repair helps most."""
APART = 5
"""Percent of the cost by which a size differs from a budget to be worth a training beside that of the budget."""


@dataclass(frozen=True)
class CandidatePlan:
    """What is made before the search, the most useful first."""

    pruned: list[tuple[str, int]]
    """Cut and repaired: of which network, and the percent of the cost that is left."""
    distilled: list[int]
    """Percent of the cost of those cuts of the original that are trained by themselves."""
    dropped: dict[str, SubnetSpec]
    """The first layers, trained by themselves."""

    def __len__(self) -> int:
        return len(self.pruned) + len(self.distilled) + len(self.dropped)


def plan_candidates(context: RunContext, space: ChainSpace) -> CandidatePlan:
    """What a budget of parameters has room for."""
    fits = parameter_budget(context, space)
    distilled = distilled_shares(lambda share: fits(space.chain.spec(share / 100))) if distil_epochs(context) else []
    usual = PRUNED_DECODERS if context.task_data.task.kind == "lm" else PRUNED
    room = [(name, share) for name, share in usual if fits(space.chain.spec(share / 100))]
    pruned = list(dict.fromkeys([*(("original", share) for share in distilled), *room]))
    return CandidatePlan(pruned, distilled, {source: spec for source, spec in half_depth(space).items() if fits(spec)})


def distilled_shares(fits: Callable[[int], bool]) -> list[int]:
    """Percent of the cost: the most that fits, and what of DISTILLED_SHARES is smaller; all of those if they fit."""
    most = next((share for share in range(100, round(100 * SMALLEST) - 1, -1) if fits(share)), None)
    if most is None or most > max(DISTILLED_SHARES):
        return [] if most is None else list(DISTILLED_SHARES)
    return [most, *(share for share in DISTILLED_SHARES if share <= most - APART)]


def parameter_budget(context: RunContext, space: ChainSpace) -> Callable[[SubnetSpec], bool]:
    """Whether a sub-network is within --params and --total-params; one that is not cannot be on the front.

    Of those that are, --latency-ms may still refuse some.
    """
    checkpoint = checkpoint_anatomy(context.task_data, context.config.model)
    bounds = params_bounds(context.config.budget, space, checkpoint)
    return lambda spec: all(COSTS[name].measure(space.anatomy, spec, length=1) <= most for name, most in bounds.items())


def half_depth(space: ChainSpace) -> dict[str, SubnetSpec]:
    """The first half of the layers, by source; nothing of a network with one layer."""
    full = space.anatomy.full
    half = len(full) // 2
    return {f"first-{half}-layers": (*full[:half], *[LayerSpec(0, 0)] * (len(full) - half))} if half else {}


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
    deadline, plan = candidates_deadline(context), plan_candidates(context, space)
    with context.run.phase("candidates"), progress("candidates", len(plan), "networks") as bar:
        with group.first_ahead():  # the others train what the first one has repaired
            networks = {"original": original, "repaired": supernet}
            specs = prune(context, space, networks, plan.pruned, deadline, bar) if group.first else {}
        trained = distil(context, plan.distilled, deadline, bar)
        begun = [f"original-{share}" for share in trained]  # what these were before is no candidate
        kept = {source: spec for source, spec in specs.items() if source not in begun}
        specs = {f"{DISTILLED}-{share}": space.chain.spec(share / 100) for share in trained} | kept
        for source, spec in plan.dropped.items():
            if drop_layers(context, original, source, spec, deadline):
                specs[source] = spec
            bar.advance()
    if group.first:
        write_candidates(context, specs)
        for source in begun:
            shutil.rmtree(context.run.networks / source, ignore_errors=True)


def prune(
    context: RunContext,
    space: ChainSpace,
    networks: Mapping[str, PrunedNetwork],
    cuts: Sequence[tuple[str, int]],
    deadline: float | None,
    bar: Bar,
) -> dict[str, SubnetSpec]:
    """Members of the chain with the weights of these networks, repaired in closed form, as many as time permits."""
    folder = context.run.networks
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


def drop_layers(
    context: RunContext, original: PrunedNetwork, source: str, spec: SubnetSpec, deadline: float | None
) -> bool:
    """Trains these layers of the original by themselves with the original as teacher; False if there is no time."""
    options = context.config.supernet
    network = extract_trainable(original, spec)
    freeze_embeddings(network, not options.train_embeddings)
    steps_per_epoch = context.task_data.steps_per_epoch(options.batch_size)
    steps = plan_steps(context, source, lambda: affordable_steps(context, network, deadline))
    if deadline is not None and steps < round(min(FEWEST_EPOCHS, options.epochs) * steps_per_epoch):
        logger.info("no time for the candidate %s: %d steps, an epoch has %d", source, steps, steps_per_epoch)
        return False
    train_alone(context, network, source, steps)
    return True


def affordable_steps(context: RunContext, network: PrunedNetwork, deadline: float | None) -> int:
    """Steps of --epochs, or as many as end before the deadline."""
    options = context.config.supernet
    usual = round(context.task_data.steps_per_epoch(options.batch_size) * options.epochs)
    if deadline is None:
        return usual
    if context.group.agree(monotonic() > deadline):
        return 0
    update = plain_update(network, loss=context.loss, teacher=original_teacher(context))
    step = seconds_per_step(context, network, update)
    return max(0, min(usual, int((deadline - monotonic()) / step)))
