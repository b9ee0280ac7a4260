"""Lessons on plain text: masked words, replaced words, next words, the layers of a teacher."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.data.batching import Batch
from archwright.data.corpus import Text, read_corpus, rows_of
from archwright.data.encoding import Encoded
from archwright.data.epochs import Epoch, hiding, in_streams, shuffled
from archwright.data.making import MADE, made_tokenizer, same_tokens, tokenizer_in
from archwright.data.masking import BERT, ELECTRA, Fates
from archwright.data.places import public_data
from archwright.errors import BadInput, Failed
from archwright.jobs.lessons.brief import Brief, Course, Place, check_batch
from archwright.jobs.lessons.networks import (
    GENERATOR,
    Design,
    body,
    built,
    design_of,
    generator_beside,
    generator_for,
    is_new,
    loaded,
    room_for,
    source_of,
)
from archwright.jobs.looking import generator
from archwright.jobs.scene import embedded
from archwright.jobs.seeing import GPT2_ORIGIN
from archwright.judge import perplexity
from archwright.networks.cells import CellForCausalLM
from archwright.objectives.error import evaluating
from archwright.progress import progress
from archwright.train import ALONE, task_loss
from archwright.train.lessons import (
    Reading,
    causal_update,
    electra_update,
    layer_map,
    layerwise_update,
    masked_update,
    projections_for,
    share_embeddings,
)
from archwright.train.lessons.causal import read
from archwright.train.lessons.electra import detection, drawn, fill_in
from archwright.train.lessons.layerwise import real_tokens, state_loss
from archwright.train.lessons.listening import answer, listening, posts
from archwright.train.lessons.masked import guesses
from archwright.train.losses import NO_TARGET

PROJECTIONS = 12
"""Place that needs random numbers of its own."""
VALIDATION = 13
VALIDATION_BATCH = 32
READ_ON = ("packed",)
"""Layouts in which a row goes on where the one before ended."""
Losses = dict[str, tuple[float, int]]
"""Of one batch by name: mean, and over how many targets."""


@dataclass(frozen=True, eq=False)
class Material:
    """A text for a network to read, and the network."""

    network: Any
    tokenizer: Any
    learnt: Encoded
    judged: Encoded
    source: str


def material(brief: Brief, place: Place) -> Material:
    """Everything that can be wrong with text, tokenizer and network is found here."""
    corpus, way = brief.lesson.corpus, brief.way
    if corpus is None:
        raise BadInput(f"--lesson {brief.name} needs --corpus FILE, the text to learn from.")
    if way.causal and brief.lesson.layout not in READ_ON:
        raise BadInput(f"--lesson {brief.name} reads on from row to row, so it needs --layout packed.")
    learnt, judged = read_corpus(corpus, brief.lesson.corpus_validation)
    design = design_of(brief.pupil)
    tokenizer = tokenizer_for(brief, design, learnt)
    check_mask(tokenizer, brief)
    length = brief.recipe.max_length
    rows = [
        rows_of(text, tokenizer, layout=brief.lesson.layout, max_length=length, causal=way.causal)
        for text in (learnt, judged)
    ]
    check_batch(len(rows[0]), brief.recipe, place.together, brief.pace.accumulate, str(corpus))
    network = network_for(brief, design, tokenizer, place.seed).to(place.device)
    room = room_for(network)
    if room is not None and length > room:
        raise BadInput(f"--max-length must be at most {room}, the positions of this network, got {length}.")
    return Material(network, tokenizer, rows[0], first_rows(rows[1], brief.data.validation_rows), str(corpus))


def tokenizer_for(brief: Brief, design: Design | None, text: Text) -> Any:
    """Of the trained network, as asked for, the teacher's, or what networks of the space usually read."""
    pupil, teacher = brief.pupil, brief.lesson.teacher
    if design is None:
        return tokenizer_in(source_of(str(pupil.model)))
    if pupil.tokenizer in MADE:
        return made_tokenizer(str(pupil.tokenizer), text.lines, pupil.vocabulary)
    if pupil.tokenizer is not None or teacher is not None:
        return tokenizer_in(source_of(str(pupil.tokenizer or teacher)))
    return USUAL[design.space.text](text, pupil.vocabulary)


def gpt2_files(text: Text, size: int | None) -> Any:
    return tokenizer_in(str(public_data("gpt2-bpe", origin=GPT2_ORIGIN, option="--tokenizer")))


