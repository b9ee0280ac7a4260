"""`python -m experiments.speed search`: epochs of fine-tuning that MO-ASHA saves against random search, in one run.

Random designs are fine-tuned once, all of them to the end, and judged at every rung. Then both samplers search among
these designs, many times with other seeds, and every trial costs the epochs that it would have taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import optuna
import torch

from archwright.compression.finetuning import extract_trainable, finetune
from archwright.configs import compress as o
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.costs import COSTS
from archwright.progress import Bar, progress, quiet
from archwright.search import EPOCHS, SAMPLERS, Choices, Config, Objective, config_of, rungs, sample, search
from archwright.spaces.subnetwork import SubnetSpace, subnet_space
from archwright.statistics import hypervolume_over_time
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import SubnetSpec
from archwright.training.task_data import TaskData, load_checkpoint, load_task_data
from experiments.speed.ratios import BenchConfig, Ratio, ratio

TRAINING_ROWS, VALIDATION_ROWS, LONGEST = 320, 300, 24
RUNGS = rungs(1.0, 5.0)
"""Epochs, as in the paper: 1, 3 and 5."""
DESIGNS = 32
BUDGET = RUNGS[-1] * DESIGNS / 4
"""Epochs that a search may spend: random search tries a quarter of the designs with them."""
SEARCHES = 8
"""Searches of each sampler per round."""
METHODS = ("random", "mo-asha")
SETTINGS = o.SupernetOptions(order="none", epochs=RUNGS[-1], batch_size=16, learning_rate=5e-4)
REFERENCE = (1.0, 1.0)


@dataclass(frozen=True)
class Table:
    """Designs that were fine-tuned: errors at every rung (designs x rungs), and sizes as shares of the whole."""

    errors: tuple[tuple[float, ...], ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Course:
    """How a search went: epochs spent, and the hypervolume, after each of its trials."""

    epochs: tuple[float, ...]
    volumes: tuple[float, ...]

    def epochs_until(self, volume: float) -> float:
        """Epochs spent when the hypervolume was first as large."""
        return next(e for e, v in zip(self.epochs, self.volumes, strict=True) if v >= volume)


def bench_search(settings: BenchConfig) -> list[Ratio]:
    """Epochs until both samplers have the hypervolume of the one that ends lower, and what the same epochs give."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with progress("bench: fine-tuning designs for both samplers", DESIGNS, "designs") as bar:
        table = table_of(settings.seed, bar)
    seeds = range(settings.seed, settings.seed + SEARCHES * settings.repeats)
    return ratios_of([{name: searched(name, table, seed) for name in METHODS} for seed in seeds])


def ratios_of(pairs: Sequence[dict[str, Course]]) -> list[Ratio]:
    """Of searches with the same seed: epochs until the hypervolume of the one that ends lower, and the ends."""
    spent = [{name: course.epochs_until(lower_end(pair)) for name, course in pair.items()} for pair in pairs]
    ends = [{name: course.volumes[-1] for name, course in pair.items()} for pair in pairs]
    where = f"{DESIGNS} parts of MiniLM, {TRAINING_ROWS} movie reviews"
    return [
        ratio(f"epochs until the same hypervolume: random / MO-ASHA ({where})", spent, "random", "mo-asha", ">= 1"),
        ratio(f"hypervolume after {BUDGET:g} epochs: MO-ASHA / random", ends, "mo-asha", "random", ">= 1"),
    ]


def lower_end(pair: dict[str, Course]) -> float:
    return min(course.volumes[-1] for course in pair.values())


def table_of(seed: int, bar: Bar) -> Table:
    """Random designs of the SMALL space, fine-tuned by themselves from MiniLM's weights, judged at every rung."""
    data = o.DataOptions(train_rows=TRAINING_ROWS, validation_rows=VALIDATION_ROWS, max_length=LONGEST)
    task_data = load_task_data(o.ModelOptions(), data, seed=seed, device="cpu")
    start = load_checkpoint(task_data, o.ModelOptions(), SETTINGS)
    space = subnet_space("small", read_anatomy(start.config))
    keeps = designs(space, np.random.default_rng(seed))
    errors = []
    for keep in keeps:
        errors.append(tuple(errors_at_rungs(task_data, extract_trainable(start, keep))))
        bar.advance()
    count = COSTS["nonembedding_parameters"].measure
    whole = count(space.anatomy, space.anatomy.full, length=1)
    return Table(tuple(errors), tuple(count(space.anatomy, keep, length=1) / whole for keep in keeps))


def designs(space: SubnetSpace, rng: np.random.Generator) -> list[SubnetSpec]:
    """Different random sub-networks that have a layer left to train."""
    found: dict[str, SubnetSpec] = {}
    while len(found) < DESIGNS:
        config = sample(space.choices, rng)
        if config["layers"] and (config["heads"] or config["units"]):
            found.setdefault(str(config), space.build(config))
    return list(found.values())


def errors_at_rungs(task_data: TaskData, network: PrunedNetwork) -> list[float]:
    """One fine-tuning, stopped at every rung to look at the validation error."""
    state, found = InMemory(), []
    for epochs in RUNGS:
        with quiet():
            finetune(task_data, network, SETTINGS, epochs=epochs, checkpoints=state)
        found.append(task_data.error(network, task_data.validation))
    return found


@dataclass
class InMemory:
    """Where a training goes on."""

    state: dict[str, Any] | None = None

    def load(self) -> dict[str, Any] | None:
        return self.state

    def save(self, state: dict[str, Any]) -> None:
        self.state = copied(state)


def copied(value: Any) -> Any:
    """The same with tensors of its own."""
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    return value.clone() if isinstance(value, torch.Tensor) else value


@dataclass(frozen=True)
class Trained:
    """The designs of a table as a space: which one, and for how many epochs."""

    table: Table
    epochs: tuple[float, ...]

    @property
    def choices(self) -> Choices:
        return {"design": range(len(self.table.errors)), EPOCHS: self.epochs}

    def build(self, config: Config) -> tuple[float, float]:
        """Error and size."""
        return self.table.errors[config["design"]][RUNGS.index(config[EPOCHS])], self.table.shares[config["design"]]

    def canonical(self, config: Config) -> Config:
        return config


def searched(sampler: str, table: Table, seed: int) -> Course:
    """A search among the designs of the table, as far as its epochs reach."""
    space = Trained(table, tuple(SAMPLERS[sampler].epochs(RUNGS)))
    study = optuna.create_study(directions=["minimize"] * 2, sampler=SAMPLERS[sampler](space.choices, seed=seed))
    measures = [Objective("error", lambda c: c.built[0]), Objective("share", lambda c: c.built[1])]
    epochs: list[float] = []
    while sum(epochs) < BUDGET and len(epochs) < len(RUNGS) * DESIGNS:
        search(study, space, measures, trials=len(epochs) + 1)
        epochs = costs([config_of(space.choices, trial) for trial in study.trials])
    volumes = hypervolume_over_time([trial.values for trial in study.trials], REFERENCE)
    return Course(tuple(accumulate(epochs)), tuple(volumes))


def costs(configs: Sequence[Config]) -> list[float]:
    """Epochs of each trial: those beyond what its design was trained for before."""
    reached: dict[int, float] = {}
    found = []
    for config in configs:
        before = reached.get(config["design"], 0.0)
        reached[config["design"]] = max(before, config[EPOCHS])
        found.append(reached[config["design"]] - before)
    return found
