"""What every search of a command shares: trained rows, their statistics, folds, and who does the work."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from archwright.errors import BadInput
from archwright.jobs import scoring_options as so
from archwright.jobs.discovery.statistics import Statistics, seen, without_proxies
from archwright.jobs.discovery.table import Table
from archwright.jobs.discovery.trial import Trial
from archwright.jobs.eyes import Eyes, eyes
from archwright.jobs.rank import benchmark_of
from archwright.jobs.ranking import LEAST_ROWS, Field
from archwright.jobs.seeing import Glass, glass_of
from archwright.proxies.formula import EXTENDED, INPUTS
from archwright.proxies.simplifying import Chain
from archwright.search import Config
from archwright.spaces.formulas import FACTORS, WITHOUT, FormulaSpace
from archwright.store import digest

SPACES = {"lpzero": INPUTS, "extended": EXTENDED}
TABLED = 2
"""Unary operations up to which statistics of all chains can be taken before a search."""


@dataclass(frozen=True)
class Land:
    """Where formulas are searched."""

    field: Field
    glass: Glass
    space: FormulaSpace
    trial: Trial
    table: Table
    folder: Path
    eyes: Eyes

    @property
    def digest(self) -> str:
        """Name of the rows and statistics."""
        return digest(self.table.values.tobytes(), self.trial.truth.tobytes(), repr(self.trial.groups))


@contextmanager
def land_of(table: so.Table, formulas: so.Formulas, recording: so.Recording) -> Iterator[Land]:
    """Rows, folds and the statistics of every network; BadInput for whatever cannot be."""
    factors = FACTORS if formulas.factor else (WITHOUT,)
    space = FormulaSpace(formulas.unary, SPACES[formulas.inputs], formulas.reduction, factors)
    _, benchmark = benchmark_of(table)
    target = table.target or benchmark.target
    rows = tuple(row for row in benchmark.rows if np.isfinite(row.trained.get(target, np.nan)))
    if len(rows) < LEAST_ROWS:
        raise BadInput(f"discovering needs at least {LEAST_ROWS} rows with a result, {benchmark.name} has {len(rows)}.")
    glass = glass_of(benchmark.space, so.Proxies(proxies=("parameters",)), recording)
    field = Field(benchmark, target, rows, {}, {}, {}, glass.loss)
    trial = Trial.of(field.truth, field.networks, field.cells, seed=recording.seed, fitness=formulas.fitness)
    with eyes(recording.workers, recording.ray) as see:
        known = table_of(glass, configs_of(field, trial), space.looked_at, space.chains, recording.out, see)
        yield Land(field, glass, space, trial, known, recording.out, see)


def configs_of(field: Field, trial: Trial) -> list[Config]:
    """One config of every network, in the order of the trial."""
    of = dict(zip(field.networks, field.rows, strict=True))
    return [of[name].config for name in trial.names]


def table_of(
    glass: Glass, configs: list[Config], inputs: tuple[str, ...], chains: tuple[Chain, ...], folder: Path, see: Eyes
) -> Table:
    looks = [Statistics(without_proxies(glass.look(config)), inputs, chains) for config in configs]
    return Table.of(inputs, chains, seen(looks, folder, see))
