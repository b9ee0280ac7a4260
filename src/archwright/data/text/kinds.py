"""How the networks of a space read a text: one record for the small batches of probes and for training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archwright.data.public_data import GPT2_ORIGIN, public_data, resolve_model
from archwright.data.text.snippets import TextEncoder, checkpoint_encoder, file_encoder, gpt2_encoder, word_encoder
from archwright.data.text.tokenizer import file_tokenizer, read_tokenizer, train_tokenizer


@dataclass(frozen=True)
class TextKind:
    """A vocabulary that networks of a space read with."""

    encoder: Callable[[Path], TextEncoder]
    """A text file -> what `snippets` tokenizes it with."""
    tokenizer: Callable[[Sequence[str], int | None], Any]
    """Lines of a corpus and size of a vocabulary, where they count -> the tokenizer to train with by default."""


def gpt2_folder(option: str) -> Path:
    return public_data("gpt2-bpe", origin=GPT2_ORIGIN, option=option)


MICRO_VOCABULARY = Path(__file__).parent / "micro_vocabulary.json"
"""Byte pairs of the benchmark `micro-lm`: 1,024 words of WikiText-2."""


TEXT_KINDS: dict[str, TextKind] = {
    "bert": TextKind(
        encoder=lambda text: checkpoint_encoder(resolve_model("minilm")),
        tokenizer=lambda lines, size: read_tokenizer(resolve_model("minilm")),
    ),
    "gpt2": TextKind(
        encoder=lambda text: gpt2_encoder(gpt2_folder("ARCHWRIGHT_DATA")),
        tokenizer=lambda lines, size: read_tokenizer(str(gpt2_folder("--tokenizer"))),
    ),
    "micro": TextKind(
        encoder=lambda text: file_encoder(MICRO_VOCABULARY),
        tokenizer=lambda lines, size: file_tokenizer(MICRO_VOCABULARY),
    ),
    "words": TextKind(encoder=word_encoder, tokenizer=lambda lines, size: train_tokenizer("words", lines, size)),
}
"""Members of `ArchitectureSpace.text`."""
