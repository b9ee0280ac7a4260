"""The search of a run: what is measured, what is forbidden, and the workers that share the trials."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from optuna.trial import TrialState

from archwright.compression.context import RunContext, load_context
from archwright.compression.finetuning import TimeUp
from archwright.compression.methods import METHODS
from archwright.configs import compress as o
from archwright.configs.budget import parse_budget
from archwright.data.batching import Batch
from archwright.errors import BadInput, Failed
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.costs import COSTS, OBJECTIVES
from archwright.objectives.table import LatencyTable
from archwright.progress import Bar, progress
from archwright.search import (
    SAMPLERS,
    Candidate,
    Config,
    Limit,
    Objective,
    config_of,
    front,
    largest,
    middle,
    revive,
    search,
    smallest,
)
from archwright.spaces.subnetwork import SubnetSpace
from archwright.spaces.trained import TrainedSpace
from archwright.store import RunFolder, open_study
from archwright.subnet.spec import SubnetSpec
from archwright.training.task_data import TaskData

if TYPE_CHECKING:
    pass

ERROR, LATENCY = "validation_error", "latency_ms"
CORNERS: dict[str, Callable[[Any], Config]] = {"largest": largest, "smallest": smallest, "middle": middle}
LISTED = "random"
"""Sampler of methods that list their designs: it tries what it is given first, and there is nothing after that."""
TABLE_ROUNDS = 20
TOLD = (TrialState.COMPLETE, TrialState.PRUNED)
Search = Callable[..., None]
"""As `search`, with study, space, objectives and limits given: trials, deadline, told."""


Home = Callable[[Config], tuple[PrunedNetwork, SubnetSpec | None]]
"""Where a sub-network's weights are: the network it is a part of and what it keeps of it, or a network of its own."""


@dataclass(frozen=True)
class SubnetEvaluator:
    """What a search runs on."""

    context: RunContext
    network: PrunedNetwork
    """The whole network, for sizes and latency; whose weights count is for `home` to say."""
    space: SubnetSpace | TrainedSpace
    home: Home
    first: tuple[Config, ...]
    """Designs to try before all others."""
    trials: int
    supernet: bool = False
    """Whether all sub-networks share the weights of `network`."""
    tidy: Callable[[list[Config], list[Config]], None] | None = None
    """Given the designs told and those of them on the front: deletes weights that nobody will ask for."""

    @property
    def run(self) -> RunFolder:
        return self.context.run

    @property
    def task_data(self) -> TaskData:
        return self.context.task_data

    @property
    def search(self) -> o.SearchOptions:
        return self.context.search

    @property
    def budget(self) -> o.BudgetOptions:
        return self.context.budget

    @property
    def measure(self) -> o.MeasureOptions:
        return self.context.measure

    @property
    def seed(self) -> int:
        return self.context.seed

    @property
    def length(self) -> int:
        return self.task_data.length(self.measure.length)

    def error(self, config: Config, rows: list[Batch]) -> float:
        """1 - the task's metric of this sub-network, wherever it lives."""
        network, keep = self.home(config)
        return self.task_data.error(network, rows, keep)


def corners(search: o.SearchOptions, space: SubnetSpace | TrainedSpace) -> tuple[Config, ...]:
    """The designs that every sampler tries first."""
    return tuple(CORNERS[name](space.choices) for name in search.corners)


def check_search(
    settings: o.SearchOptions, budget: o.BudgetOptions, measure: o.MeasureOptions, space: SubnetSpace | TrainedSpace
) -> None:
    """Everything about the search that can be wrong, found before anything is trained."""
    unknown = [name for name in settings.objectives if name not in OBJECTIVES]
    costs = [name for name in settings.objectives if name != ERROR]
    if unknown or not costs or len(set(settings.objectives)) < len(settings.objectives):
        raise BadInput(
            f"--objectives must be {ERROR} and one or more of {', '.join(n for n in OBJECTIVES if n != ERROR)}, "
            f"each once, got {','.join(settings.objectives)!r}."
        )
    SAMPLERS[settings.sampler](space.choices, seed=0)  # refuses a space that it cannot serve
    params_limit(budget, space)


def params_limit(budget: o.BudgetOptions, space: SubnetSpace | TrainedSpace) -> tuple[str, float] | None:
    """Name of the count and its largest allowed value; one line when no sub-network is that small."""
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


def needs_table(evaluator: SubnetEvaluator) -> bool:
    return LATENCY in evaluator.search.objectives or evaluator.budget.latency_ms is not None


def latency_table(evaluator: SubnetEvaluator) -> LatencyTable | None:
    """Measured once per run, when latency is an objective or a limit."""
    if not needs_table(evaluator):
        return None
    noted = evaluator.run.note("latency_table")
    if noted is None:
        table = LatencyTable.measure(
            evaluator.network, batch=1, length=evaluator.length, rounds=TABLE_ROUNDS, seed=evaluator.seed
        )
        noted = evaluator.run.note_once("latency_table", table.to_json())
    return LatencyTable.from_json(noted)


def objectives(evaluator: SubnetEvaluator, table: LatencyTable | None) -> list[Objective]:
    """The validation error first, then the costs in the order given."""
    measures = {name: counted(evaluator, name) for name in COSTS}
    if table is not None:
        measures[LATENCY] = lambda c: table.predict(c.built)
    measures[ERROR] = lambda c: evaluator.error(c.config, evaluator.task_data.validation)
    names = [ERROR, *(name for name in evaluator.search.objectives if name != ERROR)]
    return [Objective(name, measures[name]) for name in names]


