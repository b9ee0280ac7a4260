"""What a lesson on plain text is about: the text as rows, its tokenizer, and the network that reads it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from archwright.data.encoding import Encoded
from archwright.data.public_data import GPT2_ORIGIN, public_data
from archwright.data.text.corpus import Corpus, encode_corpus, read_corpus
from archwright.data.text.tokenizer_training import TOKENIZER_TRAINERS, read_tokenizer, same_tokens, train_tokenizer
from archwright.errors import BadInput
from archwright.networks.embedded import resolve_model
from archwright.training.plan import TrainConfig, TrainingContext, check_batch
from archwright.training.students import (
    StudentDesign,
    build_student,
    checkpoint_source,
    load_student,
    room_for,
    student_design,
)

READ_ON = ("packed",)
"""Layouts in which a row goes on where the one before ended."""


@dataclass(frozen=True, eq=False)
class CorpusData:
    """A text for a network to read, and the network."""

    network: Any
    tokenizer: Any
    learnt: Encoded
    judged: Encoded
    source: str


def load_corpus(options: TrainConfig, place: TrainingContext) -> CorpusData:
    """Everything that can be wrong with text, tokenizer and network is found here."""
    corpus, way = options.lesson.corpus, options.way
    if corpus is None:
        raise BadInput(f"--lesson {options.name} needs --corpus FILE, the text to learn from.")
    if way.causal and options.lesson.layout not in READ_ON:
        raise BadInput(f"--lesson {options.name} reads on from row to row, so it needs --layout packed.")
    learnt, judged = read_corpus(corpus, options.lesson.corpus_validation)
    design = student_design(options.student)
    tokenizer = tokenizer_for(options, design, learnt)
    check_mask(tokenizer, options)
    length = options.recipe.max_length
    rows = [
        encode_corpus(text, tokenizer, layout=options.lesson.layout, max_length=length, causal=way.causal)
        for text in (learnt, judged)
    ]
    check_batch(len(rows[0]), options.recipe, place.group, options.pace.accumulate, str(corpus))
    network = network_for(options, design, tokenizer, place.seed).to(place.device)
    room = room_for(network)
    if room is not None and length > room:
        raise BadInput(f"--max-length must be at most {room}, the positions of this network, got {length}.")
    return CorpusData(network, tokenizer, rows[0], first_rows(rows[1], options.data.validation_rows), str(corpus))


def tokenizer_for(options: TrainConfig, design: StudentDesign | None, text: Corpus) -> Any:
    """Of the trained network, as asked for, the teacher's, or what networks of the space usually read."""
    student, teacher = options.student, options.lesson.teacher
    if design is None:
        return read_tokenizer(checkpoint_source(str(student.model)))
    if student.tokenizer in TOKENIZER_TRAINERS:
        return train_tokenizer(str(student.tokenizer), text.lines, student.vocabulary)
    if student.tokenizer is not None or teacher is not None:
        return read_tokenizer(checkpoint_source(str(student.tokenizer or teacher)))
    return USUAL[design.space.text](text, student.vocabulary)


def gpt2_files(text: Corpus, size: int | None) -> Any:
    return read_tokenizer(str(public_data("gpt2-bpe", origin=GPT2_ORIGIN, option="--tokenizer")))


USUAL: dict[str, Callable[[Corpus, int | None], Any]] = {
    "bert": lambda text, size: read_tokenizer(resolve_model("minilm")),
    "gpt2": gpt2_files,
    "words": lambda text, size: train_tokenizer("words", text.lines, size),
}
"""How networks of a space read, where nothing else is said."""


def check_mask(tokenizer: Any, options: TrainConfig) -> None:
    if not options.way.causal and tokenizer.mask_token_id is None:
        raise BadInput(f"--lesson {options.name} needs a tokenizer with a mask token; give another --tokenizer.")


def network_for(options: TrainConfig, design: StudentDesign | None, tokenizer: Any, seed: int) -> Any:
    head = str(options.way.head)
    if design is not None:
        return build_student(design, head, vocabulary=len(tokenizer), seed=seed)
    return load_student(checkpoint_source(str(options.student.model)), head, seed=seed)


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
