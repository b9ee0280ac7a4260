"""How the networks of a space read a text: one record for the small batches of probes and for training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archwright.data.public_data import GPT2_ORIGIN, public_data, resolve_model
from archwright.data.text.snippets import TextEncoder, checkpoint_encoder, gpt2_encoder, word_encoder
from archwright.data.text.tokenizer import read_tokenizer, train_tokenizer


@dataclass(frozen=True)
class TextKind:
    """A vocabulary that networks of a space read with."""

    encoder: Callable[[Path], TextEncoder]
    """A text file -> what `snippets` tokenizes it with."""
    tokenizer: Callable[[Sequence[str], int | None], Any]
    """Lines of a corpus and size of a vocabulary, where they count -> the tokenizer to train with by default."""


def gpt2_folder(option: str) -> Path:
    return public_data("gpt2-bpe", origin=GPT2_ORIGIN, option=option)


TEXT_KINDS: dict[str, TextKind] = {
    "bert": TextKind(
        encoder=lambda text: checkpoint_encoder(resolve_model("minilm")),
        tokenizer=lambda lines, size: read_tokenizer(resolve_model("minilm")),
    ),
    "gpt2": TextKind(
        encoder=lambda text: gpt2_encoder(gpt2_folder("ARCHWRIGHT_DATA")),
        tokenizer=lambda lines, size: read_tokenizer(str(gpt2_folder("--tokenizer"))),
    ),
    "words": TextKind(encoder=word_encoder, tokenizer=lambda lines, size: train_tokenizer("words", lines, size)),
}
"""Members of `ArchitectureSpace.text`."""
