"""What every search of a command shares: trained rows, their statistics, folds, and who does the work."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from archwright.configs import scoring as so
from archwright.discovery.folds import FoldedRows
from archwright.discovery.lazy_table import LazyTable
from archwright.discovery.phases import Phases
from archwright.discovery.published_proxies import known_scores, marked
from archwright.discovery.score_table import Table, Values
from archwright.discovery.statistics import Statistics, seen, without_proxies
from archwright.errors import BadInput
from archwright.parallel.pool import WorkerPool, worker_pool
from archwright.proxies.formulas.operations import Chain
from archwright.scoring.ranking import LEAST_ROWS, RankedRows, benchmark_of
from archwright.scoring.request import ScoreRequest
from archwright.scoring.scorer import Scorer, ScoringSetup, scoring_setup
from archwright.search import Config
from archwright.spaces.formulas import FACTORS, WITHOUT, FormulaSpace, inputs_of
from archwright.store import Scores, digest

TABLED = 2
"""Unary operations up to which statistics of all chains can be taken before a search."""


@dataclass(frozen=True)
class DiscoveryContext:
    """Where formulas are searched."""

    field: RankedRows
    setup: ScoringSetup
    space: FormulaSpace
    trial: FoldedRows
    table: Table | LazyTable
    known: Mapping[str, Values]
    """Scores of published proxies, one per network."""
    folder: Path
    eyes: WorkerPool

    @property
    def looks(self) -> list[ScoreRequest]:
        """At every network, in the order of the trial."""
        return looks_of(self.setup, configs_of(self.field, self.trial))

    @property
    def digest(self) -> str:
        """Name of the rows and statistics."""
        return digest(self.table.content, self.trial.truth.tobytes(), repr(self.trial.groups))


@contextmanager
def open_context(
    table: so.BenchmarkOptions,
    formulas: so.FormulaOptions,
    recording: so.RecordingOptions,
    clock: Phases,
    *,
    mark: str = "none",
) -> Iterator[DiscoveryContext]:
    """Rows, folds, the statistics of every network and scores of published proxies; BadInput for what cannot be."""
    factors = FACTORS if formulas.factor else (WITHOUT,)
    space = FormulaSpace(formulas.unary, inputs_of(formulas.inputs), formulas.reduction, factors)
    field, setup = field_of(table, recording, marked(mark))
    trial = FoldedRows.of(field.truth, field.networks, field.cells, seed=recording.seed, fitness=formulas.fitness)
    configs = configs_of(field, trial)
    with worker_pool(recording.workers, recording.ray) as see:
        with clock.phase("statistics"):
            found = statistics_of(setup, configs, space, recording.out, see)
        with clock.phase("known proxies"):
            known = known_scores(setup, configs, Scorer(Scores(recording.out), see)) if marked(mark) else {}
        yield DiscoveryContext(field, setup, space, trial, found, known, recording.out, see)


def field_of(
    table: so.BenchmarkOptions, recording: so.RecordingOptions, proxies: tuple[str, ...]
) -> tuple[RankedRows, ScoringSetup]:
    """The rows with a result, and how their networks are looked at."""
    _, benchmark = benchmark_of(table)
    target = table.target or benchmark.target
    rows = tuple(row for row in benchmark.rows if np.isfinite(row.trained.get(target, np.nan)))
    if len(rows) < LEAST_ROWS:
        raise BadInput(f"discovering needs at least {LEAST_ROWS} rows with a result, {benchmark.name} has {len(rows)}.")
    setup = scoring_setup(benchmark.space, so.ProxyOptions(proxies=proxies or ("parameters",)), recording)
    return RankedRows(benchmark, target, rows, {}, {}, {}, setup.loss), setup


def configs_of(field: RankedRows, trial: FoldedRows) -> list[Config]:
    """One config of every network, in the order of the trial."""
    of = dict(zip(field.networks, field.rows, strict=True))
    return [of[name].config for name in trial.names]


def statistics_of(
    setup: ScoringSetup, configs: list[Config], space: FormulaSpace, folder: Path, see: WorkerPool
) -> Table | LazyTable:
    """Of all chains before a search, or of each when it is wanted."""
    if space.unary > TABLED:
        return lazily(looks_of(setup, configs), space, folder, see)
    return table_of(setup, configs, space.looked_at, space.chains, folder, see)


def lazily(looks: list[ScoreRequest], space: FormulaSpace, folder: Path, see: WorkerPool) -> LazyTable:
    return LazyTable(looks, space.looked_at, folder, see)


def looks_of(setup: ScoringSetup, configs: list[Config]) -> list[ScoreRequest]:
    return [without_proxies(setup.look(config)) for config in configs]


def table_of(
    setup: ScoringSetup,
    configs: list[Config],
    inputs: tuple[str, ...],
    chains: tuple[Chain, ...],
    folder: Path,
    see: WorkerPool,
) -> Table:
    looks = [Statistics(look, inputs, chains) for look in looks_of(setup, configs)]
    return Table.of(inputs, chains, seen(looks, folder, see))
