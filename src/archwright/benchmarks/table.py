"""A benchmark: architectures that somebody trained, each with its result and what was published about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archwright.search import Config

if TYPE_CHECKING:
    from archwright.spaces.architectures import ArchitectureSpace


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
    """Equal for rows that are one network trained several times, where that is not what the variant looks at."""


@dataclass(frozen=True)
class Missing:
    """A row of the files without a usable result."""

    id: str
    reason: str


@dataclass(frozen=True)
class Benchmark:
    """All rows of one benchmark."""

    name: str
    variant: str
    space: "ArchitectureSpace"
    rows: tuple[Row, ...]
    missing: tuple[Missing, ...]
    target: str
    """The target everything is judged on unless another one is named."""
    targets: tuple[str, ...]
    licence: str
    origin: str
    """Public address of the original files."""
    known: str = "depth and width"
    """What rows of one cell have in common."""
    shaped: bool = True
    """Whether depth and width are choices of its space, to be compared with."""
