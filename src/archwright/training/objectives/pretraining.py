"""Lessons on plain text: masked words, replaced words, next words, the layers of a teacher."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.data.batching import Batch
from archwright.data.encoding import Encoded
from archwright.data.epochs import Epoch, hiding, shuffled_epochs, stream_epochs
from archwright.data.text.masking import BERT, ELECTRA, MaskingRule
from archwright.data.text.tokenizer_training import read_tokenizer
from archwright.errors import BadInput, Failed
from archwright.networks.cells import CellForCausalLM
from archwright.objectives.error import evaluating
from archwright.progress import progress
from archwright.random_streams import generator
from archwright.statistics import perplexity
from archwright.training.corpus import CorpusData, check_tokens, load_corpus
from archwright.training.distributed import SINGLE_PROCESS
from archwright.training.losses import NO_TARGET, task_loss
from archwright.training.objectives.causal import Reading, causal_update, read
from archwright.training.objectives.distill import layerwise_update, real_tokens, state_loss
from archwright.training.objectives.electra import detection, drawn, electra_update, fill_in, share_embeddings
from archwright.training.objectives.layer_matching import layer_map, projections_for
from archwright.training.objectives.layer_outputs import answer, listening, posts
from archwright.training.objectives.mlm import masked_token_logits, mlm_update
from archwright.training.plan import TrainConfig, TrainingContext, TrainingPlan
from archwright.training.students import (
    GENERATOR,
    checkpoint_source,
    generator_beside,
    generator_for,
    is_new,
    load_teacher,
)

PROJECTIONS = 12
"""Place that needs random numbers of its own."""
VALIDATION = 13
VALIDATION_BATCH = 32
Losses = dict[str, tuple[float, int]]
"""Of one batch by name: mean, and over how many targets."""


def course(options: TrainConfig, place: TrainingContext, of: CorpusData, **words: Any) -> TrainingPlan:
    """A course on this text; `words` are what the lesson decides."""
    facts = {"corpus": of.source, "vocabulary": len(of.tokenizer), "validation_rows": len(of.judged)}
    usual = {"model": of.network, "network": of.network, "facts": facts | words.pop("facts", {})}
    usual["untrained"] = options.student.model is not None and is_new(
        checkpoint_source(options.student.model), str(options.way.head)
    )
    return TrainingPlan(**(usual | {"tokenizer": of.tokenizer, "rows": len(of.learnt)} | words))


def masked_words(options: TrainConfig, place: TrainingContext) -> TrainingPlan:
    """BERT's pre-training, without its second task."""
    of = load_corpus(options, place)
    return course(
        options,
        place,
        of,
        batches=hidden_batches(of, of.learnt, options.recipe.batch_size, (place.seed, 0), BERT),
        update=mlm_update(of.network, group=place.group),
        judged=judging(of.network, hidden_once(of, place.seed, BERT), partial(masked_losses, of.network), words=True),
    )


def hidden_batches(of: CorpusData, rows: Encoded, batch_size: int, seed: tuple[int, ...], fates: MaskingRule) -> Any:
    return shuffled_epochs(rows, batch_size, seed, hiding(of.tokenizer, len(of.tokenizer), fates))


def hidden_once(of: CorpusData, seed: int, fates: MaskingRule) -> Epoch:
    """The rows to judge by, masked in the same way every time."""
    found: Epoch = hidden_batches(of, of.judged, VALIDATION_BATCH, (seed, VALIDATION), fates)(0)
    return found


def masked_losses(network: Any, batch: Batch, rng: np.random.Generator) -> Losses:
    wanted = batch.targets != NO_TARGET
    loss = task_loss(masked_token_logits(network, batch.inputs, wanted), batch.targets[wanted])
    return {"loss": (float(loss), int(wanted.sum()))}


def replaced_words(options: TrainConfig, place: TrainingContext) -> TrainingPlan:
    """ELECTRA: generator and discriminator learn together and share the table of tokens."""
    of, recipe = load_corpus(options, place), options.recipe
    weights = (1.0, recipe.discriminator_weight)
    known = (
        generator_beside(checkpoint_source(options.student.model), seed=place.seed) if options.student.model else None
    )
    small = known or generator_for(of.network, size=recipe.generator_size, seed=place.seed)
    small = small.to(place.device)
    both = share_embeddings(small, of.network)
    return course(
        options,
        place,
        of,
        model=both,
        beside={GENERATOR: small},
        batches=hidden_batches(of, of.learnt, recipe.batch_size, (place.seed, 0), ELECTRA),
        update=electra_update(small, of.network, weights=weights, group=place.group),
        judged=judging(
            both, hidden_once(of, place.seed, ELECTRA), partial(electra_losses, small, of.network, weights=weights)
        ),
        facts={"generator_parameters": sum(p.numel() for p in small.parameters())},
    )


