"""Layer-wise distillation (Wang 2025, W-PCA, Appendix C, Equations 5 to 7)."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.data.batching import Batch
from archwright.data.encoding import NO_TARGET
from archwright.data.epochs import masking, shuffled_epochs
from archwright.data.text.tokenizer import read_tokenizer
from archwright.errors import BadInput
from archwright.random_streams import DISTILLATION_PROJECTIONS, VALIDATION_BATCHES, generator
from archwright.subnet.importance import Loss
from archwright.subnet.supernet import labelled_logits
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.inheritance.start import check_start, start_from_teacher
from archwright.training.loop import Update, tokens_of
from archwright.training.losses import (
    mean_in_pieces,
    numbers_in,
    sigmoid_distillation,
    size_of,
    squared_error,
    targets_in,
    task_loss,
)
from archwright.training.objectives.heads import masked_token_logits
from archwright.training.objectives.layers import (
    LayerStates,
    Projections,
    build_projections,
    encoder_layers,
    layer_map,
    record_layers,
    run_network,
)
from archwright.training.objectives.mlm import mlm_loss
from archwright.training.objectives.pretraining import (
    VALIDATION_BATCH,
    Losses,
    check_same_tokens,
    evaluate_losses,
    load_corpus,
    pretraining_plan,
)
from archwright.training.plan import TrainingContext, TrainingObjective, TrainingPlan
from archwright.training.students import checkpoint_source, load_teacher
from archwright.training.teaching.answers import KeptAnswers, restore_tokens


def plan_distillation(context: TrainingContext) -> TrainingPlan:
    """Gamma 0: states alone, and tokens where --mlm-weight says so."""
    corpus, name = load_corpus(context), context.config.objective.teacher
    if name is None:
        raise BadInput("--lesson distil needs --teacher, for example minilm.")
    student, teacher = corpus.network, load_teacher(checkpoint_source(name)).to(context.device)
    check_same_tokens(corpus.tokenizer, read_tokenizer(checkpoint_source(name)), name)
    projections = build_projections(student, teacher, generator=generator(context.seed, DISTILLATION_PROJECTIONS))
    pairs = layer_map(len(encoder_layers(student)), len(encoder_layers(teacher)))
    weights = LossWeights(tokens=context.config.teaching.mlm_weight)
    answers = KeptAnswers(teacher, [theirs for _, theirs in pairs])

    def losses(batch: Batch, rng: np.random.Generator) -> Losses:
        text = restore_tokens(batch) if weights.tokens else batch
        with record_layers(teacher) as targets:
            run_network(teacher, text.inputs, logits=False)
        with record_layers(student) as states:
            run_network(student, text.inputs, logits=False)
        real = real_tokens(batch)
        loss = state_loss(states, targets, projections, pairs, real, SINGLE_PROCESS)
        found = {"loss": (float(loss), int(real.sum()))}
        if weights.tokens:
            found["mlm_loss"] = float(mlm_loss(student, batch, SINGLE_PROCESS)), targets_in(batch)
        return found

    def prepare() -> dict[str, Any]:
        if context.config.student.start == "random":
            return {}
        return start_from_teacher(context, student, teacher, corpus.train, projections)

    if context.config.student.start == "teacher":
        check_start(student, teacher)
    mask = masking(corpus.tokenizer) if weights.tokens else None
    validation = shuffled_epochs(corpus.validation, VALIDATION_BATCH, (context.seed, VALIDATION_BATCHES), mask)(0)
    return pretraining_plan(
        context,
        corpus,
        model=nn.ModuleDict({"student": student, "projections": projections}),
        batches=shuffled_epochs(corpus.train, context.recipe.batch_size, (context.seed, 0), mask),
        update=layerwise_update(student, answers, projections, weights, group=context.group),
        evaluate=partial(evaluate_losses, student, validation, losses),
        facts={"teacher": name, "layers": pairs},
        prepare=prepare,
        teacher=answers,
        taught=lambda: corpus.train,
    )


OBJECTIVE = TrainingObjective("distil", "pretraining", plan_distillation, head="mlm", teacher=True)


@dataclass(frozen=True)
class LossWeights:
    """How much each part of the loss counts; a part of weight 0 is not worked out."""

    layers: float = 1.0
    """The teacher's states: Equations 5 and 6."""
    logits: float = 0.0
    """The teacher's answers: gamma of Equation 7."""
    labels: float = 0.0
    """The labels of a task."""
    tokens: float = 0.0
    """Hidden tokens of the text: batches must be masked."""


