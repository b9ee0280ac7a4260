"""Error and cost of a sub-network: what a search minimizes, and what it must stay within."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

from archwright.compression.checkpoint_size import checkpoint_anatomy
from archwright.compression.context import RunContext
from archwright.compression.space import ERROR, GENERATION, LATENCY, read_generation_table, read_latency_table
from archwright.compression.weights import WeightSource, is_whole
from archwright.configs import compress as o
from archwright.configs.budget import parse_budget
from archwright.data.batching import Batch
from archwright.errors import BadInput, NothingFits
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.costs import COSTS
from archwright.objectives.table import LatencyTable
from archwright.search import SAMPLERS, Candidate, Choices, Config, Constraint, Objective, largest, middle, smallest
from archwright.spaces.subnetwork import ChainSpace, SubnetSpace, TrainedSpace, is_distilled
from archwright.store import open_study
from archwright.subnet.extract import extract
from archwright.subnet.spec import Anatomy, SubnetSpec, nonembedding_parameters, sizes
from archwright.training.precision import mixed_precision

LAYERS = "nonembedding_parameters"
CORNERS: dict[str, Callable[[Choices], Config]] = {"largest": largest, "smallest": smallest, "middle": middle}
LIST_SAMPLER = "random"
"""For methods that list their configs: it tries those first, and there is nothing after that."""
SEARCH_PRECISION = "search_precision"
"""Note of a run: the precision in which the search evaluates; earlier versions noted none and took float32."""
KEPT = "kept"
"""User attribute of a told trial: its share of the non-embedding parameters, and heads and units by layer."""
SCALED = "scaled_error"
"""Note of a run whose study holds scaled errors; runs of earlier versions hold perplexities as they are."""


@dataclass(frozen=True)
class SubnetEvaluator:
    """Measures the sub-networks of a run. Rebuilt from the run folder, so that other processes can join."""

    context: RunContext
    network: PrunedNetwork
    """The whole network, for sizes and latency; whose weights count is for `weights` to say."""
    space: SubnetSpace | TrainedSpace
    weights: WeightSource
    configs: tuple[Config, ...] | None = None
    """All configs to evaluate, of a method that lists them itself; None: a sampler looks for --trials of them."""

    @property
    def trials(self) -> int:
        return self.context.config.search.trials if self.configs is None else len(self.configs)

    @property
    def least_trials(self) -> int:
        """Trials that are made even when time is up: one smaller network (the whole one costs none), and whatever was
        trained by itself before the search."""
        first = self.first_configs
        smaller = 2 if first and is_whole(self.space, first[0]) else 1
        return min(self.trials, max([smaller, *(n for n, config in enumerate(first, 1) if is_distilled(config))]))

    @property
    def first_configs(self) -> tuple[Config, ...]:
        """What is tried before the sampler proposes anything: corners of the space, on the chain also candidates and
        every tenth of the size; or all that the method has listed."""
        if self.configs is not None:
            return tuple(self.configs)
        options = self.context.config.search
        corners = tuple(CORNERS[name](self.space.choices) for name in options.corners)
        hurried = options.minutes is not None
        starts = tuple(self.space.starts(hurried=hurried)) if isinstance(self.space, ChainSpace) else ()
        # Time may end the search after a few trials: what is known to be good comes before corners but the whole.
        return (*corners[:1], *starts, *corners[1:]) if hurried else corners + starts

    def open_study(self) -> Study:
        """The run's study with the sampler of the config, which tries the corners of the space first."""
        options, first = self.context.config.search, self.first_configs
        sampler = options.sampler if self.configs is None else LIST_SAMPLER
        study = open_study(
            self.context.run,
            options.store,
            sampler=SAMPLERS[sampler](self.space.choices, seed=self.context.seed, first=first),
            directions=["minimize"] * len({ERROR, *options.objectives}),
        )
        if not study.get_trials(deepcopy=False):
            self.context.run.note_once(SCALED, {"scaled": True})
            self.context.run.note_once(SEARCH_PRECISION, {"precision": self.context.config.supernet.precision})
        return study

    def error(self, config: Config, rows: list[Batch]) -> float:
        """1 - the task's metric (or the perplexity) of this sub-network."""
        network, spec = self.weights.locate(config)
        return self.context.task_data.error(network, rows, spec)

    def search_error(self, config: Config) -> float:
        """The error on the rows that search, in the precision of the trainings: twice as fast where that is bfloat16.

        It only chooses what is scored again; re-scoring and testing are done in float32, as an export answers.
        """
        noted = self.context.run.note(SEARCH_PRECISION) or {"precision": "float32"}
        network, spec = self.weights.locate(config)  # which may train it, in a precision of its own
        with mixed_precision(self.context.task_data.device, noted["precision"]):
            return self.context.task_data.error(network, self.context.search_rows, spec)

    def objective_value(self, error: float) -> float:
        """The error as the sampler sees it: scaled, because perplexities of up to 1e43 would drown all others."""
        return self.context.task_data.scale_error(error) if self.context.run.note(SCALED) else error

    def trial_error(self, trial: FrozenTrial) -> float:
        """The validation error of a told trial as users know it: 1 - the task's metric, or the perplexity."""
        value = trial.values[0]
        return self.context.task_data.unscale_error(value) if self.context.run.note(SCALED) else value

    def cost(self, name: str, spec: SubnetSpec) -> float:
        """One of COSTS, counted without building the sub-network, or milliseconds per token from their table."""
        if name == GENERATION:
            return read_generation_table(self.context, self.network).predict(spec)
        return COSTS[name].measure(self.space.anatomy, spec, length=self.context.length)

    @cached_property
    def whole_layers(self) -> int:
        """Non-embedding parameters of the untouched checkpoint."""
        whole = checkpoint_anatomy(self.context.task_data, self.context.config.model)
        return nonembedding_parameters(whole, whole.full)

    def share(self, spec: SubnetSpec) -> float:
        """Of the non-embedding parameters of the whole network, as the checkpoint has it."""
        return nonembedding_parameters(self.space.anatomy, spec) / self.whole_layers

    def describe(self, candidate: Candidate) -> dict[str, Any]:
        """What who watches a running search sees of a trial: its share, and heads and units kept by layer."""
        return {KEPT: {"share": self.share(candidate.built), "layers": sizes(candidate.built)}}

    def extract(self, config: Config) -> PrunedNetwork:
        """The sub-network as a network of its own, for inference."""
        network, spec = self.weights.locate(config)
        return (network if spec is None else extract(network, spec)).eval()

    def objectives(self, table: LatencyTable | None) -> list[Objective]:
        """The validation error first, then the costs in the order of the config."""
        names = [name for name in self.context.config.search.objectives if name != ERROR]
        return [
            Objective(ERROR, lambda candidate: self.objective_value(self.search_error(candidate.config))),
            *(Objective(name, self._measure(name, table)) for name in names),
        ]

    def constraints(self, table: LatencyTable | None) -> list[Constraint]:
        """Cheap before dear: counted parameters, then predicted latency."""
        budget, constraints = self.context.config.budget, []
        checkpoint = checkpoint_anatomy(self.context.task_data, self.context.config.model)
        for name, most in params_bounds(budget, self.space, checkpoint).items():
            constraints.append(Constraint(name, self._measure(name, table), most))
        if budget.latency_ms is not None and table is not None:
            check_latency(budget.latency_ms, table.predict(self.space.build(smallest(self.space.choices))))
            constraints.append(Constraint(LATENCY, self._measure(LATENCY, table), budget.latency_ms))
        return constraints

    def _measure(self, name: str, table: LatencyTable | None) -> Callable[[Candidate], float]:
        if name == LATENCY and table is not None:
            return lambda candidate: table.predict(candidate.built)
        return lambda candidate: self.cost(name, candidate.built)

    @property
    def needs_latency_table(self) -> bool:
        return LATENCY in self.context.config.search.objectives or self.context.config.budget.latency_ms is not None

    def latency_table(self) -> LatencyTable | None:
        """Measured once per run; None unless latency is an objective or a constraint."""
        return read_latency_table(self.context, self.network) if self.needs_latency_table else None


