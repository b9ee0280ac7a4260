"""Ratios of things timed alternately in one run, and the options of their measurement."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any

import numpy as np

from archwright.progress import progress

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Ratio:
    """How often the first fits into the second, from rounds that time both."""

    name: str
    median: float
    low: float
    high: float
    target: str
    """`>= X` or `<= X`; empty for what is only told."""

    @property
    def met(self) -> bool | None:
        """None without a target."""
        sign, _, bound = self.target.partition(" ")
        if not bound:
            return None
        return self.median >= float(bound) if sign == ">=" else self.median <= float(bound)


WORDS = {True: "yes", False: "no", None: ""}


@dataclass(frozen=True)
class BenchResult:
    """All ratios of one run."""

    what: str
    ratios: tuple[Ratio, ...]
    environment: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        rows = [{**vars(ratio), "met": ratio.met} for ratio in self.ratios]
        return {
            "schema": "archwright/bench/1",
            "what": self.what,
            "ratios": rows,
            "environment": dict(self.environment),
        }

    def show(self, console: "Console") -> None:
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for name in ("ratio", "median", "range over rounds", "target", "met"):
            table.add_column(name, justify="left" if name == "ratio" else "right")
        for r in self.ratios:
            table.add_row(r.name, f"{r.median:.2f}", f"{r.low:.2f} to {r.high:.2f}", r.target, WORDS[r.met])
        console.print(table)


@dataclass(frozen=True)
class BenchConfig:
    """What to measure."""

    what: str = "compress"
    """Part of archwright."""
    rows: int = 120
    """Texts to evaluate on."""
    repeats: int = 5
    """Rounds; medians of ratios inside a round are printed."""
    seed: int = 0
    """Of the sampled sub-networks."""
    data: Path | None = None
    """Folder with train.tsv and dev.tsv of SST-2; the movie reviews without it."""


def seconds(call: Callable[[], Any]) -> float:
    """Processor time of this thread, which does all the work: other programs on the machine do not count."""
    begun = thread_time()
    call()
    return thread_time() - begun


def repeated(
    title: str, one_round: Callable[[np.random.Generator], dict[str, float]], settings: BenchConfig
) -> list[dict[str, float]]:
    """Seconds of every round after one that is thrown away."""
    rounds = []
    with progress(f"bench: {title}", settings.repeats + 1, "rounds") as bar:
        for index in range(settings.repeats + 1):
            rounds.append(one_round(np.random.default_rng((settings.seed, index))))
            bar.advance()
    return rounds[1:]


def ratio(name: str, rounds: list[dict[str, float]], above: str, below: str, target: str) -> Ratio:
    values = sorted(r[above] / r[below] for r in rounds)
    return Ratio(name, float(np.median(values)), values[0], values[-1], target)
