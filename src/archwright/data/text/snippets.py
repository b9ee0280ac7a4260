"""Small batches of real text to probe untrained networks with: seeded, without padding, in their own vocabulary."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from archwright.data.encoding import NO_TARGET
from archwright.data.files import read_bytes
from archwright.data.text.corpus import UNKNOWN, cached_lines, hold_out_lines
from archwright.data.text.masking import BERT, REPLACED, Ids, mask_tokens
from archwright.data.text.tokenizer import GPT2_FILES, load_tokenizer
from archwright.errors import BadInput

CHARACTERS = 8
"""Of text per characters token that are tokenized at first; doubled until there are enough tokens."""


@dataclass(frozen=True)
class TextEncoder:
    """From text to token numbers."""

    encode: Callable[[str], list[int]]
    size: int
    mask_id: int
    """Token that hides another one in masked language modelling."""


@dataclass(frozen=True, eq=False)
class Snippets:
    """Windows of text and what is to be predicted; tokens are numbered 0, 1, ... among those that occur at all."""

    input_ids: Ids
    """rows x length"""
    labels: Ids
    vocabulary: int
    """How many different tokens occur: a network needs no more embeddings to read them."""


def snippets(
    text: Path,
    encoder: TextEncoder,
    loss: str,
    *,
    rows: int,
    length: int,
    seed: tuple[int, ...],
    held_out: int = 0,
) -> Snippets:
    """`rows` windows of `length` tokens at random lines, with the labels of the loss.

    electra: which tokens were replaced by random others; mlm: the tokens themselves where some were chosen, -100
    elsewhere; else causal language modelling, where the network itself shifts the labels. The last `held_out` rows are
    of the last twentieth of the lines, and the others then of the lines before them.
    """
    rng = np.random.default_rng(seed)
    parts = [(cached_lines(text), rows, str(text))]
    if held_out:
        parts = split_lines(text, rows, held_out)
    ids = np.array(
        [window(lines, encoder, length, rng, source) for lines, count, source in parts for _ in range(count)],
        dtype=np.int64,
    )
    if loss == "electra":
        inputs, _ = mask_tokens(ids, rng, mask_id=encoder.mask_id, vocabulary=encoder.size, rule=REPLACED)
        known = np.unique(inputs)
        return Snippets(np.searchsorted(known, inputs), (inputs != ids).astype(np.int64), len(known))
    inputs, labels = ids, ids
    if loss == "mlm":
        inputs, labels = mask_tokens(ids, rng, mask_id=encoder.mask_id, vocabulary=encoder.size, rule=BERT)
    known = np.unique(np.concatenate([inputs.ravel(), labels[labels != NO_TARGET]]))
    labels = np.where(labels == NO_TARGET, NO_TARGET, np.searchsorted(known, labels))
    return Snippets(np.searchsorted(known, inputs), labels, len(known))


def split_lines(text: Path, rows: int, held_out: int) -> list[tuple[list[str], int, str]]:
    """Lines to learn from and lines to judge by, with how many rows to draw of them, and what they are called."""
    learnt, judged = hold_out_lines(cached_lines(text))
    if not learnt:
        raise BadInput(f"{text} has one line, of which none can be held out to judge by; give a text of more lines.")
    return [(learnt, rows - held_out, f"{text} (train part)"), (judged, held_out, f"{text} (validation part)")]


def window(
    lines: list[str], encoder: TextEncoder, length: int, rng: np.random.Generator, source: Path | str
) -> list[int]:
    """The first `length` tokens from a random line on; goes on at the beginning of the text after its end."""
    start = int(rng.integers(len(lines)))
    turned, characters = lines[start:] + lines[:start], CHARACTERS * length
    while True:
        sizes = np.cumsum([len(line) + 1 for line in turned[: characters + 1]])
        piece = "\n".join(turned[: int(np.searchsorted(sizes, characters)) + 1])  # lines of so many characters
        ids = encoder.encode(piece)
        if len(ids) >= length:
            return ids[:length]
        if len(piece) < characters:
            raise BadInput(f"{source} has {len(ids)} tokens, fewer than the {length} of one row; give a longer text.")
        characters *= 2


def checkpoint_encoder(source: str) -> TextEncoder:
    """The vocabulary of a checkpoint's tokenizer, without special tokens around a text."""
    tokenizer = load_tokenizer(source)

    def encode(text: str) -> list[int]:
        known = text.replace(UNKNOWN, tokenizer.unk_token or "")
        ids: list[int] = tokenizer(known, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    return TextEncoder(encode, len(tokenizer), tokenizer.mask_token_id or 0)


def gpt2_encoder(folder: Path) -> TextEncoder:
    """The vocabulary of GPT-2 from its two original files."""
    from tokenizers import ByteLevelBPETokenizer

    for name in GPT2_FILES:
        read_bytes(folder / name)
    tokenizer = ByteLevelBPETokenizer.from_file(*(str(folder / name) for name in GPT2_FILES))
    return TextEncoder(lambda text: list(tokenizer.encode(text).ids), tokenizer.get_vocab_size(), 0)


def file_encoder(file: Path) -> TextEncoder:
    """The vocabulary of a file of the tokenizers library; [MASK] hides a token."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    numbers = tokenizer.get_vocab()
    return TextEncoder(lambda text: list(tokenizer.encode(text).ids), len(numbers), numbers["[MASK]"])


def word_encoder(text: Path) -> TextEncoder:
    """The words of the text itself, and the end of a line as one more."""
    words = dict.fromkeys(word for line in cached_lines(text) for word in line.split())
    numbers, end = {word: number for number, word in enumerate(words)}, len(words)

    def encode(piece: str) -> list[int]:
        return [number for line in piece.split("\n") for number in (*map(numbers.__getitem__, line.split()), end)]

    return TextEncoder(encode, end + 1, end)