def counted(evaluator: SubnetEvaluator, name: str) -> Callable[[Candidate], float]:
    """A cost that follows from the sizes alone."""
    return lambda candidate: COSTS[name].measure(evaluator.space.anatomy, candidate.built, length=evaluator.length)


def limits(evaluator: SubnetEvaluator, table: LatencyTable | None) -> list[Limit]:
    """Cheap before dear: counted parameters, then predicted latency."""
    found = []
    if bound := params_limit(evaluator.budget, evaluator.space):
        name, most = bound
        found.append(Limit(name, counted(evaluator, name), most))
    if evaluator.budget.latency_ms is not None and table is not None:
        least = table.predict(evaluator.space.build(smallest(evaluator.space.choices)))
        check_latency(evaluator.budget.latency_ms, least)
        found.append(Limit(LATENCY, lambda c: table.predict(c.built), evaluator.budget.latency_ms))
    return found


def check_latency(most: float, least: float) -> None:
    if most < least:
        raise BadInput(f"--latency-ms must be at least {least:.2f}, as for the smallest one, got {most:g}.")


def open_run_study(evaluator: SubnetEvaluator) -> Any:
    name = evaluator.search.sampler if METHODS[evaluator.context.supernet.method].samplers else LISTED
    sampler = SAMPLERS[name](evaluator.space.choices, seed=evaluator.seed, first=evaluator.first)
    number = len({ERROR, *evaluator.search.objectives})
    return open_study(evaluator.run, evaluator.search.store, sampler=sampler, directions=["minimize"] * number)


def note_deadline(folder: RunFolder, deadline: float | None) -> None:
    """For the workers, whose clocks differ."""
    folder.note("deadline", {"at": None if deadline is None else time.time() + deadline - time.monotonic()})


def deadline_of(folder: RunFolder) -> float | None:
    """When the run's --minutes are over, on this process's clock."""
    at = (folder.note("deadline") or {"at": None})["at"]
    return None if at is None else float(time.monotonic() + at - time.time())


def run_search(evaluator: SubnetEvaluator, *, deadline: float | None = None) -> Any:
    """The study after all trials have been told, by this process and the workers beside it."""
    study, table = open_run_study(evaluator), latency_table(evaluator)
    revive(study)
    place = search_here if evaluator.search.ray is None else search_elsewhere
    with (
        workers(evaluator),
        place(evaluator, table) as seek,
        progress("search", evaluator.trials, unit="trials") as bar,
    ):
        told = telling(evaluator, study, Counter(study, bar))
        note_deadline(evaluator.run, None)
        seek(trials=1, deadline=None, told=told)  # one even when time is up
        note_deadline(evaluator.run, deadline)
        with suppress(TimeUp):
            seek(trials=evaluator.trials, deadline=deadline, told=told)
    note_deadline(evaluator.run, None)  # what is trained again later, because it was lost, has all the time it needs
    if not study.best_trials:
        raise Failed("no sub-network within limits and time was found; raise --trials, --minutes or the limits.")
    return study


@contextmanager
def search_here(evaluator: SubnetEvaluator, table: LatencyTable | None) -> Iterator[Search]:
    """Trials in this process."""
    yield partial(
        search,
        open_run_study(evaluator),
        evaluator.space,
        objectives(evaluator, table),
        limits=limits(evaluator, table),
    )


def search_elsewhere(evaluator: SubnetEvaluator, table: LatencyTable | None) -> AbstractContextManager[Search]:
    """Trials at the nodes of a Ray cluster; imported only when one is asked for."""
    from archwright.compression.ray_search import search_on_ray

    return search_on_ray(evaluator, table)


def telling(evaluator: SubnetEvaluator, study: Any, counter: "Counter | None" = None) -> Callable[[Any], None]:
    """What to do after each trial: count it, and tidy up."""

    def told(trial: Any) -> None:
        if counter:
            counter.told(trial)
        if evaluator.tidy:
            trials = study.get_trials(deepcopy=False, states=TOLD)
            best = front(trials, space=evaluator.space)
            evaluator.tidy(*([config_of(evaluator.space.choices, one) for one in some] for some in (trials, best)))

    return told


class Counter:
    """Shows how many trials of the study are told, by whomever."""

    def __init__(self, study: Any, bar: Bar) -> None:
        self._study, self._bar, self._shown = study, bar, 0
        self.told(None)

    def told(self, trial: Any) -> None:
        done = len(self._study.get_trials(deepcopy=False, states=TOLD))
        numbers = {"error": trial.values[0]} if trial is not None and trial.values else {}
        self._bar.advance(done - self._shown, **numbers)
        self._shown = done


@contextmanager
def workers(evaluator: SubnetEvaluator) -> Iterator[None]:
    """The `archwright worker` processes beside this one; they end when all trials are told."""
    command = [sys.executable, "-m", "archwright", "worker", str(evaluator.run.path), "--quiet"]
    command += ["--threads", str(torch.get_num_threads()), "--device", evaluator.task_data.device.type]
    started = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(evaluator.search.workers - 1)]
    try:
        yield
    finally:
        stop(started)


def stop(processes: "list[subprocess.Popen[bytes]]", patience: float = 30.0) -> None:
    """Let the workers finish their trials, then end them."""
    until = time.monotonic() + patience
    while any(process.poll() is None for process in processes) and time.monotonic() < until:
        time.sleep(0.1)
    for process in processes:
        if process.poll() is None:
            process.terminate()
            process.wait()


def load_evaluator(folder: RunFolder, *, device: str = "cpu") -> SubnetEvaluator:
    """What the run searches on, rebuilt from its folder."""
    context = load_context(folder, device=device)
    return METHODS[context.supernet.method].ground_of(context)
