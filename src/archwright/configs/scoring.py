"""Options of `score`, `rank` and `discover`."""

from dataclasses import dataclass, field
from pathlib import Path

from archwright.configs.options import members, option


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
    scored them); lts-gpt2: trained or lm1b; hw-gpt-bench: s or m."""
    target: str | None = option(None, metavar="NAME")
    """What training gave, to be predicted; the benchmark's main result by default."""


@dataclass(frozen=True)
class ProxyOptions:
    """What to score them with."""

    proxies: tuple[str, ...] = option((), choices=members("proxies", "PROXIES"))
    """Names of proxies; by default all but those that take long (--all-proxies)."""
    all_proxies: bool = False
    """Also those that take long: of the Hessian, of noise, nuclear norms and determinants."""
    proxy: tuple[str, ...] = option((), metavar="FILE:NAME")
    """A proxy of your own: a function of a probe in a Python file."""


@dataclass(frozen=True)
class RecordingOptions:
    """How to record a network."""

    batch_rows: int | None = option(None, minimum=2)
    """Texts in a batch; 8 by default, 16 for nlu-tiny and nlu-small, 17 for nlu-large, 20 for RNNs."""
    length: int | None = option(None, minimum=2)
    """Tokens of a text; 64 by default, 70 for RNNs."""
    loss: str | None = option(None, metavar="NAME")
    """What is back-propagated: electra or mlm (encoders), lm (decoders, RNNs), published (variant published)."""
    initial: str = option("own", choices=members("scoring.initial_weights", "INITIALS"))
    """Scale of the initial weights."""
    text: Path | None = None
    """Text file the batches come from; WikiText-2 by default."""
    workers: int = option(0, minimum=0)
    """Processes with one thread each; 0 for one per core."""
    ray: str | None = option(None, metavar="ADDRESS")
    """Ray cluster that scores instead (host:port, auto, or local)."""
    seed: int = option(0, minimum=0)
    """Of weights, batches and bootstrap samples."""
    out: Path = Path("runs/scores")
    """Folder that keeps every score; what is there is not computed again."""


@dataclass(frozen=True)
class ScoringOptions(RecordingOptions):
    """How to record a network."""

    seeds: int = option(1, minimum=1)
    """Initial weights per architecture; scores are means over them."""
    batches: int = option(1, minimum=1)
    """Batches per architecture; scores are means over them."""


@dataclass(frozen=True)
class SampleOptions:
    """How much to score."""

    rows: int | None = option(None, minimum=20)
    """Networks to build and score, a seeded sample with all cells in proportion; as many as five minutes on two cores
    are estimated to allow by default. Counts are always those of all rows."""
    budget_minutes: float | None = option(None, minimum=0.1)
    """Minutes it may take: the sample fits them by estimate, and scoring ends when they are over."""


@dataclass(frozen=True)
class JudgementOptions:
    """What to report."""

    html: Path | None = None
    """Page with all figures; beside the scores if not said."""
    ablation: bool = True
    """Ten architectures, one per decile of the trained result, with other initial weights and other batches: how
    much of a proxy is noise."""
    repeats: int | None = option(None, minimum=2)
    """Initial weights, and batches, of each of them; up to ten by default, as far as the minutes allow."""
    xray: bool = False
    """Print what the trained result says about every choice of the space."""
    compare_published: bool = False
    """Print the numbers that papers report beside ours."""
    samples: int = option(1000, minimum=10)
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
    limits: SampleOptions = field(default_factory=SampleOptions)
    judgement: JudgementOptions = field(default_factory=JudgementOptions)
