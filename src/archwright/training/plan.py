"""What one training is: its context (config, run folder, processes), its objective, and the plan made of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from archwright.configs.training import TrainConfig
from archwright.data.encoding import Encoded
from archwright.errors import BadInput
from archwright.store import RunFolder
from archwright.training.collapse import CollapseWatch
from archwright.training.distributed import ProcessGroup
from archwright.training.loop import Carry, Update
from archwright.training.recipes import Recipe, merge_recipe
from archwright.training.teaching.answers import KeptAnswers

PRECISION = "precision"
"""Note of a run: the precision that was decided when it began."""


@dataclass(frozen=True)
class TrainingContext:
    """What is trained, how, and where: everything that follows from the config before any data is read."""

    config: TrainConfig
    objective: "TrainingObjective"
    recipe: Recipe
    """The preset for this objective and task, with the options given over it."""
    run: RunFolder
    group: ProcessGroup

    @property
    def seed(self) -> int:
        return self.config.output.seed

    @property
    def device(self) -> torch.device:
        return self.group.device

    @property
    def precision(self) -> str:
        """Of the matrix products; float32 in runs of versions that noted none."""
        return str((self.run.note(PRECISION) or {"precision": "float32"})["precision"])


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """Everything that one training needs, before it begins."""

    model: nn.Module
    """All that is trained, what is thrown away afterwards included."""
    network: Any
    """What is kept."""
    tokenizer: Any
    batches: Callable[[int], Sequence[Any]]
    """Epoch number -> its batches."""
    update: Update
    """One step: a batch -> its loss, gradients left in the Parameters."""
    evaluate: Callable[[], Mapping[str, Any]]
    """The network on rows that it does not learn from: metrics by name."""
    rows: int
    """To learn from."""
    encoded: Mapping[str, Encoded] = field(default_factory=dict)
    """The rows that are read, by split: the run is bound to them."""
    carry: Carry | None = None
    new_head: bool = False
    """Whether the head is untrained, so that evaluating before training means nothing."""
    extra_networks: Mapping[str, Any] = field(default_factory=dict)
    """Networks that are kept too, by name of their folder."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """About data and teacher, for the result."""
    prepare: Callable[[], Mapping[str, Any]] = dict
    """What comes before the training, such as that of a teacher; returns further facts."""
    teacher: KeptAnswers | None = None
    """Whom the update asks, where it asks one."""
    taught: Callable[[], Encoded] | None = None
    """The rows that the teacher answers: those of the batches. Asked for when all is prepared."""
    watch: CollapseWatch | None = None
    """What shows that the training has collapsed, for tasks where that can be seen."""
    answer_test_rows: Callable[[], Mapping[str, Any]] = dict
    """The trained network's answers to rows without labels, by file of a submission."""


@dataclass(frozen=True)
class TrainingObjective:
    """One way to learn: everything that `train` must know about it."""

    name: str
    stage: str
    """Which half of a preset it follows: pretraining (text) or finetuning (a task)."""
    plan: Callable[[TrainingContext], TrainingPlan]
    """Reads data and networks; everything that can be wrong with them is found here, before anything is trained."""
    head: str | None = None
    """Head that a network learns with from text; None: it learns a task, which has a head of its own."""
    teacher: bool | None = False
    """Whether it needs a teacher; None: it may have one."""
    causal: bool = False
    """Whether a token sees those before it alone."""


def check_batch(rows: int, context: TrainingContext, source: str) -> None:
    """Refuses data that is not enough for one update."""
    needed = context.recipe.batch_size * context.config.schedule.accumulate * context.group.processes
    if rows < needed:
        raise BadInput(
            f"{source} has {rows} rows, fewer than the {needed} of one update; give more, or a smaller --batch-size."
        )


def training_recipe(config: TrainConfig, objective: TrainingObjective) -> Recipe:
    """The preset for this objective and task, with the options given over it; BadInput for numbers out of range."""
    given = {**vars(config.schedule), "max_length": config.task.max_length}
    return merge_recipe(config.objective.preset, objective.stage, config.task.task, given)
