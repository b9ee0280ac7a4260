"""What a one-shot super-network is trained and evaluated on: words hidden in a text, or labelled rows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn
from transformers.modeling_outputs import SequenceClassifierOutput

from archwright.configs import design as do
from archwright.data.batching import Batch, Encoded, batches, encode, evaluation_batches
from archwright.data.encoding import NO_TARGET
from archwright.data.public_data import WIKITEXT, WIKITEXT_ORIGIN, public_data, resolve_model
from archwright.data.tasks.task import Task, load_task
from archwright.data.text.kinds import TEXT_KINDS
from archwright.data.text.snippets import Snippets, snippets
from archwright.data.text.tokenizer import load_tokenizer
from archwright.errors import BadInput
from archwright.networks.nlu.supernet import NluSupernet
from archwright.networks.roles import Roles
from archwright.objectives.error import in_row_order
from archwright.scoring.setup import batch_size
from archwright.spaces.architectures import ArchitectureSpace
from archwright.statistics import METRICS
from archwright.store import digest
from archwright.subnet.supernet import plain_update
from archwright.tasks.kind import EVALUATION_TOKENS
from archwright.training.loop import Update
from archwright.training.losses import task_loss
from archwright.training.objectives.heads import masked_token_logits
from archwright.training.objectives.mlm import mlm_update
from archwright.training.recipes import PRESETS

MOST_ROWS = 2048
"""Windows of a text that are made; longer trainings read them again."""
MAX_LENGTH = 128


@dataclass(frozen=True, eq=False)
class SupernetLearner:
    """A super-network that is ready to learn."""

    network: nn.Module
    """Whose paths run, with the head that its objective needs."""
    model: nn.Module
    """All that is trained: the network, and what is thrown away afterwards."""
    update: Update
    """A training step of whichever path runs."""
    score: Callable[[], float]
    """Of the path that runs, on validation rows; higher is better."""


class SupernetObjective(Protocol):
    """What to learn, and how well it was learnt."""

    @property
    def name(self) -> str: ...

    @property
    def metric(self) -> str: ...

    @property
    def vocabulary(self) -> int: ...

    @property
    def rows(self) -> int:
        """To learn from."""

    @property
    def identity(self) -> str:
        """Another for other data."""

    def batches(self, epoch: int, size: int) -> Iterable[Batch]: ...

    def learner(self, supernet: NluSupernet) -> SupernetLearner:
        """The super-network with the head, the losses and the judgement of this objective."""


@dataclass(frozen=True)
class HiddenWordsObjective:
    """Masked language modelling on windows of a text, always the same words hidden."""

    windows: Snippets
    validation: int
    """How many of the last rows are for judging: windows of lines that nothing is learnt from."""
    seed: int
    name: str = "masked words"
    metric: str = "accuracy of hidden words"

    @property
    def vocabulary(self) -> int:
        return self.windows.vocabulary

    @property
    def rows(self) -> int:
        return len(self.windows.input_ids) - self.validation

    @property
    def identity(self) -> str:
        return digest(self.windows.input_ids.tobytes(), self.windows.labels.tobytes(), str(self.validation))

    def batches(self, epoch: int, size: int) -> Iterable[Batch]:
        order = np.random.default_rng((self.seed, epoch)).permutation(self.rows)
        return (self.batch(order[start : start + size]) for start in range(0, len(order), size))

    def batch(self, places: Any) -> Batch:
        ids, labels = (torch.from_numpy(part[places]) for part in (self.windows.input_ids, self.windows.labels))
        return Batch({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, labels, np.asarray(places))

    def learner(self, supernet: NluSupernet) -> SupernetLearner:
        return SupernetLearner(supernet, supernet, mlm_update(supernet), partial(self.accuracy, supernet))

    def accuracy(self, network: nn.Module) -> float:
        batch = self.batch(np.arange(len(self.windows.input_ids))[-self.validation :])
        hidden = batch.targets != NO_TARGET
        predictions = masked_token_logits(network, batch.inputs, hidden).argmax(dim=-1)
        return float((predictions == batch.targets[hidden]).double().mean())


class PathClassifier(nn.Module):
    """The encoder of a super-network with a linear head on the first token."""

    def __init__(self, encoder: nn.Module, labels: int) -> None:
        super().__init__()
        self.encoder, self.dropout = encoder, nn.Dropout(0.1)
        self.head = nn.Linear(encoder.config.hidden_size, labels)

    @property
    def device(self) -> torch.device:
        return self.head.weight.device

    def roles(self) -> Roles:
        """Of the path that runs."""
        roles: Roles = self.encoder.roles()
        return roles

    def forward(self, **inputs: torch.Tensor) -> SequenceClassifierOutput:
        first = self.encoder(**inputs).last_hidden_state[:, 0]
        return SequenceClassifierOutput(logits=self.head(self.dropout(first)))


@dataclass(frozen=True)
class TaskObjective:
    """Classes of labelled rows."""

    name: str
    metric: str
    vocabulary: int
    labels: tuple[str, ...]
    positive: int | None
    train: Encoded
    validation: Sequence[Batch]
    seed: int

    @property
    def identity(self) -> str:
        validation = (part for batch in self.validation for part in (batch.inputs["input_ids"], batch.targets))
        return digest(
            self.train.ids.tobytes(), self.train.targets.tobytes(), *(part.numpy().tobytes() for part in validation)
        )

    @property
    def rows(self) -> int:
        return len(self.train)

    def batches(self, epoch: int, size: int) -> Iterable[Batch]:
        return batches(self.train, batch_size=size, rng=np.random.default_rng((self.seed, epoch)))

    def learner(self, supernet: NluSupernet) -> SupernetLearner:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = PathClassifier(supernet.encoder, len(self.labels))
        return SupernetLearner(network, network, plain_update(network, loss=task_loss), partial(self.accuracy, network))

    def accuracy(self, network: nn.Module) -> float:
        rows = list(self.validation)
        answers = in_row_order([network(**batch.inputs).logits.argmax(-1) for batch in rows], rows)
        targets = in_row_order([batch.targets for batch in rows], rows)
        if self.positive is not None:
            answers, targets = answers == self.positive, targets == self.positive
        return float(METRICS[self.metric](answers, targets))


def load_objective(
    space: ArchitectureSpace, options: do.OneShotOptions, scoring: do.DesignScoringOptions
) -> SupernetObjective:
    """Labelled rows where a task is named, else words of the text."""
    if options.task:
        return load_task_objective(options, scoring)
    text = scoring.text or public_data(WIKITEXT, origin=WIKITEXT_ORIGIN, option="--text")
    asked = MOST_ROWS if options.steps is None else options.steps * (options.batch_size or MOST_ROWS)
    judged = options.validation_rows
    _, length = batch_size(space, scoring)
    vocabulary = TEXT_KINDS[space.text].encoder(text)
    rows = min(asked, MOST_ROWS) + judged
    windows = snippets(text, vocabulary, "mlm", rows=rows, length=length, seed=(scoring.seed, 3), held_out=judged)
    return HiddenWordsObjective(windows, judged, scoring.seed)


def load_task_objective(options: do.OneShotOptions, scoring: do.DesignScoringOptions) -> TaskObjective:
    """The rows that a super-network with a teacher learns and is judged on."""
    task = load_task(
        options.task,
        data=options.data,
        seed=scoring.seed,
        validation_rows=options.validation_rows,
        held_out=held_out_share(),
    )
    check_task_kind(task, options)
    tokenizer = load_tokenizer(resolve_model("minilm"))
    parts = {name: encode(task.splits[name], tokenizer, max_length=MAX_LENGTH) for name in ("train", "validation")}
    return TaskObjective(
        name=str(options.task),
        metric=task.metric,
        vocabulary=len(tokenizer),
        labels=task.labels,
        positive=task.positive,
        train=parts["train"],
        validation=evaluation_batches(parts["validation"], tokens=EVALUATION_TOKENS),
        seed=scoring.seed,
    )


def held_out_share() -> float:
    """Of a task's training rows, those that paths are judged on."""
    recipe = PRESETS["spos"].finetuning
    assert recipe is not None
    return recipe.held_out


def check_task_kind(task: Task, options: do.OneShotOptions) -> None:
    """BadInput for a task that paths cannot be judged on by their answers."""
    if task.kind != "classification":
        raise BadInput(f"--task must have classes to tell apart, got {options.task!r}; try glue/SST-2.")
