"""What jobs left behind: errors on the test rows, and paired intervals of differences between methods."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.statistics import METRICS
from experiments.peers.job import SLACK, read_job
from experiments.peers.rows import read_csv

RESAMPLES = 1000
MEASURING = "measure"
"""Our phase after the search: test errors and latency, which cost the other methods nothing either."""


@dataclass(frozen=True)
class Record:
    """A finished job: one method on one task and seed."""

    task: str
    seed: int
    method: str
    folder: Path
    facts: Mapping[str, Any]
    """Of the rows and of the original."""

    @cached_property
    def document(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "networks.json").read_text()))

    @property
    def networks(self) -> list[dict[str, Any]]:
        return list(self.document["networks"])

    @cached_property
    def answers(self) -> dict[str, NDArray[Any]]:
        """Class ids, or numbers, on the test rows by name of network."""
        with np.load(self.folder / "predictions.npz") as logits:
            return {name: decide(logits[name]) for name in logits.files}

    def network(self, name: str) -> dict[str, Any]:
        return next(network for network in self.networks if network["name"] == name)

    @property
    def seconds(self) -> float:
        """What the method took of its time, with the training of the original where it starts from it."""
        if "seconds_by_phase" in self.document:
            return float(sum(took for phase, took in self.document["seconds_by_phase"].items() if phase != MEASURING))
        return float(self.document["spent"])

    def pick(self, size: float) -> str | None:
        """The network for a size: the one that `select` chose, or else the largest within it; None if there is none."""
        if "picks" in self.document:
            chosen: str | None = self.document["picks"].get(str(size))
            return chosen
        fitting = [network for network in self.networks if 100 * network["share"] <= size + SLACK]
        return max(fitting, key=lambda network: network["share"])["name"] if fitting else None


def decide(logits: NDArray[Any]) -> NDArray[Any]:
    return logits[:, 0] if logits.shape[1] == 1 else logits.argmax(1)


def load_records(runs: Path) -> list[Record]:
    """All finished jobs below the runs folder."""
    records = []
    for file in sorted(runs.glob("*/seed-*/*/networks.json")):
        job = read_job(file.parent / "job.json")
        if job.task == "lm":  # has a table of its own
            continue
        facts = json.loads((file.parents[1] / "rows" / "rows.json").read_text())
        original = file.parents[1] / "original" / "original.json"
        facts |= json.loads(original.read_text()) if original.exists() else {}
        facts |= {"minutes": job.minutes, "clock": job.clock, "threads": job.threads, "commit": job.commit}
        records.append(Record(job.task, job.seed, job.method, file.parent, facts))
    return records


@dataclass(frozen=True)
class TestSet:
    """The test rows of a task, the same for all seeds."""

    __test__ = False  # no test class, whatever pytest thinks of its name
    metric: str
    targets: NDArray[Any]
    positive: int | None = None
    """The class that F1 is about."""

    def error(self, answers: NDArray[Any], rows: NDArray[Any] | slice = slice(None)) -> float:
        """1 - the task's metric."""
        answers, targets = answers[rows], self.targets[rows]
        if self.positive is not None:
            answers, targets = answers == self.positive, targets == self.positive
        return 1.0 - METRICS[self.metric](answers, targets)


def load_test_set(record: Record) -> TestSet:
    rows, labels = read_csv(record.folder.parent / "rows" / "test.csv"), record.facts["labels"]
    if labels is None:
        return TestSet(record.facts["metric"], np.array([float(row.label) for row in rows]))
    positive = record.facts["positive"]
    targets = np.array([labels.index(row.label) for row in rows])
    return TestSet(record.facts["metric"], targets, None if positive is None else labels.index(positive))


@dataclass(frozen=True)
class Difference:
    """Points that the first of two methods loses against the second: mean over seeds and its 95 % interval."""

    mean: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"


def paired_difference(
    test: TestSet, first: Sequence[NDArray[Any]], second: Sequence[NDArray[Any]], *, resamples: int = RESAMPLES
) -> Difference:
    """Of the errors of two lists of answers, one per seed: both the seeds and the rows are drawn with replacement.

    The same rows are drawn for both sides and for all seeds, because all of them answered the same rows.
    """
    rng, number = np.random.default_rng(0), len(test.targets)
    pairs = list(zip(first, second, strict=True))
    mean = float(np.mean([test.error(one) - test.error(other) for one, other in pairs]))
    draws = []
    for _ in range(resamples):
        rows, seeds = rng.integers(number, size=number), rng.integers(len(pairs), size=len(pairs))
        draws.append(np.mean([test.error(pairs[i][0], rows) - test.error(pairs[i][1], rows) for i in seeds]))
    low, high = np.quantile(draws, (0.025, 0.975))
    return Difference(100 * mean, 100 * float(low), 100 * float(high), len(pairs))
