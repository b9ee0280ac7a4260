"""What a training was asked for, where it is done, and what a lesson makes of both."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from archwright.configs import compress as o
from archwright.configs import training as to
from archwright.errors import BadInput
from archwright.networks.embedded import EMBEDDED
from archwright.store import RunFolder
from archwright.training.distributed import ProcessGroup
from archwright.training.loop import Update
from archwright.training.objectives import OBJECTIVES, TrainingObjective, lesson_named
from archwright.training.recipes import Recipe, recipe_of

COMMAND = "train"


@dataclass(frozen=True)
class TrainConfig:
    """All options of a training."""

    student: to.StudentOptions
    lesson: to.ObjectiveOptions
    pace: to.ScheduleOptions
    data: to.TaskOptions
    checks: to.CheckOptions
    output: o.OutputOptions

    @property
    def name(self) -> str:
        """Of the lesson."""
        return lesson_named(self.lesson.lesson, corpus=self.lesson.corpus is not None)

    @property
    def way(self) -> TrainingObjective:
        return OBJECTIVES[self.name]

    @property
    def recipe(self) -> Recipe:
        """The preset for this lesson and task, with the options given over it."""
        given = {**vars(self.pace), "max_length": self.data.max_length}
        return recipe_of(self.lesson.preset, self.way.stage, self.data.task, given)

    def as_options(self) -> dict[str, Any]:
        """As JSON values that mean the same in every folder."""
        values = {f.name: getattr(group, f.name) for group in vars(self).values() for f in fields(group)}
        located = {name: whereabouts(values[name]) for name in ("model", "teacher", "tokenizer")}
        plain = json.loads(json.dumps({**values, **located}, default=lambda value: str(Path(value).resolve())))
        return {"command": COMMAND, **plain}


def whereabouts(source: str | None) -> str | None:
    """The same folder, seen from everywhere; names stay names."""
    return str(Path(source).resolve()) if source and source not in EMBEDDED and Path(source).is_dir() else source


@dataclass(frozen=True)
class TrainingContext:
    """Where a training is done."""

    run: RunFolder
    group: ProcessGroup
    seed: int

    @property
    def device(self) -> torch.device:
        return self.group.device


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """Everything that one training needs, before it begins."""

    model: nn.Module
    """All that is trained, what is thrown away afterwards included."""
    network: Any
    """What is kept."""
    tokenizer: Any
    batches: Callable[[int], Sequence[Any]]
    update: Update
    judged: Callable[[], Mapping[str, Any]]
    """The network on rows that it does not learn from: metrics by name."""
    rows: int
    """To learn from."""
    carry: Any = None
    untrained: bool = False
    """Whether the head is new, so that judging before training means nothing."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """Networks that are kept too, by name."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the result tells about data and teacher."""
    prepared: Callable[[], Mapping[str, Any]] = dict
    """What comes before the training, such as that of a teacher; returns what the result tells of it."""
    answers: Callable[[], Mapping[str, Any]] = dict
    """The trained network's answers to rows without labels, by file of a submission."""


def check_batch(rows: int, recipe: Recipe, group: ProcessGroup, accumulate: int, source: str) -> None:
    """Refuses data that is not enough for one update."""
    needed = recipe.batch_size * accumulate * group.processes
    if rows < needed:
        raise BadInput(
            f"{source} has {rows} rows, fewer than the {needed} of one update; give more, or a smaller --batch-size."
        )
