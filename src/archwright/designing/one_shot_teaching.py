"""What a one-shot super-network learns from a teacher (W-PCA, Appendix E.2, with the losses of its Appendix C).

Two stages, as in the paper: on text the states of the teacher's layers, then on a task its states and its answers. The
matrices from the super-network's states to the teacher's are shared by all paths: of what attention gives there is one
for BERT blocks and one for MobileBERT blocks, as in `train`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from archwright.configs import compress as o
from archwright.configs import design as do
from archwright.configs import training as to
from archwright.data.batching import Batch, Encoded
from archwright.data.epochs import shuffled_epochs
from archwright.data.public_data import WIKITEXT, WIKITEXT_ORIGIN, public_data
from archwright.data.text.corpus import encode_corpus, read_corpus
from archwright.data.text.kinds import TEXT_KINDS
from archwright.data.text.tokenizer import read_tokenizer
from archwright.designing.one_shot_objectives import (
    SupernetLearner,
    TaskObjective,
    check_task_kind,
    held_out_share,
)
from archwright.devices import resolve_device
from archwright.networks.load import load_saved_network, stock_config
from archwright.networks.nlu.supernet import NluSupernet, path, path_layers
from archwright.networks.pruned import PrunedConfig
from archwright.random_streams import DISTILLATION_PROJECTIONS, generator
from archwright.scoring.setup import batch_size
from archwright.spaces.architectures import ArchitectureSpace
from archwright.store import digest
from archwright.training.digests import digest_rows, digest_weights
from archwright.training.distributed import SINGLE_PROCESS
from archwright.training.objectives.distill import LossWeights, layerwise_update, real_tokens, state_loss
from archwright.training.objectives.finetune import load_task_teacher
from archwright.training.objectives.layers import (
    LayerStates,
    Projections,
    encoder_layers,
    layer_map,
    probe_layers,
    record_layers,
    run_network,
)
from archwright.training.objectives.pretraining import check_same_tokens
from archwright.training.pipeline import run_training
from archwright.training.students import MODEL, checkpoint_source, is_pruned_checkpoint, load_teacher
from archwright.training.task_data import TaskData, prepare_task_data
from archwright.training.teaching.answers import KeptAnswers

TEACHER_FOLDER = "teacher-{digest}"
TEACHER_EPOCHS, TEACHER_RATE, TEACHER_BATCH = 3.0, 5e-5, 32
"""How a teacher learns the task first, as in `train --teacher`."""
SCORED_ROWS = 32
"""Texts that are compared with the teacher at once."""


class PathProjections(Projections):
    """Matrices for all paths of a super-network: which one is for a layer's attention follows from its width."""

    def attention(self, number: int, state: torch.Tensor) -> torch.Tensor:
        projected: torch.Tensor = self.mixed[str(state.shape[-1])](state)
        return projected


def build_path_projections(network: nn.Module, teacher: Any, *, seed: int) -> PathProjections:
    """Of the widths that the blocks of the first layer have."""
    targets, merged = probe_layers(teacher), LayerStates()
    first = {f"block.{place}": next(iter(layer.blocks)) for place, layer in enumerate(path_layers(network))}
    for word in path_layers(network)[0].blocks:
        with path(network, {**first, "block.0": word}):
            states = probe_layers(network.encoder)
        merged.inputs[:], merged.hidden[1] = states.inputs, states.hidden[1]
        merged.attention[states.attention[1].shape[-1]] = states.attention[1]
    with torch.random.fork_rng(devices=[]):
        projections = PathProjections(merged, targets, {width: str(width) for width in merged.attention})
    draws = generator(seed, DISTILLATION_PROJECTIONS)
    for matrix in projections.parameters():
        nn.init.xavier_uniform_(matrix, generator=draws)
    return projections


def teach_paths(network: nn.Module, teacher: Any, weights: LossWeights, *, seed: int) -> tuple[Projections, Any]:
    """The matrices to the teacher's widths, and the training step of whichever path runs."""
    projections = build_path_projections(network, teacher, seed=seed)
    pairs = layer_map(len(path_layers(network)), len(encoder_layers(teacher)))
    answers = KeptAnswers(teacher, [theirs for _, theirs in pairs], logits=weights.logits > 0)
    some = {f"block.{place}": next(iter(layer.blocks)) for place, layer in enumerate(path_layers(network))}
    with path(network, some):  # layers are counted, and a super-network has them only on a path
        return projections, layerwise_update(network, answers, projections, weights)


@dataclass(frozen=True)
class LayerStatesObjective:
    """The first stage: the states of the teacher's layers on a text, no words to guess (gamma 0)."""

    train: Encoded
    validation: Encoded
    teacher_name: str
    vocabulary: int
    seed: int
    name: str = "the teacher's states"
    metric: str = "layer loss, negative"

    @property
    def rows(self) -> int:
        return len(self.train)

    @property
    def identity(self) -> str:
        weights = digest_weights(checkpoint_source(self.teacher_name), {})["digest"]
        return digest("states", digest_rows({"train": self.train, "validation": self.validation}), str(weights))

    def batches(self, epoch: int, size: int) -> Iterable[Batch]:
        return shuffled_epochs(self.train, size, (self.seed, 0))(epoch)

    def learner(self, supernet: NluSupernet) -> SupernetLearner:
        teacher = load_teacher(checkpoint_source(self.teacher_name))
        projections, update = teach_paths(supernet, teacher, LossWeights(), seed=self.seed)
        rows = shuffled_epochs(self.validation, SCORED_ROWS, (self.seed, 1))(0)
        score = partial(negative_state_loss, supernet, teacher, projections, rows)
        model = nn.ModuleDict({"student": supernet, "projections": projections})
        return SupernetLearner(supernet, model, update, score)