def layerwise_update(
    student: Any,
    teacher: KeptAnswers,
    projections: Projections,
    weights: LossWeights,
    *,
    group: ProcessGroup = SINGLE_PROCESS,
    independent: bool = False,
    label_loss: Loss | None = None,
) -> Update:
    """A step towards the teacher's states and logits, the labels and the hidden tokens, as far as they count.

    Of masked batches the teacher reads the text as it was, and states are compared where nothing was hidden.
    `independent` means that every output is a yes or no of its own.
    """
    pairs = layer_map(len(encoder_layers(student)), len(encoder_layers(teacher.network)))
    answers_task = weights.logits > 0 or weights.labels > 0

    def update(batch: Any, rng: np.random.Generator, share: float) -> torch.Tensor:
        batch = batch.to(next(student.parameters()).device)
        targets, wanted = teacher(restore_tokens(batch) if weights.tokens else batch)
        hidden = batch.targets != NO_TARGET if weights.tokens else None
        with record_layers(student) if weights.layers else nullcontext() as states:
            if hidden is not None:
                logits = masked_token_logits(student, batch.inputs, hidden)
            else:
                logits = run_network(student, batch.inputs, logits=answers_task)
        parts = []
        if states is not None and targets is not None:
            error = state_loss(states, targets, projections, pairs, real_tokens(batch), group, hidden=hidden)
            parts.append(weights.layers * error)
        if hidden is not None:
            parts.append(weights.tokens * task_loss(logits, batch.targets[hidden], group))
        if logits is not None and wanted is not None and weights.logits:
            parts.append(weights.logits * answer_loss(batch, logits, wanted, group, independent=independent))
        if logits is not None and label_loss is not None and weights.labels:
            parts.append(weights.labels * label_loss(logits, batch.targets))
        loss = torch.stack(parts).sum()
        loss.backward()
        return loss.detach()

    return update


def answer_loss(
    batch: Any, logits: torch.Tensor, teacher: torch.Tensor, group: ProcessGroup, *, independent: bool
) -> torch.Tensor:
    """How far the student's logits are from the teacher's, where the task asks."""
    ours, theirs = labelled_logits(batch, logits), labelled_logits(batch, teacher)
    if independent:
        return sigmoid_distillation(ours, theirs, 1.0, group)
    positions = numbers_in if getattr(batch, "asked", None) is None else targets_in
    return prediction_loss(ours, theirs, group, positions)


def real_tokens(batch: Any) -> torch.Tensor:
    """Where there is no padding, texts x time."""
    ids = batch.inputs["input_ids"]
    return batch.inputs.get("attention_mask", torch.ones_like(ids)).flatten(0, -2).bool()


def state_loss(
    states: LayerStates,
    targets: LayerStates,
    projections: Projections,
    pairs: list[tuple[int, int]],
    real: torch.Tensor,
    group: ProcessGroup,
    hidden: torch.Tensor | None = None,
) -> torch.Tensor:
    """Sum over the pairs of layers, and the embeddings, of the mean squared errors.

    Padding has no part in them, nor have `hidden` tokens.
    """
    real = real if hidden is None else real & ~hidden
    theirs: torch.Tensor | slice = real if targets.packed is None else real[targets.packed]
    if targets.packed is not None and hidden is None:
        theirs = slice(None)  # all of them, which need not be copied
    both = [(projections.embeddings(states.embeddings[real]), targets.embeddings)]
    both += [(projections.hidden(states.hidden[i][real]), targets.hidden[j]) for i, j in pairs]
    both += [
        (projections.attention(i, states.attention[i][real]), targets.attention[j])
        for i, j in pairs
        if i in states.attention
    ]
    count = group.count(real.sum(), tokens_of if hidden is None else untouched_tokens)
    errors = [squared_error(state, target[theirs]) / (count * target.shape[-1]) for state, target in both]
    return torch.stack(errors).sum()


def untouched_tokens(batch: Any) -> int:
    """Tokens of a masked batch that are neither padding nor to be guessed."""
    return tokens_of(batch) - targets_in(batch)


def prediction_loss(
    logits: torch.Tensor, teacher: torch.Tensor, group: ProcessGroup, positions: Callable[[Any], int] = numbers_in
) -> torch.Tensor:
    """Soft cross-entropy, mean over positions, or mean squared error for a single output.

    `positions` says how many of them a batch of another process has.
    """
    flat, targets = logits.flatten(0, -2), teacher.flatten(0, -2)
    count = group.count(size_of(flat), positions)
    if logits.shape[-1] == 1:
        return squared_error(flat, targets) / count

    def soft_cross_entropy(logits: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(logits, teacher.softmax(-1), reduction="sum")

    return mean_in_pieces(soft_cross_entropy, flat, targets, count=count)
