"""From text to token numbers: a checkpoint's pieces, GPT-2's byte pairs, or the words of a text."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from archwright.data.files import decode_utf8, read_bytes
from archwright.data.text.tokenizer import load_tokenizer
from archwright.errors import BadInput


@dataclass(frozen=True)
class TextEncoder:
    """From text to token numbers."""

    ids: Callable[[str], list[int]]
    size: int
    mask: int
    """Token that hides another one in masked language modelling."""


def read(path: Path) -> list[str]:
    """The lines with something in them."""
    try:
        state = path.stat()
    except (OSError, ValueError):
        read_bytes(path)  # says what is wrong
        raise
    return lines_of(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def lines_of(path: Path, changed: int, size: int) -> list[str]:
    """As long as the file stays as it is, it is read once."""
    lines = [line.strip() for line in decode_utf8(read_bytes(path), str(path)).splitlines()]
    found = [line for line in lines if line]
    if not found:
        raise BadInput(f"{path} has no text; give a text file with sentences in it.")
    return found


def checkpoint_encoder(source: str) -> TextEncoder:
    """The vocabulary of a checkpoint's tokenizer, without special tokens around a text."""
    tokenizer = load_tokenizer(source)

    def ids(text: str) -> list[int]:
        known = text.replace("<unk>", tokenizer.unk_token or "")
        found: list[int] = tokenizer(known, add_special_tokens=False, verbose=False)["input_ids"]
        return found

    return TextEncoder(ids, len(tokenizer), tokenizer.mask_token_id or 0)


def gpt2_encoder(folder: Path) -> TextEncoder:
    """The vocabulary of GPT-2 from its two original files."""
    from tokenizers import ByteLevelBPETokenizer

    for name in (files := ("encoder.json", "vocab.bpe")):
        read_bytes(folder / name)
    tokenizer = ByteLevelBPETokenizer.from_file(*(str(folder / name) for name in files))

    def ids(text: str) -> list[int]:
        found: list[int] = tokenizer.encode(text).ids
        return found

    return TextEncoder(ids, tokenizer.get_vocab_size(), 0)


def word_encoder(text: Path) -> TextEncoder:
    """The words of the text itself, and the end of a line as one more."""
    found = dict.fromkeys(word for line in read(text) for word in line.split())
    numbers, end = {word: place for place, word in enumerate(found)}, len(found)

    def ids(piece: str) -> list[int]:
        return [number for line in piece.split("\n") for number in (*map(numbers.__getitem__, line.split()), end)]

    return TextEncoder(ids, end + 1, end)
