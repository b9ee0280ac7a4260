"""Options of `score`, `rank` and `discover`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archwright.configs.options import members, option

INITIALS = {
    "own": "as networks of the space are trained",
    "glorot": "variance 2 / (inputs + outputs) in every linear",
}


@dataclass(frozen=True)
class ArchitectureOptions:
    """Which architectures."""

    space: str = option("flexibert", choices=members("spaces", "ARCHITECTURES"))
    """Where they come from."""
    variant: str | None = option(None, metavar="NAME")
    """How a config becomes a network, where a space knows several ways; its first by default."""
    config: Path | None = None
    """File with one config, a list of them, or one per line, as JSON."""
    random: int | None = option(None, minimum=1)
    """So many random ones instead."""
    html: Path | None = None
    """Page to write."""


@dataclass(frozen=True)
class BenchmarkOptions:
    """Which architectures that somebody trained."""

    benchmark: str = option("nas-bert", choices=members("benchmarks", "BENCHMARKS"))
    """Table of trained architectures."""
    data: Path | None = None
    """Folder with its files; by default the one below the folder that ARCHWRIGHT_DATA names."""
    variant: str | None = option(None, metavar="NAME")
    """nas-bert: trained (as the networks really were), described (as the paper says) or published (as the public script
    scored them)."""
    target: str | None = option(None, metavar="NAME")
    """What training gave, to be predicted; the benchmark's main result by default."""


@dataclass(frozen=True)
class ProxyOptions:
    """What to score them with."""

    proxies: tuple[str, ...] = option((), choices=members("proxies", "PROXIES"))
    """Names of proxies; all by default."""
    proxy: tuple[str, ...] = option((), metavar="FILE:NAME")
    """A proxy of your own: a function of a probe in a Python file."""


@dataclass(frozen=True)
class RecordingOptions:
    """How to look at a network."""

    batch_rows: int | None = option(None, minimum=2)
    """Texts in a batch; 8 by default, 16 for nlu-tiny and nlu-small, 33 for nlu-large, 20 for RNNs."""
    length: int | None = option(None, minimum=2)
    """Tokens of a text; 64 by default, 70 for RNNs."""
    loss: str | None = option(None, metavar="NAME")
    """What is back-propagated: electra or mlm (encoders), lm (decoders, RNNs), published (variant published)."""
    initial: str = option("own", choices=INITIALS)
    """Scale of the initial weights."""
    text: Path | None = None
    """Text file the batches come from; WikiText-2 by default."""
    workers: int = option(0, minimum=0)
    """Processes with one thread each; 0 for one per core."""
    ray: str | None = option(None, metavar="ADDRESS")
    """Ray cluster that looks instead (host:port, auto, or local)."""
    seed: int = option(0, minimum=0)
    """Of weights, batches and bootstrap samples."""
    out: Path = Path("runs/scores")
    """Folder that keeps every score; what is there is not computed again."""


@dataclass(frozen=True)
class ScoringOptions(RecordingOptions):
    """How to look at a network."""

    seeds: int = option(1, minimum=1)
    """Initial weights per architecture; scores are means over them."""
    batches: int = option(1, minimum=1)
    """Batches per architecture; scores are means over them."""


@dataclass(frozen=True)
class JudgementOptions:
    """What to report."""

    html: Path | None = None
    """Page with all figures; beside the scores if not said."""
    ablation: bool = True
    """Ten architectures, one per decile of the trained result, with ten initial weights and ten batches each: how
    much of a proxy is noise."""
    xray: bool = False
    """Print what the trained result says about every choice of the space."""
    compare_published: bool = False
    """Print the numbers that papers report beside ours."""
    samples: int = option(1000, minimum=10)
    """Bootstrap samples behind an interval."""


FITNESS = {
    "spearman": "rank correlation over all rows (LPZero)",
    "within": "mean rank correlation inside cells of equal depth and width",
    "both": "the mean of the two",
    "pareto": "the two and size traded off: evolution towards a front (NSGA-II), one formula per size",
}
REDUCTIONS = {
    "sum": "over layers",
    "mean": "over layers",
    "last": "the last layer",
    "largest": "the layer farthest from zero",
    "logsum": "sum of sign(x) log(1 + |x|), close to a product",
}


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
    gradient, counts), or names such as W,S."""
    reduction: str = option("sum", choices=REDUCTIONS)
    """How the numbers of layers become a score."""
    factor: bool = False
    """Not in the paper: scores also times a count (parameters, depth, width, ...), its root, square, log or inverse."""
    fitness: str = option("spearman", choices=FITNESS)
    """What the best formula is best at."""


LPZERO = {
    "unary": 2, "generations": 1000, "population": 80, "parents": "10%", "crossover": 0.5, "mutation": 0.5,
    "pps": True, "sample": 50, "distinct": False, "fitness": "spearman", "inputs": "lpzero", "reduction": "sum",
    "seed": 42,
}  # fmt: skip
DISCOVERIES: dict[str, dict[str, Any]] = {
    "default": {},
    "lpzero": {**LPZERO, "batch_rows": 128},
    "lpzero-gpt2": {**LPZERO, "batch_rows": 16},
}
"""Options that go together; what the user gives beside a preset wins."""
DISCOVERY_HELP = {
    "default": "nothing but the defaults of the options",
    "lpzero": "the settings of the paper on encoders: two operations per branch, batch of 128, seed 42",
    "lpzero-gpt2": "the same on GPT-2: batch of 16",
}


@dataclass(frozen=True)
class EvolutionOptions:
    """How to evolve."""

    preset: str = option("default", choices=DISCOVERY_HELP, fills=DISCOVERIES)
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


PUBLISHED = {
    "cheap": "those that look at a forward pass and a loss",
    "all": "also those that need second derivatives or many passes",
    "none": "no proxy is scored beside the formulas",
}


@dataclass(frozen=True)
class FindingOptions:
    """What to do with them."""

    save: str | None = option(None, metavar="NAME")
    """Keep the best formula as a proxy of this name, for `score` and `rank`."""
    transfer: tuple[str, ...] = option((), choices=members("benchmarks", "BENCHMARKS"))
    """Other benchmarks: searched in the same way, and what is found on each judged on all."""
    published: str = option("cheap", choices=PUBLISHED)
    """Published proxies whose place among the formulas is shown."""
    html: Path | None = None
    """Page with all figures; beside the statistics if not said."""
    samples: int = option(1000, minimum=1)
    """Bootstrap samples behind an interval."""


@dataclass(frozen=True)
class ScoreConfig:
    """All options of `archwright score`."""

    architectures: ArchitectureOptions = field(default_factory=ArchitectureOptions)
    proxies: ProxyOptions = field(default_factory=ProxyOptions)
    scoring: ScoringOptions = field(default_factory=ScoringOptions)


@dataclass(frozen=True)
class RankConfig:
    """All options of `archwright rank`."""

    benchmark: BenchmarkOptions = field(default_factory=BenchmarkOptions)
    proxies: ProxyOptions = field(default_factory=ProxyOptions)
    scoring: ScoringOptions = field(default_factory=ScoringOptions)
    judgement: JudgementOptions = field(default_factory=JudgementOptions)


@dataclass(frozen=True)
class DiscoverConfig:
    """All options of `archwright discover`."""

    benchmark: BenchmarkOptions = field(default_factory=BenchmarkOptions)
    formulas: FormulaOptions = field(default_factory=FormulaOptions)
    evolution: EvolutionOptions = field(default_factory=EvolutionOptions)
    findings: FindingOptions = field(default_factory=FindingOptions)
    recording: RecordingOptions = field(default_factory=RecordingOptions)
