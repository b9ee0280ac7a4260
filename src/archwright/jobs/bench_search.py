"""`archwright bench search`: epochs of fine-tuning that MO-ASHA saves against random search, in one run."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import optuna
import torch

from archwright.jobs import options as o
from archwright.jobs.bench import Ratio, ratio
from archwright.jobs.methods.standard import design_name, frozen_as
from archwright.jobs.scene import Scene, build_scene
from archwright.jobs.training import fine_tuned, fresh
from archwright.judge import hypervolume_over_time
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives import COSTS
from archwright.progress import Bar, progress, quiet
from archwright.search import EPOCHS, SAMPLERS, Candidate, Objective, largest, search, smallest
from archwright.spaces.subnetwork import subnet_space
from archwright.spaces.trained import TrainedSpace
from archwright.subnet.extract import extract
from archwright.subnet.keep import anatomy

TRAINING_ROWS, VALIDATION_ROWS, LONGEST = 640, 300, 24
RUNGS = (0.2, 0.6, 1.0)
"""Epochs: 128, 384 and 640 sentences."""
BUDGET = 8.0
"""Epochs that each sampler may spend in a round: random search fine-tunes eight designs with them."""
METHODS = ("random", "mo-asha")
SETTINGS = o.Supernet(order="none", epochs=RUNGS[-1], batch_size=16, learning_rate=5e-4)
REFERENCE = (1.0, 1.0)
WHERE = f"MiniLM, {TRAINING_ROWS} movie reviews, rungs of {'/'.join(map(str, RUNGS))} epochs"


@dataclass(frozen=True)
class Course:
    """How far a search has come: epochs spent, and the hypervolume, after each of its trials."""

    epochs: tuple[float, ...]
    volumes: tuple[float, ...]

    def epochs_until(self, volume: float) -> float:
        """Epochs spent when the hypervolume was first as large."""
        return next(e for e, v in zip(self.epochs, self.volumes, strict=True) if v >= volume)


def bench_search(settings: o.Bench) -> list[Ratio]:
    """Epochs until both have the hypervolume of the one that ends lower, and what the same epochs give."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    total = settings.repeats * len(METHODS) * BUDGET
    with progress("bench: search", total, "epochs") as bar:
        rounds = [one_round(settings.seed + index, bar) for index in range(settings.repeats)]
    return ratios_of(rounds)


def ratios_of(rounds: Sequence[dict[str, Course]]) -> list[Ratio]:
    spent = []
    for courses in rounds:
        common = min(course.volumes[-1] for course in courses.values())
        spent.append({name: course.epochs_until(common) for name, course in courses.items()})
    ends = [{name: course.volumes[-1] for name, course in courses.items()} for courses in rounds]
    return [
        ratio(
            f"epochs until the same hypervolume: random search / MO-ASHA ({WHERE})", spent, "random", "mo-asha", ">= 1"
        ),
        ratio(f"hypervolume after {BUDGET:g} epochs: MO-ASHA / random search", ends, "mo-asha", "random", ">= 1"),
    ]


def one_round(seed: int, bar: Bar) -> dict[str, Course]:
    """Both samplers on the same rows, from the same weights, with the same first designs."""
    data = o.Data(train_rows=TRAINING_ROWS, validation_rows=VALIDATION_ROWS, max_length=LONGEST)
    scene = build_scene(o.Model(), data, seed=seed, device="cpu")
    start = fresh(scene, o.Model(), SETTINGS)
    return {name: course_of(name, Trainer(scene, start, bar), seed) for name in METHODS}


class Spent(Exception):
    """The epochs of a search are used up."""


@dataclass
class InMemory:
    """The state of one training."""

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


@dataclass
class Trainer:
    """Fine-tunes designs, each from where its last rung ended, and counts the epochs."""

    scene: Scene
    start: PrunedNetwork
    bar: Bar
    spent: float = 0.0
    states: dict[str, InMemory] = field(default_factory=dict)
    reached: dict[str, float] = field(default_factory=dict)

    def error(self, candidate: Candidate) -> float:
        config, name = candidate.config, design_name(candidate.config)
        more = config[EPOCHS] - self.reached.get(name, 0.0)
        if self.spent + more > BUDGET + 1e-9:
            raise Spent
        network = frozen_as(extract(self.start, candidate.built), self.start)
        with quiet():
            fine_tuned(
                self.scene,
                network,
                SETTINGS,
                epochs=config[EPOCHS],
                checkpoints=self.states.setdefault(name, InMemory()),
            )
        self.spent, self.reached[name] = self.spent + more, config[EPOCHS]
        self.bar.advance(more)
        return self.scene.error(network, self.scene.validation)


def course_of(sampler: str, trainer: Trainer, seed: int) -> Course:
    """A search until its epochs are used up."""
    of = anatomy(trainer.start.config)
    strategy = SAMPLERS[sampler]
    space = TrainedSpace(subnet_space("small", of), tuple(strategy.epochs(RUNGS)))
    first = [largest(space.choices), smallest(space.choices)]
    study = optuna.create_study(directions=["minimize"] * 2, sampler=strategy(space.choices, seed=seed, first=first))
    epochs: list[float] = []
    with suppress(Spent):
        search(
            study,
            space,
            [Objective("error", trainer.error), Objective("share", share_of(space))],
            trials=1000,
            told=lambda trial: epochs.append(trainer.spent),
        )
    points = [trial.values for trial in study.trials if trial.values]
    return Course(tuple(epochs), tuple(hypervolume_over_time(points, REFERENCE)))


def share_of(space: TrainedSpace) -> Callable[[Candidate], float]:
    """Non-embedding parameters as a share of the whole network's."""
    count = COSTS["nonembedding_parameters"].measure
    whole = count(space.anatomy, space.anatomy.full, length=1)
    return lambda candidate: count(space.anatomy, candidate.built, length=1) / whole
