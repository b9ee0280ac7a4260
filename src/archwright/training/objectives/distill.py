"""Layer-wise distillation (Wang 2025, W-PCA, Appendix C, Equations 5 to 7)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.data.batching import Batch
from archwright.data.epochs import shuffled_epochs
from archwright.data.text.tokenizer import read_tokenizer
from archwright.errors import BadInput
from archwright.random_streams import DISTILLATION_PROJECTIONS, VALIDATION_BATCHES, generator
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
)
from archwright.training.objectives.layers import (
    LayerStates,
    Projections,
    build_projections,
    encoder_layers,
    layer_map,
    record_layers,
    run_network,
)
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


def plan_distillation(context: TrainingContext) -> TrainingPlan:
    """Gamma 0: only states, no tokens."""
    corpus, name = load_corpus(context), context.config.objective.teacher
    if name is None:
        raise BadInput("--lesson distil needs --teacher, for example minilm.")
    student, teacher = corpus.network, load_teacher(checkpoint_source(name)).to(context.device)
    check_same_tokens(corpus.tokenizer, read_tokenizer(checkpoint_source(name)), name)
    projections = build_projections(student, teacher, generator=generator(context.seed, DISTILLATION_PROJECTIONS))
    pairs = layer_map(len(encoder_layers(student)), len(encoder_layers(teacher)))

    def losses(batch: Batch, rng: np.random.Generator) -> Losses:
        with record_layers(teacher) as targets:
            run_network(teacher, batch.inputs, logits=False)
        with record_layers(student) as states:
            run_network(student, batch.inputs, logits=False)
        real = real_tokens(batch)
        loss = state_loss(states, targets, projections, pairs, real, SINGLE_PROCESS)
        return {"loss": (float(loss), int(real.sum()))}

    def prepare() -> dict[str, Any]:
        if context.config.student.start == "random":
            return {}
        return start_from_teacher(context, student, teacher, corpus.train, projections)

    if context.config.student.start == "teacher":
        check_start(student, teacher)
    validation = shuffled_epochs(corpus.validation, VALIDATION_BATCH, (context.seed, VALIDATION_BATCHES))(0)
    return pretraining_plan(
        context,
        corpus,
        model=nn.ModuleDict({"student": student, "projections": projections}),
        batches=shuffled_epochs(corpus.train, context.recipe.batch_size, (context.seed, 0)),
        update=layerwise_update(student, teacher, projections, gamma=0.0, group=context.group),
        evaluate=partial(evaluate_losses, student, validation, losses),
        facts={"teacher": name, "layers": pairs},
        prepare=prepare,
    )


OBJECTIVE = TrainingObjective("distil", "pretraining", plan_distillation, head="mlm", teacher=True)


def layerwise_update(
    student: Any,
    teacher: Any,
    projections: Projections,
    *,
    gamma: float,
    group: ProcessGroup = SINGLE_PROCESS,
    independent: bool = False,
) -> Update:
    """A step towards the teacher's states, and with weight `gamma` towards its logits; no label plays a part.

    Gamma is 0 in pre-training, where neither network's head is run, and 1 in fine-tuning. `independent` means that
    every output is a yes or no of its own.
    """
    pairs = layer_map(len(encoder_layers(student)), len(encoder_layers(teacher)))
    teacher.eval()

    def update(batch: Any, rng: np.random.Generator, share: float) -> torch.Tensor:
        batch = batch.to(next(student.parameters()).device)
        with torch.no_grad(), record_layers(teacher) as targets:
            target_logits = run_network(teacher, batch.inputs, logits=gamma > 0)
        with record_layers(student) as states:
            logits = run_network(student, batch.inputs, logits=gamma > 0)
        loss = state_loss(states, targets, projections, pairs, real_tokens(batch), group)
        if logits is not None and target_logits is not None:
            ours, theirs = labelled_logits(batch, logits), labelled_logits(batch, target_logits)
            positions = numbers_in if getattr(batch, "asked", None) is None else targets_in
            answered = (
                sigmoid_distillation(ours, theirs, 1.0, group)
                if independent
                else prediction_loss(ours, theirs, group, positions)
            )
            loss = loss + gamma * answered
        loss.backward()
        return loss.detach()

    return update


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
) -> torch.Tensor:
    """Sum over the pairs of layers, and the embeddings, of the mean squared errors; padding has no part in them."""
    both = [(projections.embeddings(states.embeddings[real]), targets.embeddings)]
    both += [(projections.hidden(states.hidden[i][real]), targets.hidden[j]) for i, j in pairs]
    both += [
        (projections.attention(i, states.attention[i][real]), targets.attention[j])
        for i, j in pairs
        if i in states.attention
    ]
    count = group.count(real.sum(), tokens_of)
    errors = [squared_error(state, target[real]) / (count * target.shape[-1]) for state, target in both]
    return torch.stack(errors).sum()


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
