"""What a lesson on plain text is about: the text as rows, its tokenizer, and the network that reads it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from archwright.data.corpus import Text, read_corpus, rows_of
from archwright.data.encoding import Encoded
from archwright.data.public_data import GPT2_ORIGIN, public_data
from archwright.data.tokenizer_training import MADE, made_tokenizer, same_tokens, tokenizer_in
from archwright.errors import BadInput
from archwright.networks.embedded import resolve_model
from archwright.training.plan import TrainConfig, TrainingContext, check_batch
from archwright.training.students import Design, built, design_of, loaded, room_for, source_of

READ_ON = ("packed",)
"""Layouts in which a row goes on where the one before ended."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text for a network to read, and the network."""

    network: Any
    tokenizer: Any
    learnt: Encoded
    judged: Encoded
    source: str


def load_corpus(options: TrainConfig, place: TrainingContext) -> Corpus:
    """Everything that can be wrong with text, tokenizer and network is found here."""
    corpus, way = options.lesson.corpus, options.way
    if corpus is None:
        raise BadInput(f"--lesson {options.name} needs --corpus FILE, the text to learn from.")
    if way.causal and options.lesson.layout not in READ_ON:
        raise BadInput(f"--lesson {options.name} reads on from row to row, so it needs --layout packed.")
    learnt, judged = read_corpus(corpus, options.lesson.corpus_validation)
    design = design_of(options.student)
    tokenizer = tokenizer_for(options, design, learnt)
    check_mask(tokenizer, options)
    length = options.recipe.max_length
    rows = [
        rows_of(text, tokenizer, layout=options.lesson.layout, max_length=length, causal=way.causal)
        for text in (learnt, judged)
    ]
    check_batch(len(rows[0]), options.recipe, place.together, options.pace.accumulate, str(corpus))
    network = network_for(options, design, tokenizer, place.seed).to(place.device)
    room = room_for(network)
    if room is not None and length > room:
        raise BadInput(f"--max-length must be at most {room}, the positions of this network, got {length}.")
    return Corpus(network, tokenizer, rows[0], first_rows(rows[1], options.data.validation_rows), str(corpus))


def tokenizer_for(options: TrainConfig, design: Design | None, text: Text) -> Any:
    """Of the trained network, as asked for, the teacher's, or what networks of the space usually read."""
    student, teacher = options.student, options.lesson.teacher
    if design is None:
        return tokenizer_in(source_of(str(student.model)))
    if student.tokenizer in MADE:
        return made_tokenizer(str(student.tokenizer), text.lines, student.vocabulary)
    if student.tokenizer is not None or teacher is not None:
        return tokenizer_in(source_of(str(student.tokenizer or teacher)))
    return USUAL[design.space.text](text, student.vocabulary)


def gpt2_files(text: Text, size: int | None) -> Any:
    return tokenizer_in(str(public_data("gpt2-bpe", origin=GPT2_ORIGIN, option="--tokenizer")))


USUAL: dict[str, Callable[[Text, int | None], Any]] = {
    "bert": lambda text, size: tokenizer_in(resolve_model("minilm")),
    "gpt2": gpt2_files,
    "words": lambda text, size: made_tokenizer("words", text.lines, size),
}
"""How networks of a space read, where nothing else is said."""


def check_mask(tokenizer: Any, options: TrainConfig) -> None:
    if not options.way.causal and tokenizer.mask_token_id is None:
        raise BadInput(f"--lesson {options.name} needs a tokenizer with a mask token; give another --tokenizer.")


def network_for(options: TrainConfig, design: Design | None, tokenizer: Any, seed: int) -> Any:
    head = str(options.way.head)
    if design is not None:
        return built(design, head, vocabulary=len(tokenizer), seed=seed)
    return loaded(source_of(str(options.student.model)), head, seed=seed)


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
