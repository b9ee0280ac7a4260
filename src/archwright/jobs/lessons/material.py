"""What a lesson on plain text is about: the text as rows, its tokenizer, and the network that reads it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from archwright.data.corpus import Text, read_corpus, rows_of
from archwright.data.encoding import Encoded
from archwright.data.making import MADE, made_tokenizer, same_tokens, tokenizer_in
from archwright.data.places import public_data
from archwright.errors import BadInput
from archwright.jobs.lessons.brief import Brief, Place, check_batch
from archwright.jobs.lessons.networks import Design, built, design_of, loaded, room_for, source_of
from archwright.jobs.scene import embedded
from archwright.jobs.seeing import GPT2_ORIGIN

READ_ON = ("packed",)
"""Layouts in which a row goes on where the one before ended."""


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


def check_tokens(one: Any, other: Any, teacher: str) -> None:
    """Refuses a teacher that reads other tokens than its student."""
    if not same_tokens(one, other):
        raise BadInput(
            f"teacher and student must read the same tokens, {teacher!r} has {len(other)} of its own and the student "
            f"{len(one)}; take another teacher or --tokenizer."
        )
