"""The sub-networks that a run may choose from, and what they cost."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from archwright.compression.budgets.targets import TARGETS
from archwright.compression.context import RunContext
from archwright.networks.load import max_length_of
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.costs import COSTS
from archwright.objectives.generation import MIDDLE, measure_generation
from archwright.objectives.latency import measure_latency
from archwright.objectives.table import LatencyTable
from archwright.spaces.subnetwork import ChainSpace, SubnetSpace, subnet_space
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.chain import Chain, CostTable, count_costs
from archwright.subnet.importance import ImportanceOrder
from archwright.subnet.spec import Anatomy, LayerSpec, SubnetSpec

ERROR, LATENCY, GENERATION = "validation_error", "latency_ms", "generation_ms"
TABLE_ROUNDS = 20
TRACED_DEPTH = 2
"""Layers of the networks of a table where each takes seconds to export."""
CANDIDATES = "candidates"
"""The note in a run folder about networks with weights of their own, by source."""


def open_space(context: RunContext, network: PrunedNetwork, order: ImportanceOrder | None = None) -> SubnetSpace:
    """The sub-networks of this network; without an order its layers go from the top."""
    name, anatomy = context.config.supernet.space or "small", read_anatomy(network.config)
    space = subnet_space(name, anatomy, order.layers if order else None)
    if order is None or not isinstance(space, ChainSpace):
        return space
    scores = [tuple(np.array(row, dtype=float) for row in rows) for rows in (order.head_scores, order.unit_scores)]
    chain = Chain(scores[0], scores[1], order.layers, chain_costs(context, network, anatomy))
    return subnet_space(name, anatomy, order.layers, chain=chain, candidates=read_candidates(context))


def chain_costs(context: RunContext, network: PrunedNetwork, anatomy: Anatomy) -> CostTable:
    """What heads and units cost in the first cost of --objectives.

    Shares of the parameters and of the latency are those of the whole network, as a budget is. Of other costs they
    leave out what cannot be pruned, which for the output of a language model would be most of the small ones.
    """
    name = next(name for name in context.config.search.objectives if name != ERROR)
    if name in (LATENCY, GENERATION):
        table = (read_latency_table if name == LATENCY else read_generation_table)(context, network)
        heads, units = zip(*(table.curves(place) for place in range(anatomy.layers)), strict=True)
        return CostTable(heads, units, fixed=table.base)
    if (
        name not in COSTS or name == "parameters"
    ):  # of what can be pruned; generation is timed, and has no table of blocks
        name = "nonembedding_parameters"
    measure = partial(COSTS[name].measure, anatomy, length=context.length)
    return count_costs(anatomy, measure, fixed=name == "nonembedding_parameters")


def read_latency_table(context: RunContext, network: PrunedNetwork) -> LatencyTable:
    """Measured once per run, on the machine that began it, in the runtime that the run is for."""
    noted = context.run.note("latency_table")
    if noted is None:
        target = TARGETS[context.config.search.for_]
        table = LatencyTable.measure(
            network,
            batch=1,
            length=context.length,
            rounds=TABLE_ROUNDS,
            seed=context.seed,
            timer=partial(measure_latency, prepare=target.prepare, device=context.latency_device),
            depth=None if target.prepare is None else TRACED_DEPTH,
        )
        noted = context.run.note_once("latency_table", table.to_json())
    return LatencyTable.from_json(noted)


def read_generation_table(context: RunContext, network: PrunedNetwork) -> LatencyTable:
    """The same for one more token of a text, with cached keys and values."""
    noted = context.run.note("generation_table")
    if noted is None:
        length = min(MIDDLE, max_length_of(network) - 1)
        options = {"batch": 1, "length": length, "rounds": TABLE_ROUNDS, "seed": context.seed}
        timer = partial(measure_generation, device=context.latency_device)
        table = LatencyTable.measure(network, **options, timer=timer)
        noted = context.run.note_once("generation_table", table.to_json())
    return LatencyTable.from_json(noted)


def write_candidates(context: RunContext, candidates: Mapping[str, SubnetSpec]) -> None:
    """Before the search begins: afterwards their number is fixed."""
    context.run.note(CANDIDATES, {source: [list(part) for part in spec] for source, spec in candidates.items()})


def read_candidates(context: RunContext) -> dict[str, SubnetSpec]:
    noted = context.run.note(CANDIDATES) or {}
    return {source: tuple(LayerSpec(*part) for part in spec) for source, spec in noted.items()}