USUAL: dict[str, Callable[[Text, int | None], Any]] = {
    "bert": lambda text, size: tokenizer_in(embedded("minilm")),
    "gpt2": gpt2_files,
    "words": lambda text, size: made_tokenizer("words", text.lines, size),
}
"""How networks of a space read, where nothing else is said."""


def check_mask(tokenizer: Any, brief: Brief) -> None:
    if not brief.way.causal and tokenizer.mask_token_id is None:
        raise BadInput(f"--lesson {brief.name} needs a tokenizer with a mask token; give another --tokenizer.")


def network_for(brief: Brief, design: Design | None, tokenizer: Any, seed: int) -> Any:
    head = str(brief.way.head)
    if design is not None:
        return built(design, head, vocabulary=len(tokenizer), seed=seed)
    return loaded(source_of(str(brief.pupil.model)), head, seed=seed)


def first_rows(encoded: Encoded, most: int) -> Encoded:
    """At most so many rows of a text, 0 for all."""
    kept = len(encoded) if most == 0 else min(most, len(encoded))
    end = int(encoded.offsets[kept])
    return Encoded(encoded.ids[:end], encoded.offsets[: kept + 1], None, encoded.targets[:kept], encoded.pad_id)


def course(brief: Brief, place: Place, of: Material, **words: Any) -> Course:
    """A course on this text; `words` are what the lesson decides."""
    facts = {"corpus": of.source, "vocabulary": len(of.tokenizer), "validation_rows": len(of.judged)}
    usual = {"model": of.network, "network": of.network, "facts": facts | words.pop("facts", {})}
    usual["untrained"] = brief.pupil.model is not None and is_new(source_of(brief.pupil.model), str(brief.way.head))
    return Course(**(usual | {"tokenizer": of.tokenizer, "rows": len(of.learnt)} | words))


def masked_words(brief: Brief, place: Place) -> Course:
    """BERT's pre-training, without its second task."""
    of = material(brief, place)
    return course(
        brief,
        place,
        of,
        batches=hidden_batches(of, of.learnt, brief.recipe.batch_size, (place.seed, 0), BERT),
        update=masked_update(of.network, together=place.together),
        judged=judging(of.network, hidden_once(of, place.seed, BERT), partial(masked_losses, of.network)),
    )


def hidden_batches(of: Material, rows: Encoded, batch_size: int, seed: tuple[int, ...], fates: Fates) -> Any:
    return shuffled(rows, batch_size, seed, hiding(of.tokenizer, len(of.tokenizer), fates))


def hidden_once(of: Material, seed: int, fates: Fates) -> Epoch:
    """The rows to judge by, masked in the same way every time."""
    found: Epoch = hidden_batches(of, of.judged, VALIDATION_BATCH, (seed, VALIDATION), fates)(0)
    return found


def masked_losses(network: Any, batch: Batch, rng: np.random.Generator) -> Losses:
    wanted = batch.targets != NO_TARGET
    loss = task_loss(guesses(network, batch.inputs, wanted), batch.targets[wanted])
    return {"loss": (float(loss), int(wanted.sum()))}


def replaced_words(brief: Brief, place: Place) -> Course:
    """ELECTRA: generator and discriminator learn together and share the table of tokens."""
    of, recipe = material(brief, place), brief.recipe
    weights = (1.0, recipe.discriminator_weight)
    known = generator_beside(source_of(brief.pupil.model), seed=place.seed) if brief.pupil.model else None
    small = known or generator_for(of.network, size=recipe.generator_size, seed=place.seed)
    small = small.to(place.device)
    both = share_embeddings(small, of.network)
    return course(
        brief,
        place,
        of,
        model=both,
        beside={GENERATOR: small},
        batches=hidden_batches(of, of.learnt, recipe.batch_size, (place.seed, 0), ELECTRA),
        update=electra_update(small, of.network, weights=weights, together=place.together),
        judged=judging(
            both, hidden_once(of, place.seed, ELECTRA), partial(electra_losses, small, of.network, weights=weights)
        ),
        facts={"generator_parameters": sum(p.numel() for p in small.parameters())},
    )


def electra_losses(
    small: Any, network: Any, batch: Batch, rng: np.random.Generator, *, weights: tuple[float, float]
) -> Losses:
    hidden, tokens = batch.targets != NO_TARGET, int(batch.inputs["attention_mask"].sum())
    logits = guesses(small, batch.inputs, hidden)
    guess = float(task_loss(logits, batch.targets[hidden]))
    filled, replaced = fill_in(batch, drawn(logits, rng))
    told = float(detection(network, {**batch.inputs, "input_ids": filled}, replaced, ALONE))
    parts = {"generator_loss": (guess, int(hidden.sum())), "discriminator_loss": (told, tokens)}
    return {"loss": (weights[0] * guess + weights[1] * told, tokens), **parts}