def params_bounds(budget: o.BudgetOptions, space: SubnetSpace | TrainedSpace, checkpoint: Anatomy) -> dict[str, float]:
    """Counted costs and their largest allowed values; NothingFits when no sub-network is that small.

    Percentages are of the untouched checkpoint.
    """
    amounts: list[tuple[str, str, str | float]] = []  # option, what it counts, its value
    if budget.params is not None:
        amounts.append(("--params", "parameters" if budget.total_params is True else LAYERS, budget.params))
    if not isinstance(budget.total_params, bool):
        amounts.append(("--total-params", "parameters", budget.total_params))
    bounds: dict[str, float] = {}
    for option, name, value in amounts:
        whole = COSTS[name].measure(checkpoint, checkpoint.full, length=1)
        most = parse_budget(value, whole, option=option)
        least = COSTS[name].measure(space.anatomy, space.build(smallest(space.choices)), length=1)
        if most < least:
            hint = "" if name == LAYERS else f"; {smaller_embeddings(space.anatomy, checkpoint)}"
            raise NothingFits(
                f"{option} must be at least {least:,.0f} {name} ({least / whole:.1%} of the original), "
                f"the smallest sub-network there is, got {value} = {most:,.0f}{hint}."
            )
        bounds[name] = min(most, bounds.get(name, most))
    return bounds


def smaller_embeddings(anatomy: Anatomy, checkpoint: Anatomy) -> str:
    """What a user can do whose budget the embeddings do not fit into."""
    share = f"{anatomy.embeddings:,} of them are embeddings"
    if anatomy.embeddings == checkpoint.embeddings:
        return f"{share}: add --vocabulary task, and --embedding-rank for a narrow table"
    return f"{share}: take a smaller --vocabulary or --embedding-rank"


def check_latency(most: float, least: float) -> None:
    """BadInput when not even the smallest sub-network is that fast."""
    if most < least:
        raise BadInput(f"--latency-ms must be at least {least:.2f}, as for the smallest one, got {most:g}.")
