"""The search of a run: this process, worker processes beside it or a Ray cluster share the trials of one study."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path

import torch
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from archwright.callbacks import tell_trial
from archwright.compression.context import SharedDeadline, share_deadline, write_deadline
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.finetuning import TimeUp
from archwright.compression.ray_search import search_on_ray
from archwright.compression.selection import find_finalists
from archwright.compression.space import ERROR
from archwright.compression.weights import ChainWeights, StandaloneWeights
from archwright.devices import one_gpu_environment
from archwright.errors import Failed
from archwright.logs import logger
from archwright.objectives.table import LatencyTable
from archwright.parallel.parent import ChildProcess
from archwright.progress import Bar, progress
from archwright.search import config_of, search, settle_trials

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
WORKER_PATIENCE = 30.0
"""Seconds that workers have for their last trials."""


def run_search(evaluator: SubnetEvaluator, *, deadline: float | None = None) -> Study:
    """The study after all trials, of this process and the workers beside it; a deadline is of `time.monotonic()`."""
    context, study, table = evaluator.context, evaluator.open_study(), evaluator.latency_table()
    settle_trials(study)
    open_search: Callable[[SubnetEvaluator, LatencyTable | None], AbstractContextManager[Callable[..., None]]]
    open_search = search_here if context.config.search.ray is None else search_on_ray
    with (
        run_workers(evaluator),
        open_search(evaluator, table) as search_trials,
        progress("search", evaluator.trials, unit="trials") as bar,
    ):
        counter = TrialCounter(evaluator, study, bar)

        def after_trial(trial: FrozenTrial) -> None:
            counter.update(trial)
            if isinstance(evaluator.weights, StandaloneWeights):  # each trial adds a network
                delete_unused_networks(evaluator, study)

        write_deadline(context.run, None)
        search_trials(trials=evaluator.least_trials, deadline=None, on_trial=after_trial)  # even when time is up
        with share_deadline(context.run, deadline), suppress(TimeUp):
            search_trials(trials=evaluator.trials, deadline=deadline, on_trial=after_trial)
    write_deadline(context.run, None)  # what is trained again later, because it was lost, has all the time it needs
    if not study.best_trials:
        raise Failed("no sub-network within limits and time was found; raise --trials, --minutes or the limits.")
    tried = len(study.get_trials(deepcopy=False, states=FINISHED))
    first = min(evaluator.trials, len(evaluator.first_configs))
    if deadline is not None and tried < first:
        logger.warning(
            "time was up after %d of the %d networks that a search begins with, so sizes may be missing on the front; "
            "raise --minutes (%g), or give fewer training or validation rows",
            *(tried, first, context.config.search.minutes),
        )
    return study


@contextmanager
def search_here(evaluator: SubnetEvaluator, table: LatencyTable | None) -> Iterator[Callable[..., None]]:
    """`search` in this process, given trials, deadline and on_trial."""
    objectives, constraints = evaluator.objectives(table), evaluator.constraints(table)
    study, describe = evaluator.open_study(), evaluator.describe
    yield partial(search, study, evaluator.space, objectives, constraints=constraints, describe=describe)


def join_search(evaluator: SubnetEvaluator, *, wait_minutes: float) -> int:
    """Evaluates trials of a run that another process has begun until it has all of them; how many were done here."""
    run, trials = evaluator.context.run, 0
    if evaluator.needs_latency_table:  # that of the machine that began the run, never one of this machine
        wait_for_file(run.path / "latency_table.json", wait_minutes)
    study = evaluator.open_study()

    def after_trial(trial: FrozenTrial) -> None:
        nonlocal trials
        trials += 1
        bar.advance()
        if isinstance(evaluator.weights, StandaloneWeights):
            delete_unused_networks(evaluator, study)

    with (
        search_here(evaluator, evaluator.latency_table()) as search_trials,
        progress("search", None, unit="trials") as bar,
        suppress(TimeUp),
    ):
        search_trials(trials=evaluator.trials, deadline=SharedDeadline(run), on_trial=after_trial)
    return trials


def wait_for_file(path: Path, minutes: float) -> None:
    """Waits for what the run's own command writes first; Failed when it takes longer."""
    until = time.monotonic() + 60 * minutes
    while not path.exists():
        if time.monotonic() > until:
            raise Failed(f"{path} is not there after {minutes:g} minutes; is its `archwright compress` running?")
        time.sleep(1.0)


def delete_unused_networks(evaluator: SubnetEvaluator, study: Study) -> None:
    """Deletes tried networks with weights of their own that are not among those that may come onto the front."""
    if isinstance(evaluator.weights, StandaloneWeights | ChainWeights):
        trials = study.get_trials(deepcopy=False, states=FINISHED)
        tried = [config_of(evaluator.space.choices, trial) for trial in trials]
        best = [finalist.config for finalist in find_finalists(evaluator, trials)]
        evaluator.weights.delete_except(best, tried)


class TrialCounter:
    """Shows how many trials of the study are finished, by whomever."""

    def __init__(self, evaluator: SubnetEvaluator, study: Study, bar: Bar) -> None:
        self._evaluator, self._study, self._bar, self._shown = evaluator, study, bar, 0
        self._told: set[int] = set()
        self.update(None)

    def update(self, trial: FrozenTrial | None) -> None:
        finished = self._study.get_trials(deepcopy=False, states=FINISHED)
        numbers = {"error": self._evaluator.trial_error(trial)} if trial is not None and trial.values else {}
        self._bar.advance(len(finished) - self._shown, **numbers)
        self._shown = len(finished)
        if trial is not None:  # those before are of an earlier attempt, which told them
            names = [name for name in self._evaluator.context.config.search.objectives if name != ERROR]
            for each in finished:
                if each.number not in self._told and each.values:
                    error = self._evaluator.trial_error(each)
                    tell_trial(each.number, {ERROR: error, **dict(zip(names, each.values[1:], strict=False))})
        self._told |= {each.number for each in finished}


@contextmanager
def run_workers(evaluator: SubnetEvaluator) -> Iterator[None]:
    """The `archwright worker` processes beside this one: they end when all trials are finished, or with this one."""
    context = evaluator.context
    command = [sys.executable, "-m", "archwright", "worker", str(context.run.path), "--quiet"]
    command += ["--threads", str(torch.get_num_threads()), "--device", context.task_data.device.type]
    numbers = range(1, context.config.search.workers)
    workers = [ChildProcess(command, one_gpu_environment(number)) for number in numbers]
    try:
        yield
        until = time.monotonic() + WORKER_PATIENCE
        while any(worker.is_running for worker in workers) and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        for worker in workers:
            worker.let_go()
        for worker in workers:
            worker.wait()
