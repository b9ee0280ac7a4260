"""Options of `discover`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archwright.configs.options import members, option
from archwright.configs.scoring import BenchmarkOptions, RecordingOptions


@dataclass(frozen=True)
class FormulaOptions:
    """Which proxies to look for."""

    exhaustive: bool = False
    """Rank all formulas of the space."""
    evolve: bool = False
    """Search by evolution (LPZero, Algorithm 1), beside evolution without its pruning strategy and random search."""
    unary: int = 1
    """Unary operations per branch: 1 or 2, with --evolve up to 5."""
    inputs: str = option("lpzero", metavar="NAMES")
    """What formulas look at: lpzero (the six of the paper: A, J, G, H, W, S), forward (without gradients: A, H, W, S,
    weights by role, pre-activations, hidden states, outputs of heads), extended (also gradients of outputs, value times
    gradient, counts), layers (heads, linears, widths and weights of each layer), positional (both, sums over linears,
    and linears without the FFN of the last layer), or names such as W,S."""
    reduction: str = option("sum", metavar="NAMES")
    """How the numbers of layers become a score: sum, mean, first, last, but_last (all but the last), rising and falling
    (weights by position), largest, logsum; several as in sum,but_last, positional (sum and the five that know the
    position) or all."""
    factor: bool = False
    """Not in the paper: scores also times a count (parameters, depth, width, ...), its root, square, log or inverse."""
    fitness: str = option("spearman", choices=members("discovery.fitness", "FITNESS"))
    """What the best formula is best at."""
    fold_seeds: int = option(0, minimum=0)
    """Splits of the rows into five folds, each searched and judged anew; 0: ten with --exhaustive, one with
    --evolve."""


@dataclass(frozen=True)
class EvolutionPreset:
    """Options that go together; what the user gives beside a preset wins."""

    summary: str
    values: Mapping[str, Any]


LPZERO = {
    "unary": 2, "generations": 1000, "population": 80, "parents": "10%", "crossover": 0.5, "mutation": 0.5,
    "pps": True, "sample": 50, "distinct": False, "fitness": "spearman", "inputs": "lpzero", "reduction": "sum",
    "seed": 42,
}  # fmt: skip
PRESETS: dict[str, EvolutionPreset] = {
    "default": EvolutionPreset("nothing but the defaults of the options", {}),
    "lpzero": EvolutionPreset(
        "the settings of the paper on encoders: two operations per branch, batch of 128, seed 42",
        {**LPZERO, "batch_rows": 128},
    ),
    "lpzero-gpt2": EvolutionPreset("the same on GPT-2: batch of 16", {**LPZERO, "batch_rows": 16}),
}


@dataclass(frozen=True)
class EvolutionOptions:
    """How to evolve."""

    preset: str = option(
        "default",
        choices={name: preset.summary for name, preset in PRESETS.items()},
        fills={name: preset.values for name, preset in PRESETS.items()},
    )
    """Settings that go together."""
    generations: int = option(1000, minimum=1)
    """Offspring, one after another."""
    population: int = option(80, minimum=2)
    """Formulas that live together."""
    parents: str = option("10%", metavar="N%")
    """Share of the population that has offspring."""
    crossover: float = option(0.5, minimum=0, maximum=1)
    """How often an offspring has two parents rather than being a copy of one."""
    mutation: float = option(0.5, minimum=0, maximum=1)
    """How often one choice of an offspring is changed."""
    pps: bool = True
    """Predictive-Pruning Strategy: throw away formulas that Table 6 of the paper rules out, and those that are constant
    on four architectures."""
    sample: int = option(50, minimum=0)
    """Architectures a fitness is taken on, 0 for all; the finalists are compared on all."""
    distinct: bool = False
    """Not in the paper: an offspring that was scored before is drawn again. Algorithm 1 scores copies, and soon has
    little else."""
    seeds: int = option(3, minimum=1)
    """Searches of each kind, with random numbers of their own."""
    ablate: bool = False
    """Also the paper's ablations: populations of 80, 100 and 200, two to five unary operations (Figures 7 and 13,
    Table 5), and what it helps to score no formula twice."""


@dataclass(frozen=True)
class PublishedProxies:
    """Which published proxies are scored beside the formulas."""

    summary: str
    includes: Callable[[Iterable[str]], bool]
    """Of the passes that a proxy needs."""


PUBLISHED: dict[str, PublishedProxies] = {
    "cheap": PublishedProxies(
        "those that look at a forward pass and a loss", lambda passes: {"forward", "loss", "inputs"}.issuperset(passes)
    ),
    "all": PublishedProxies("also those that need second derivatives or many passes", lambda passes: True),
    "none": PublishedProxies("no proxy is scored beside the formulas", lambda passes: False),
}


@dataclass(frozen=True)
class FindingOptions:
    """What to do with them."""

    save: str | None = option(None, metavar="NAME")
    """Keep the best formula as a proxy of this name, for `score` and `rank`."""
    transfer: tuple[str, ...] = option((), choices=members("benchmarks", "BENCHMARKS"))
    """Other benchmarks: searched in the same way, and what is found on each judged on all."""
    published: str = option("cheap", choices={name: kind.summary for name, kind in PUBLISHED.items()})
    """Published proxies whose place among the formulas is shown."""
    html: Path | None = None
    """Page with all figures; beside the statistics if not said."""
    samples: int = option(1000, minimum=1)
    """Bootstrap samples behind an interval."""


@dataclass(frozen=True)
class DiscoverConfig:
    """All options of `archwright discover`."""

    benchmark: BenchmarkOptions = field(default_factory=BenchmarkOptions)
    formulas: FormulaOptions = field(default_factory=FormulaOptions)
    evolution: EvolutionOptions = field(default_factory=EvolutionOptions)
    findings: FindingOptions = field(default_factory=FindingOptions)
    recording: RecordingOptions = field(default_factory=RecordingOptions)
