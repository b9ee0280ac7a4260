"""Tokenizers made on the spot: the words or byte pairs of a text, or GPT-2's from its two original files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from archwright.data.files import read_bytes
from archwright.data.text.tokenizer import load_tokenizer
from archwright.errors import BadInput

SPECIAL = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
FEWEST_TOKENS = 300
"""Of a vocabulary made from a text: all bytes, the special tokens, and a few more."""
GPT2_FILES = ("encoder.json", "vocab.bpe")
GPT2_END = "<|endoftext|>"


def train_words(lines: Sequence[str], size: int) -> Any:
    """Words between blanks, the most frequent ones first; the end of a line is a token too."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token=SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordLevelTrainer(vocab_size=size, special_tokens=list(SPECIAL.values()), show_progress=False)
    tokenizer.train_from_iterator((line.replace("<unk>", "") for line in lines), trainer)
    return tokenizer


def train_bpe(lines: Sequence[str], size: int) -> Any:
    """Byte pairs learnt on the text: every text can be written in them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special, alphabet = list(SPECIAL.values()), pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


TOKENIZER_TRAINERS: dict[str, Callable[[Sequence[str], int], Any]] = {"words": train_words, "bpe": train_bpe}
"""Tokenizers that are learnt from a text: lines and size of the vocabulary -> tokenizer."""
USUAL_SIZES = {"words": 10**7, "bpe": 16384}
"""Of vocabularies where none is asked for: all words."""


def train_tokenizer(name: str, lines: Sequence[str], size: int | None = None) -> Any:
    """A tokenizer of this kind for this text, as transformers knows them."""
    from transformers import PreTrainedTokenizerFast

    size = USUAL_SIZES[name] if size is None else size
    if size < FEWEST_TOKENS:
        raise BadInput(f"--vocabulary must be at least {FEWEST_TOKENS}, got {size}.")
    tokenizer = TOKENIZER_TRAINERS[name](lines, size)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL["sep_token"], **SPECIAL)


def gpt2_tokenizer(folder: Path) -> Any:
    """GPT-2's own tokenizer, read from the files of its first release."""
    from transformers import GPT2TokenizerFast

    for name in GPT2_FILES:
        read_bytes(folder / name)
    encoder, merges = (str(folder / name) for name in GPT2_FILES)
    tokenizer = GPT2TokenizerFast(
        vocab=encoder, merges=merges, eos_token=GPT2_END, bos_token=GPT2_END, unk_token=GPT2_END
    )
    tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def read_tokenizer(source: str) -> Any:
    """The tokenizer of a folder or hub id, also of a folder with GPT-2's original files."""
    folder = Path(source)
    original = folder.is_dir() and (folder / GPT2_FILES[0]).exists() and not (folder / "tokenizer.json").exists()
    return gpt2_tokenizer(folder) if original else load_tokenizer(source)