def next_words(brief: Brief, place: Place) -> Course:
    """Language modelling; recurrent cells read the text in order and keep their states from row to row."""
    of, size = material(brief, place), brief.recipe.batch_size
    recurrent = isinstance(of.network, CellForCausalLM)
    reading = Reading() if recurrent else None
    readers = place.together.processes
    batches = in_streams(of.learnt, size, readers) if recurrent else shuffled(of.learnt, size, (place.seed, 0))
    judged = Epoch(of.judged, in_order(len(of.judged)), None, ())
    return course(
        brief,
        place,
        of,
        batches=batches,
        update=causal_update(of.network, reading=reading, together=place.together),
        carry=reading,
        judged=judging(of.network, judged, partial(next_losses, of.network)),
    )


def in_order(rows: int, size: int = VALIDATION_BATCH // 4) -> list[Any]:
    return [np.arange(start, min(start + size, rows)) for start in range(0, rows, size)]


def next_losses(network: Any, batch: Batch, rng: np.random.Generator) -> Losses:
    return {"loss": (float(read(batch, network, ALONE)), int((batch.targets != NO_TARGET).sum()))}


def layers_of_a_teacher(brief: Brief, place: Place) -> Course:
    """Appendix C of W-PCA with gamma 0: only states, no words."""
    of, name = material(brief, place), brief.lesson.teacher
    if name is None:
        raise BadInput("--lesson distil needs --teacher, for example minilm.")
    teacher = body(source_of(name)).to(place.device)
    check_tokens(of.tokenizer, tokenizer_in(source_of(name)), name)
    bridge = projections_for(of.network, teacher, generator=generator(place.seed, PROJECTIONS))
    return course(
        brief,
        place,
        of,
        model=nn.ModuleDict({"student": of.network, "projections": bridge}),
        batches=shuffled(of.learnt, brief.recipe.batch_size, (place.seed, 0)),
        update=layerwise_update(of.network, teacher, bridge, gamma=0.0, together=place.together),
        judged=judging(
            of.network,
            shuffled(of.judged, VALIDATION_BATCH, (place.seed, VALIDATION))(0),
            partial(layer_losses, of.network, teacher, bridge),
        ),
        facts={"teacher": name, "layers": layer_map(len(posts(of.network)), len(posts(teacher)))},
    )


def check_tokens(one: Any, other: Any, teacher: str) -> None:
    """Refuses a teacher that reads other tokens than its student."""
    if not same_tokens(one, other):
        raise BadInput(
            f"teacher and student must read the same tokens, {teacher!r} has {len(other)} of its own and the student "
            f"{len(one)}; take another teacher or --tokenizer."
        )


def layer_losses(student: Any, teacher: Any, bridge: Any, batch: Batch, rng: np.random.Generator) -> Losses:
    pairs = layer_map(len(posts(student)), len(posts(teacher)))
    with listening(teacher) as told:
        answer(teacher, batch.inputs, logits=False)
    with listening(student) as heard:
        answer(student, batch.inputs, logits=False)
    real = real_tokens(batch)
    return {"loss": (float(state_loss(heard, told, bridge, pairs, real, ALONE)), int(real.sum()))}


Judge = Callable[[Batch, np.random.Generator], Losses]


def judging(model: nn.Module, rows: Sequence[Batch], losses: Judge) -> Callable[[], dict[str, float]]:
    """What gives the mean losses over all targets of these rows, and the perplexity where the loss is about words."""

    def judged() -> dict[str, float]:
        device = next(model.parameters()).device
        found: list[Losses] = []
        with evaluating(model), torch.no_grad(), progress("validation", len(rows), "batches") as bar:
            for place, batch in enumerate(rows):
                found.append(losses(batch.to(device), np.random.default_rng((VALIDATION, place))))
                bar.advance()
        means = {name: mean_over([each[name] for each in found]) for name in found[0]}
        return means | ({"perplexity": perplexity(means["loss"])} if losses.func in WORDS else {})  # type: ignore[attr-defined]

    return judged


WORDS = (masked_losses, next_losses)
"""Losses of guessing words."""


def mean_over(parts: list[tuple[float, int]]) -> float:
    value = sum(mean * count for mean, count in parts) / max(1, sum(count for _, count in parts))
    if not np.isfinite(value):
        raise Failed("the validation loss is not a number any more; train again with a smaller --learning-rate.")
    return value
