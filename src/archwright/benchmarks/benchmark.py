"""A benchmark: architectures that somebody trained, each with its result and what was published about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from archwright.errors import BadInput
from archwright.search import Config

if TYPE_CHECKING:
    from archwright.spaces.architectures import ArchitectureSpace


@dataclass(frozen=True)
class ShortTraining:
    """What a few steps of training gave, as a baseline: it must be worth more than a proxy that costs less."""

    steps: int
    result: float
    """Higher is better."""
    seconds: float
    """Of one core."""


@dataclass(frozen=True)
class Row:
    """One trained architecture."""

    id: str
    config: Config
    trained: Mapping[str, float]
    """What training gave, by name of the target, always higher = better (errors and losses have their sign changed)."""
    published: Mapping[str, float]
    """Training-free metrics others published for it, as they stand in their file."""
    cell: str
    """Rows of one cell are alike in what everybody knows to matter: depth and width, or size."""
    network: str = ""
    """Equal for rows that are one network trained several times, where the variant does not show it."""
    runs: Mapping[str, float] = field(default_factory=dict)
    """Main results of the same network trained in several ways, such as with other warm-ups, by the name of the way."""
    short: tuple[ShortTraining, ...] = ()
    """Short trainings of the network, where the benchmark has them."""
    failed: tuple[str, ...] = ()
    """Targets on which the run broke down, such as a task left at chance; they are counted, not removed."""


@dataclass(frozen=True)
class Missing:
    """A row of the files without a usable result."""

    id: str
    reason: str


@dataclass(frozen=True)
class BenchmarkTable:
    """All rows of one benchmark, in one variant."""

    name: str
    variant: str
    space: "ArchitectureSpace"
    rows: tuple[Row, ...]
    missing: tuple[Missing, ...]
    target: str
    """The target everything is judged on unless another one is named."""
    targets: tuple[str, ...]
    licence: str
    known: str = "depth and width"
    """What rows of one cell have in common."""
    shaped: bool = True
    """Whether depth and width are choices of its space, to be compared with."""
    smallest_cell: int = 5
    """Rows that a cell needs to be judged by itself; with fewer than five, intervals are over cells, not rows."""
    derived: tuple[str, ...] = ()
    """Targets that are made of the others."""
    caution: str = ""
    """What must be said wherever a number of it is shown, such as that weights are shared."""


class Unusable(Exception):
    """Why an entry of a benchmark's files cannot be a row."""


@dataclass(frozen=True)
class PublishedMetric:
    """A column of scores that others published, and our proxy that should agree with it."""

    column: str
    proxy: str
    note: str
    """What may differ."""


Repeats = Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]
"""Published metrics over other "seeds" and "batches": kind, id of the row, one entry per repeat."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark before its files are read: everything the program must know about it.

    A package adds one with an entry point of the group `archwright.benchmarks` whose object is such a record.
    """

    name: str
    read: Callable[[Path, str], BenchmarkTable]
    """(folder, variant) -> rows; BadInput for files that cannot be read."""
    folder: str
    """Name of its folder among the public data."""
    origin: str
    """Where its files can be downloaded."""
    licence: str
    variants: tuple[str, ...] = ("trained",)
    """How a config becomes a network; the default first."""
    metrics: tuple[PublishedMetric, ...] = ()
    """A column may be there twice, with two readings of its definition."""
    read_repeats: Callable[[Path], Repeats] = lambda folder: {}
    shipped: Path | None = None
    """Folder of its files in the package, where they come with it."""
    description: str = ""
    """One line for `--help`; ours stand in the registry, because their modules load torch."""

    def load(self, folder: Path, variant: str | None = None) -> BenchmarkTable:
        """All rows; BadInput for an unknown variant or files that cannot be read."""
        variant = variant or self.variants[0]
        if variant not in self.variants:
            raise BadInput(f"--variant must be one of {', '.join(self.variants)}, got {variant!r}.")
        return self.read(folder, variant)
