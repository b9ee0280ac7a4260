"""`archwright worker`: help a run that another process or machine has begun."""

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from archwright.compression.finetuning import TimeUp
from archwright.compression.search import (
    SubnetEvaluator,
    deadline_of,
    latency_table,
    limits,
    load_evaluator,
    needs_table,
    objectives,
    open_run_study,
    telling,
)
from archwright.configs import compress as o
from archwright.errors import Failed
from archwright.objectives.table import LatencyTable
from archwright.progress import progress
from archwright.search import search
from archwright.store import answering, existing_run

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class WorkerResult:
    """What this worker did."""

    run: str
    trials: int

    def as_json(self) -> dict[str, Any]:
        return {"schema": "archwright/worker/1", "run": self.run, "trials": self.trials}

    def show(self, console: "Console") -> None:
        console.print(f"{self.trials} trials evaluated for {self.run}", highlight=False)


def worker(config: o.WorkerConfig) -> WorkerResult:
    """Evaluates trials until the run has as many as it wants."""
    run, joining = config.run, config.join
    torch.set_num_threads(max(1, joining.threads))
    folder = existing_run(run.run)
    await_file(folder.path / "ready.json", joining.wait_minutes)
    evaluator = load_evaluator(folder, device=joining.device)
    table = awaited_table(evaluator, joining.wait_minutes)
    study, done = open_run_study(evaluator), list[int]()
    tidy = telling(evaluator, study)

    def told(trial: Any) -> None:
        done.append(trial.number)
        bar.advance()
        tidy(trial)

    with answering(), progress("search", None, unit="trials") as bar, suppress(TimeUp):
        search(
            study,
            evaluator.space,
            objectives(evaluator, table),
            limits=limits(evaluator, table),
            trials=evaluator.trials,
            deadline=deadline_of(folder),
            told=told,
        )
    return WorkerResult(str(run.run), len(done))


def await_file(path: Path, minutes: float) -> None:
    """Waits for what the run's own command makes first."""
    until = time.monotonic() + 60 * minutes
    while not path.exists():
        if time.monotonic() > until:
            raise Failed(f"{path} is not there after {minutes:g} minutes; is its `archwright compress` running?")
        time.sleep(1.0)


def awaited_table(evaluator: SubnetEvaluator, minutes: float) -> LatencyTable | None:
    """The latency table of the machine that began the run; never one of this machine."""
    if needs_table(evaluator):
        await_file(evaluator.run.path / "latency_table.json", minutes)
    return latency_table(evaluator)
