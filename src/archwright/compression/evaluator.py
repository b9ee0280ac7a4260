"""Error and cost of a sub-network: what a search minimizes, and what it must stay within."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from optuna.study import Study

from archwright.compression.context import RunContext
from archwright.compression.weights import WeightSource
from archwright.configs import compress as o
from archwright.configs.budget import parse_budget
from archwright.data.batching import Batch
from archwright.errors import BadInput
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.costs import COSTS
from archwright.objectives.table import LatencyTable
from archwright.search import SAMPLERS, Candidate, Choices, Config, Constraint, Objective, largest, middle, smallest
from archwright.spaces.subnetwork import SubnetSpace, TrainedSpace
from archwright.store import open_study
from archwright.subnet.extract import extract
from archwright.subnet.spec import SubnetSpec, nonembedding_parameters

ERROR, LATENCY = "validation_error", "latency_ms"
CORNERS: dict[str, Callable[[Choices], Config]] = {"largest": largest, "smallest": smallest, "middle": middle}
LIST_SAMPLER = "random"
"""For methods that list their configs: it tries those first, and there is nothing after that."""
TABLE_ROUNDS = 20


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

    def open_study(self) -> Study:
        """The run's study with the sampler of the config, which tries the corners of the space first."""
        options, first, sampler = self.context.config.search, self.configs, LIST_SAMPLER
        if first is None:
            sampler, first = options.sampler, tuple(CORNERS[name](self.space.choices) for name in options.corners)
        return open_study(
            self.context.run,
            options.store,
            sampler=SAMPLERS[sampler](self.space.choices, seed=self.context.seed, first=first),
            directions=["minimize"] * len({ERROR, *options.objectives}),
        )

    def error(self, config: Config, rows: list[Batch]) -> float:
        """1 - the task's metric (or the perplexity) of this sub-network."""
        network, spec = self.weights.locate(config)
        return self.context.task_data.error(network, rows, spec)

    def cost(self, name: str, spec: SubnetSpec) -> float:
        """One of COSTS, counted without building the sub-network."""
        return COSTS[name].measure(self.space.anatomy, spec, length=self.context.length)

    def share(self, spec: SubnetSpec) -> float:
        """Of the non-embedding parameters of the whole network."""
        whole = self.space.anatomy
        return nonembedding_parameters(whole, spec) / nonembedding_parameters(whole, whole.full)

    def extract(self, config: Config) -> PrunedNetwork:
        """The sub-network as a network of its own, for inference."""
        network, spec = self.weights.locate(config)
        return (network if spec is None else extract(network, spec)).eval()

    def objectives(self, table: LatencyTable | None) -> list[Objective]:
        """The validation error first, then the costs in the order of the config."""
        names = [name for name in self.context.config.search.objectives if name != ERROR]
        return [
            Objective(ERROR, lambda candidate: self.error(candidate.config, self.context.task_data.validation)),
            *(Objective(name, self._measure(name, table)) for name in names),
        ]

    def constraints(self, table: LatencyTable | None) -> list[Constraint]:
        """Cheap before dear: counted parameters, then predicted latency."""
        budget, constraints = self.context.config.budget, []
        if bound := params_bound(budget, self.space):
            name, most = bound
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
        if not self.needs_latency_table:
            return None
        noted = self.context.run.note("latency_table")
        if noted is None:
            table = LatencyTable.measure(
                self.network, batch=1, length=self.context.length, rounds=TABLE_ROUNDS, seed=self.context.seed
            )
            noted = self.context.run.note_once("latency_table", table.to_json())
        return LatencyTable.from_json(noted)


def params_bound(budget: o.BudgetOptions, space: SubnetSpace | TrainedSpace) -> tuple[str, float] | None:
    """Name of the counted cost and its largest allowed value; BadInput when no sub-network is that small."""
    if budget.params is None:
        return None
    name = "parameters" if budget.total_params else "nonembedding_parameters"
    count = partial(COSTS[name].measure, space.anatomy, length=1)
    most = parse_budget(budget.params, count(space.anatomy.full), option="--params")
    least = count(space.build(smallest(space.choices)))
    if most < least:
        raise BadInput(
            f"--params must be at least {least:,.0f} {name} ({least / count(space.anatomy.full):.1%} of the original), "
            f"the smallest sub-network there is, got {budget.params} = {most:,.0f}."
        )
    return name, most


def check_latency(most: float, least: float) -> None:
    """BadInput when not even the smallest sub-network is that fast."""
    if most < least:
        raise BadInput(f"--latency-ms must be at least {least:.2f}, as for the smallest one, got {most:g}.")
