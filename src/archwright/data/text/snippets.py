"""Small batches of real text to look at untrained networks with: seeded, without padding, in their own vocabulary."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archwright.data.text.text_encoders import TextEncoder, read
from archwright.errors import BadInput

Ids = NDArray[np.int64]
CHARACTERS = 8
"""Of text per wanted token that are tokenized at first; doubled until there are enough tokens."""
REPLACED = 0.15
"""Share of tokens that ELECTRA's or BERT's objective changes."""
NO_TARGET = -100


@dataclass(frozen=True, eq=False)
class Snippets:
    """Windows of text and what is to be predicted; tokens are numbered 0, 1, ... among those that occur at all."""

    input_ids: Ids
    """rows x length"""
    labels: Ids
    vocabulary: int
    """How many different tokens occur: a network needs no more embeddings to read them."""


def snippets(
    text: Path, vocabulary: TextEncoder, loss: str, *, rows: int, length: int, seed: tuple[int, ...]
) -> Snippets:
    """`rows` windows of `length` tokens at random lines, with the labels of the loss."""
    rng = np.random.default_rng(seed)
    windows = np.array([window(read(text), vocabulary, length, rng, text) for _ in range(rows)], dtype=np.int64)
    inputs, labels = CORRUPTIONS[loss](windows, vocabulary, rng)
    return renumber(inputs, labels, tokens_as_labels=loss in LABELS_ARE_TOKENS)


def window(lines: list[str], vocabulary: TextEncoder, length: int, rng: np.random.Generator, source: Path) -> list[int]:
    """The first `length` tokens from a random line on; goes on at the beginning of the text after its end."""
    start = int(rng.integers(len(lines)))
    turned, wanted = lines[start:] + lines[:start], CHARACTERS * length
    while True:
        piece = "\n".join(first_lines(turned, wanted))
        ids = vocabulary.ids(piece)
        if len(ids) >= length:
            return ids[:length]
        if len(piece) < wanted:
            raise BadInput(f"{source} has {len(ids)} tokens, fewer than the {length} of one row; give a longer text.")
        wanted *= 2


def first_lines(lines: list[str], characters: int) -> list[str]:
    """As many lines as it takes to have so many characters."""
    sizes = np.cumsum([len(line) + 1 for line in lines[: characters + 1]])
    return lines[: int(np.searchsorted(sizes, characters)) + 1]


def renumber(inputs: Ids, labels: Ids, *, tokens_as_labels: bool) -> Snippets:
    """The same batch with its tokens numbered among themselves."""
    seen = [inputs.ravel(), labels[labels != NO_TARGET]] if tokens_as_labels else [inputs.ravel()]
    known = np.unique(np.concatenate(seen))
    if tokens_as_labels:
        labels = np.where(labels == NO_TARGET, NO_TARGET, np.searchsorted(known, labels))
    return Snippets(np.searchsorted(known, inputs), labels, len(known))


def replaced(windows: Ids, vocabulary: TextEncoder, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """ELECTRA: some tokens are random others; the label says which (Clark et al. 2020, with a uniform generator)."""
    chosen = rng.random(windows.shape) < REPLACED
    others = rng.integers(vocabulary.size, size=windows.shape)
    inputs = np.where(chosen, others, windows)
    return inputs, (inputs != windows).astype(np.int64)


def masked(windows: Ids, vocabulary: TextEncoder, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """BERT: of the chosen tokens 80 % are hidden, 10 % are random and 10 % stay; the label is the token itself."""
    chosen, fate = rng.random(windows.shape) < REPLACED, rng.random(windows.shape)
    others = np.where(fate < 0.8, vocabulary.mask, rng.integers(vocabulary.size, size=windows.shape))
    inputs = np.where(chosen & (fate < 0.9), others, windows)
    return inputs, np.where(chosen, windows, NO_TARGET)


def unchanged(windows: Ids, vocabulary: TextEncoder, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """Causal language modelling: the network itself shifts the labels."""
    return windows, windows


CORRUPTIONS = {"electra": replaced, "mlm": masked, "lm": unchanged, "published": unchanged}
LABELS_ARE_TOKENS = {"mlm", "lm", "published"}