@torch.no_grad()
def negative_state_loss(network: Any, teacher: Any, projections: Projections, rows: Sequence[Batch]) -> float:
    """Of the path that runs: minus the mean over tokens of the loss that it was trained by."""
    pairs = layer_map(len(encoder_layers(network)), len(encoder_layers(teacher)))
    total, tokens = 0.0, 0
    for batch in rows:
        with record_layers(teacher) as targets:
            run_network(teacher, batch.inputs, logits=False)
        with record_layers(network) as states:
            run_network(network, batch.inputs, logits=False)
        real = real_tokens(batch)
        count = int(real.sum())
        total += count * float(state_loss(states, targets, projections, pairs, real, SINGLE_PROCESS))
        tokens += count
    return -total / tokens


@dataclass(frozen=True)
class TaughtTaskObjective(TaskObjective):
    """The second stage: states and answers of a teacher that has learnt the task (gamma 1), no labels."""

    teacher: Callable[[], Any] = lambda: None
    """Trains the teacher where it has not learnt the task yet; the same network every time."""
    teacher_identity: str = ""

    @property
    def identity(self) -> str:
        return digest(super().identity, self.teacher_identity)

    def learner(self, supernet: NluSupernet) -> SupernetLearner:
        plain, teacher = super().learner(supernet), self.teacher()
        weights = LossWeights(layers=1.0, logits=1.0)
        projections, update = teach_paths(plain.network, teacher, weights, seed=self.seed)
        model = nn.ModuleDict({"student": plain.network, "projections": projections})
        return SupernetLearner(plain.network, model, update, plain.score)


def load_text_stage(
    space: ArchitectureSpace, options: do.OneShotOptions, scoring: do.DesignScoringOptions
) -> LayerStatesObjective:
    """All of --text in rows without padding; its last lines say how near a path is to the teacher."""
    text = scoring.text or public_data(WIKITEXT, origin=WIKITEXT_ORIGIN, option="--text")
    tokenizer = TEXT_KINDS[space.text].tokenizer((), None)
    check_same_tokens(tokenizer, read_tokenizer(checkpoint_source(options.teacher)), options.teacher)
    _, length = batch_size(space, scoring)
    train, validation = (
        encode_corpus(part, tokenizer, layout="packed", max_length=length, causal=False)
        for part in read_corpus(text, None)
    )
    validation = validation.first(min(options.validation_rows, len(validation)))
    return LayerStatesObjective(train, validation, options.teacher, len(tokenizer), scoring.seed)


def load_task_stage(options: do.OneShotOptions, scoring: do.DesignScoringOptions) -> TaughtTaskObjective:
    """90 % of the task's training rows to learn from; of the others at most --validation-rows judge paths."""
    source = checkpoint_source(options.teacher)
    data = o.DataOptions(task=options.task, data=options.data, validation_rows=options.validation_rows)
    task_data = prepare_task_data(
        PrunedConfig.from_pretrained(source) if is_pruned_checkpoint(source) else stock_config(source),
        *(source, data),
        seed=scoring.seed,
        device=resolve_device("cpu"),
        held_out=held_out_share(),
    )
    check_task_kind(task_data.task, options)
    weights = str(digest_weights(source, {})["digest"])
    settings = (options.task, options.steps, teacher_batch_size(options), scoring.seed)
    identity = digest(weights, repr(settings), digest_rows(task_data.encoded))
    return TaughtTaskObjective(
        name=str(options.task),
        metric=task_data.task.metric,
        vocabulary=len(task_data.tokenizer),
        labels=task_data.task.labels,
        positive=task_data.task.positive,
        train=task_data.encoded["train"],
        validation=task_data.validation,
        seed=scoring.seed,
        teacher=cache(partial(train_task_teacher, options, scoring, task_data, identity)),
        teacher_identity=identity,
    )


def teacher_batch_size(options: do.OneShotOptions) -> int:
    """Rows of a step in which the teacher learns the task."""
    return min(TEACHER_BATCH, options.batch_size or TEACHER_BATCH)


def train_task_teacher(
    options: do.OneShotOptions, scoring: do.DesignScoringOptions, task_data: TaskData, identity: str
) -> Any:
    """The teacher as it is where its head is for the task, else fine-tuned on the rows that the paths learn from."""
    teacher, tuned = load_task_teacher(checkpoint_source(options.teacher), task_data)
    if tuned:
        return teacher.eval()
    folder = Path(scoring.out) / TEACHER_FOLDER.format(digest=identity[:12])
    config = to.TrainConfig(
        student=to.StudentOptions(model=options.teacher),
        objective=to.ObjectiveOptions(preset="spos"),  # which holds out the same rows
        schedule=to.ScheduleOptions(
            steps=options.steps,
            epochs=None if options.steps else TEACHER_EPOCHS,
            learning_rate=TEACHER_RATE,
            batch_size=teacher_batch_size(options),
        ),
        task=to.TaskOptions(task=options.task, data=options.data, validation_rows=options.validation_rows),
        checks=to.CheckOptions(submission=False),
        output=o.OutputOptions(seed=scoring.seed, threads=torch.get_num_threads()),
    )
    run_training(config, folder)
    return load_saved_network(folder / MODEL).eval()
