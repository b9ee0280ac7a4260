"""`archwright worker`: help a run that another process or machine has begun."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from archwright.compression.methods import load_evaluator
from archwright.compression.search import join_search, wait_for_file
from archwright.configs.compress import WorkerConfig
from archwright.devices import deterministic_algorithms, limit_kernel_cache
from archwright.store import existing_run, report_database_loss

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


def worker(config: WorkerConfig) -> WorkerResult:
    """Evaluates trials until the run has as many as it wants, or the command that started this worker ends."""
    limit_kernel_cache()
    join = config.join
    torch.set_num_threads(max(1, join.threads))
    folder = existing_run(config.run.run)
    wait_for_file(folder.path / "ready.json", join.wait_minutes)
    with report_database_loss():
        evaluator = load_evaluator(folder, device=join.device)
        with deterministic_algorithms(evaluator.context.config.output.deterministic):
            trials = join_search(evaluator, wait_minutes=join.wait_minutes)
    return WorkerResult(str(config.run.run), trials)
