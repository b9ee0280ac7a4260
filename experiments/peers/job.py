"""What run.py tells the process of one method on one task and seed, and what that process leaves behind.

A job's folder holds networks.json (one entry per network: name, share, heads and units per layer, steps, seconds) and
predictions.npz (the logits of every network on the test rows, by name). networks.json is written last.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (60, 50, 40, 30, 20)
"""Percent of the non-embedding parameters that networks are compared at."""
SLACK = 1.5
"""Percentage points that a size may be exceeded by: three of six layers and the head are 50.7 %."""
ABLATION = {
    "in-place-teacher": "archwright",
    "space-small": "archwright",
    "smallest-empty": "archwright",
    "repair-none": "archwright",
    "no-candidates": "archwright",
    "no-distillation": "archwright",
    "retraining-free-mask": "retraining-free",
    "retraining-free-unrepaired": "retraining-free",
}
"""A method without one of its parts (the frozen teacher, the chain, a smallest network with layers, ...) -> the whole
method, which it is compared with."""
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
"""On a busy machine the CPU time of a process with one thread is what its wall-clock would be on an idle core."""


@dataclass(frozen=True)
class Job:
    """One method on one task and seed."""

    method: str
    task: str
    seed: int
    rows: Path
    """Folder of rows.py."""
    original: Path
    """Folder of original.py."""
    out: Path
    minutes: float
    """For all sizes together; a method that starts from the fine-tuned original pays for its training too."""
    clock: str = "wall"
    threads: int = 1
    sizes: tuple[int, ...] = SIZES
    commit: str | None = None
    cpu: str | None = None

    @property
    def networks_file(self) -> Path:
        return self.out / "networks.json"

    @property
    def is_done(self) -> bool:
        return self.networks_file.exists()

    def write(self) -> Path:
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / "job.json"
        path.write_text(json.dumps(asdict(self), default=str, indent=1))
        return path

    def facts(self) -> dict[str, Any]:
        """About the rows and the original: labels, metric, the original's seconds and parameters."""
        rows, original = self.rows / "rows.json", self.original / "original.json"
        return json.loads(rows.read_text()) | (json.loads(original.read_text()) if original.exists() else {})

    def save(self, networks: list[dict[str, Any]], logits: Mapping[str, Any], **more: Any) -> None:
        np.savez_compressed(self.out / "predictions.npz", **{name: np.asarray(array) for name, array in logits.items()})
        beside = self.networks_file.with_suffix(".tmp")
        beside.write_text(json.dumps({"networks": networks, **more}, indent=1))
        beside.replace(self.networks_file)


def read_job(path: Path) -> Job:
    values = json.loads(path.read_text())
    paths = {name: Path(values[name]) for name in ("rows", "original", "out")}
    return Job(**{**values, **paths, "sizes": tuple(values["sizes"])})


def job_from_arguments() -> Job:
    """The job that this process was started for: python -m experiments.peers.METHOD JOB.json"""
    import torch

    job = read_job(Path(sys.argv[1]))
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    return job


@dataclass
class TimeBudget:
    """Seconds that the trainings of a job share; predicting the test rows costs nothing."""

    seconds: float
    clock: Callable[[], float]
    spent: float = 0.0
    before: float = 0.0
    """What the original took, where it is part of the method."""

    @classmethod
    def of(cls, job: Job, *, original: bool) -> "TimeBudget":
        """All of the job's minutes, less what the fine-tuning of the original took where a method needs it."""
        before = job.facts()["seconds"] if original else 0.0
        return cls(60 * job.minutes - before, CLOCKS[job.clock], before=before)

    @property
    def total(self) -> float:
        """Of the method as a whole."""
        return self.before + self.spent

    def share(self, left: int) -> float:
        """What the next of so many networks may take."""
        return max(0.0, self.seconds - self.spent) / left

    @contextmanager
    def spending(self) -> Iterator[None]:
        start = self.clock()
        try:
            yield
        finally:
            self.spent += self.clock() - start
