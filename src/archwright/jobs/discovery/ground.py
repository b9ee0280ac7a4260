"""What every search of a command shares: trained rows, their statistics, folds, and who does the work."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from archwright.errors import BadInput
from archwright.jobs import scoring_options as so
from archwright.jobs.discovery.known import known_scores, marked
from archwright.jobs.discovery.lazy import Lazy
from archwright.jobs.discovery.phases import Phases
from archwright.jobs.discovery.statistics import Statistics, seen, without_proxies
from archwright.jobs.discovery.table import Table, Values
from archwright.jobs.discovery.trial import Trial
from archwright.jobs.eyes import Eyes, eyes
from archwright.jobs.looking import Look
from archwright.jobs.rank import benchmark_of
from archwright.jobs.ranking import LEAST_ROWS, Field
from archwright.jobs.seeing import Glass, Sight, glass_of
from archwright.proxies.simplifying import Chain
from archwright.search import Config
from archwright.spaces.formulas import FACTORS, WITHOUT, FormulaSpace, inputs_of
from archwright.store import Scores, digest

TABLED = 2
"""Unary operations up to which statistics of all chains can be taken before a search."""


@dataclass(frozen=True)
class Land:
    """Where formulas are searched."""

    field: Field
    glass: Glass
    space: FormulaSpace
    trial: Trial
    table: Table | Lazy
    known: Mapping[str, Values]
    """Scores of published proxies, one per network."""
    folder: Path
    eyes: Eyes

    @property
    def looks(self) -> list[Look]:
        """At every network, in the order of the trial."""
        return looks_of(self.glass, configs_of(self.field, self.trial))

    @property
    def digest(self) -> str:
        """Name of the rows and statistics."""
        return digest(self.table.content, self.trial.truth.tobytes(), repr(self.trial.groups))


@contextmanager
def land_of(
    table: so.Table, formulas: so.Formulas, recording: so.Recording, clock: Phases, *, mark: str = "none"
) -> Iterator[Land]:
    """Rows, folds, the statistics of every network and scores of published proxies; BadInput for what cannot be."""
    factors = FACTORS if formulas.factor else (WITHOUT,)
    space = FormulaSpace(formulas.unary, inputs_of(formulas.inputs), formulas.reduction, factors)
    field, glass = field_of(table, recording, marked(mark))
    trial = Trial.of(field.truth, field.networks, field.cells, seed=recording.seed, fitness=formulas.fitness)
    configs = configs_of(field, trial)
    with eyes(recording.workers, recording.ray) as see:
        with clock.phase("statistics"):
            found = statistics_of(glass, configs, space, recording.out, see)
        with clock.phase("known proxies"):
            known = known_scores(glass, configs, Sight(Scores(recording.out), see)) if marked(mark) else {}
        yield Land(field, glass, space, trial, found, known, recording.out, see)


def field_of(table: so.Table, recording: so.Recording, proxies: tuple[str, ...]) -> tuple[Field, Glass]:
    """The rows with a result, and how their networks are looked at."""
    _, benchmark = benchmark_of(table)
    target = table.target or benchmark.target
    rows = tuple(row for row in benchmark.rows if np.isfinite(row.trained.get(target, np.nan)))
    if len(rows) < LEAST_ROWS:
        raise BadInput(f"discovering needs at least {LEAST_ROWS} rows with a result, {benchmark.name} has {len(rows)}.")
    glass = glass_of(benchmark.space, so.Proxies(proxies=proxies or ("parameters",)), recording)
    return Field(benchmark, target, rows, {}, {}, {}, glass.loss), glass


def configs_of(field: Field, trial: Trial) -> list[Config]:
    """One config of every network, in the order of the trial."""
    of = dict(zip(field.networks, field.rows, strict=True))
    return [of[name].config for name in trial.names]


def statistics_of(glass: Glass, configs: list[Config], space: FormulaSpace, folder: Path, see: Eyes) -> Table | Lazy:
    """Of all chains before a search, or of each when it is wanted."""
    if space.unary > TABLED:
        return lazily(looks_of(glass, configs), space, folder, see)
    return table_of(glass, configs, space.looked_at, space.chains, folder, see)


def lazily(looks: list[Look], space: FormulaSpace, folder: Path, see: Eyes) -> Lazy:
    return Lazy(looks, space.looked_at, folder, see)


def looks_of(glass: Glass, configs: list[Config]) -> list[Look]:
    return [without_proxies(glass.look(config)) for config in configs]


def table_of(
    glass: Glass, configs: list[Config], inputs: tuple[str, ...], chains: tuple[Chain, ...], folder: Path, see: Eyes
) -> Table:
    looks = [Statistics(look, inputs, chains) for look in looks_of(glass, configs)]
    return Table.of(inputs, chains, seen(looks, folder, see))
