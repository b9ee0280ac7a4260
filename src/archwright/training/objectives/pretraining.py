"""What all objectives on plain text share: the corpus as rows of tokens, the student that reads it, its evaluation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.data.batching import Batch
from archwright.data.encoding import Encoded
from archwright.data.epochs import Epoch, masking, shuffled_epochs
from archwright.data.text.corpus import encode_corpus, read_corpus
from archwright.data.text.kinds import TEXT_KINDS
from archwright.data.text.masking import MaskingRule
from archwright.data.text.tokenizer import TOKENIZER_TRAINERS, read_tokenizer, train_tokenizer
from archwright.errors import BadInput, Failed
from archwright.networks.linear_kernel import fast_linears
from archwright.progress import progress
from archwright.random_streams import VALIDATION_BATCHES
from archwright.statistics import perplexity
from archwright.subnet.importance import evaluating
from archwright.training.plan import TrainingContext, TrainingPlan, check_batch
from archwright.training.students import (
    StudentDesign,
    build_student,
    checkpoint_source,
    load_student,
    read_config,
    student_design,
)

VALIDATION_BATCH = 32
Losses = dict[str, tuple[float, int]]
"""Of one batch by name: mean, and over how many targets."""


@dataclass(frozen=True, eq=False)
class CorpusData:
    """A text, tokenized for the network that learns from it."""

    network: Any
    tokenizer: Any
    train: Encoded
    validation: Encoded
    source: str


def load_corpus(context: TrainingContext) -> CorpusData:
    """Everything that can be wrong with text, tokenizer and network is found here."""
    config, objective, length = context.config, context.objective, context.recipe.max_length
    options, corpus = config.objective, config.objective.corpus
    if corpus is None:
        raise BadInput(f"--lesson {objective.name} needs --corpus FILE, the text to learn from.")
    if objective.causal and options.layout != "packed":
        raise BadInput(f"--lesson {objective.name} reads on from row to row, so it needs --layout packed.")
    texts = read_corpus(corpus, options.corpus_validation)
    design = student_design(config.student)
    tokenizer = corpus_tokenizer(context, design, texts[0].lines)
    if not objective.causal and tokenizer.mask_token_id is None:
        raise BadInput(f"--lesson {objective.name} needs a tokenizer with a mask token; give another --tokenizer.")
    train, validation = (
        encode_corpus(text, tokenizer, layout=options.layout, max_length=length, causal=objective.causal)
        for text in texts
    )
    check_batch(len(train), context, str(corpus))
    head = str(objective.head)
    if design is not None:
        network = build_student(design, head, vocabulary=len(tokenizer), seed=context.seed)
    else:
        network = load_student(checkpoint_source(str(config.student.model)), head, seed=context.seed)
    positions = getattr(network.config, "max_position_embeddings", None)  # None: as many tokens as one likes
    if positions is not None and length > positions:
        raise BadInput(f"--max-length must be at most {positions}, the positions of this network, got {length}.")
    most = config.task.validation_rows or len(validation)
    return CorpusData(network.to(context.device), tokenizer, train, validation.first(most), str(corpus))


def corpus_tokenizer(context: TrainingContext, design: StudentDesign | None, lines: Sequence[str]) -> Any:
    """Of the trained network, as asked for, the teacher's, or what networks of the space usually read."""
    student, teacher = context.config.student, context.config.objective.teacher
    if design is None:
        return read_tokenizer(checkpoint_source(str(student.model)))
    if student.tokenizer in TOKENIZER_TRAINERS:
        return train_tokenizer(str(student.tokenizer), lines, student.vocabulary)
    if student.tokenizer is not None or teacher is not None:
        return read_tokenizer(checkpoint_source(str(student.tokenizer or teacher)))
    return TEXT_KINDS[design.space.text].tokenizer(lines, student.vocabulary)


def check_same_tokens(student: Any, teacher: Any, name: str) -> None:
    """Refuses a teacher whose tokenizer gives other ids than the student's."""
    if student.get_vocab() != teacher.get_vocab():
        raise BadInput(
            f"teacher and student must read the same tokens, {name!r} has {len(teacher)} of its own and the student "
            f"{len(student)}; take another teacher or --tokenizer."
        )


def pretraining_plan(context: TrainingContext, corpus: CorpusData, **parts: Any) -> TrainingPlan:
    """The plan of a training on this text; `parts` are those that the objective decides."""
    facts = {"corpus": corpus.source, "vocabulary": len(corpus.tokenizer), "validation_rows": len(corpus.validation)}
    model, head = context.config.student.model, context.objective.head
    trained_head = head if model is None else getattr(read_config(checkpoint_source(model)), "loss", head)
    common = {"model": corpus.network, "network": corpus.network, "tokenizer": corpus.tokenizer}
    common |= {"encoded": {"train": corpus.train, "validation": corpus.validation}}
    common |= {"rows": len(corpus.train), "new_head": trained_head != head, "facts": facts | parts.pop("facts", {})}
    return TrainingPlan(**(common | parts))


def masked_epochs(context: TrainingContext, corpus: CorpusData, rule: MaskingRule) -> tuple[Any, Epoch]:
    """Epoch number -> masked batches to learn from, and validation batches, masked in the same way every time."""
    mask = masking(corpus.tokenizer, rule)
    train = shuffled_epochs(corpus.train, context.recipe.batch_size, (context.seed, 0), mask)
    validation: Epoch = shuffled_epochs(corpus.validation, VALIDATION_BATCH, (context.seed, VALIDATION_BATCHES), mask)(
        0
    )
    return train, validation


def evaluate_losses(
    model: nn.Module,
    rows: Sequence[Batch],
    losses: Callable[[Batch, np.random.Generator], Losses],
    *,
    tokens: bool = False,
) -> dict[str, float]:
    """Mean losses over all targets of these rows, and the perplexity where the loss is about tokens."""
    device = next(model.parameters()).device
    parts: list[Losses] = []
    with evaluating(model), torch.no_grad(), fast_linears(), progress("validation", len(rows), "batches") as bar:
        for number, batch in enumerate(rows):
            parts.append(losses(batch.to(device), np.random.default_rng((VALIDATION_BATCHES, number))))
            bar.advance()
    means = {name: weighted_mean([part[name] for part in parts]) for name in parts[0]}
    return means | ({"perplexity": perplexity(means["loss"])} if tokens else {})


def weighted_mean(parts: Sequence[tuple[float, int]]) -> float:
    value = sum(mean * count for mean, count in parts) / max(1, sum(count for _, count in parts))
    if not np.isfinite(value):
        raise Failed("the validation loss is not a number any more; train again with a smaller --learning-rate.")
    return value