def electra_losses(
    small: Any, network: Any, batch: Batch, rng: np.random.Generator, *, weights: tuple[float, float]
) -> Losses:
    hidden, tokens = batch.targets != NO_TARGET, int(batch.inputs["attention_mask"].sum())
    logits = masked_token_logits(small, batch.inputs, hidden)
    guess = float(task_loss(logits, batch.targets[hidden]))
    filled, replaced = fill_in(batch, drawn(logits, rng))
    told = float(detection(network, {**batch.inputs, "input_ids": filled}, replaced, SINGLE_PROCESS))
    parts = {"generator_loss": (guess, int(hidden.sum())), "discriminator_loss": (told, tokens)}
    return {"loss": (weights[0] * guess + weights[1] * told, tokens), **parts}


def next_words(options: TrainConfig, place: TrainingContext) -> TrainingPlan:
    """Language modelling; recurrent cells read the text in order and keep their states from row to row."""
    of, size = load_corpus(options, place), options.recipe.batch_size
    recurrent = isinstance(of.network, CellForCausalLM)
    reading = Reading() if recurrent else None
    readers = place.group.processes
    batches = (
        stream_epochs(of.learnt, size, readers) if recurrent else shuffled_epochs(of.learnt, size, (place.seed, 0))
    )
    judged = Epoch(of.judged, in_order(len(of.judged)), None, ())
    return course(
        options,
        place,
        of,
        batches=batches,
        update=causal_update(of.network, reading=reading, group=place.group),
        carry=reading,
        judged=judging(of.network, judged, partial(next_losses, of.network), words=True),
    )


def in_order(rows: int, size: int = VALIDATION_BATCH // 4) -> list[Any]:
    return [np.arange(start, min(start + size, rows)) for start in range(0, rows, size)]


def next_losses(network: Any, batch: Batch, rng: np.random.Generator) -> Losses:
    return {"loss": (float(read(batch, network, SINGLE_PROCESS)), int((batch.targets != NO_TARGET).sum()))}


def layers_of_a_teacher(options: TrainConfig, place: TrainingContext) -> TrainingPlan:
    """Appendix C of W-PCA with gamma 0: only states, no words."""
    of, name = load_corpus(options, place), options.lesson.teacher
    if name is None:
        raise BadInput("--lesson distil needs --teacher, for example minilm.")
    teacher = load_teacher(checkpoint_source(name)).to(place.device)
    check_tokens(of.tokenizer, read_tokenizer(checkpoint_source(name)), name)
    bridge = projections_for(of.network, teacher, generator=generator(place.seed, PROJECTIONS))
    return course(
        options,
        place,
        of,
        model=nn.ModuleDict({"student": of.network, "projections": bridge}),
        batches=shuffled_epochs(of.learnt, options.recipe.batch_size, (place.seed, 0)),
        update=layerwise_update(of.network, teacher, bridge, gamma=0.0, group=place.group),
        judged=judging(
            of.network,
            shuffled_epochs(of.judged, VALIDATION_BATCH, (place.seed, VALIDATION))(0),
            partial(layer_losses, of.network, teacher, bridge),
        ),
        facts={"teacher": name, "layers": layer_map(len(posts(of.network)), len(posts(teacher)))},
    )


def layer_losses(student: Any, teacher: Any, bridge: Any, batch: Batch, rng: np.random.Generator) -> Losses:
    pairs = layer_map(len(posts(student)), len(posts(teacher)))
    with listening(teacher) as told:
        answer(teacher, batch.inputs, logits=False)
    with listening(student) as heard:
        answer(student, batch.inputs, logits=False)
    real = real_tokens(batch)
    return {"loss": (float(state_loss(heard, told, bridge, pairs, real, SINGLE_PROCESS)), int(real.sum()))}


Judge = Callable[[Batch, np.random.Generator], Losses]


def judging(
    model: nn.Module, rows: Sequence[Batch], losses: Judge, *, words: bool = False
) -> Callable[[], dict[str, float]]:
    """What gives the mean losses over all targets of these rows, and the perplexity where the loss is about words."""

    def judged() -> dict[str, float]:
        device = next(model.parameters()).device
        found: list[Losses] = []
        with evaluating(model), torch.no_grad(), progress("validation", len(rows), "batches") as bar:
            for place, batch in enumerate(rows):
                found.append(losses(batch.to(device), np.random.default_rng((VALIDATION, place))))
                bar.advance()
        means = {name: mean_over([each[name] for each in found]) for name in found[0]}
        return means | ({"perplexity": perplexity(means["loss"])} if words else {})

    return judged


def mean_over(parts: list[tuple[float, int]]) -> float:
    value = sum(mean * count for mean, count in parts) / max(1, sum(count for _, count in parts))
    if not np.isfinite(value):
        raise Failed("the validation loss is not a number any more; train again with a smaller --learning-rate.")
    return value
