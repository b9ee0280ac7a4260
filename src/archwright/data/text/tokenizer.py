"""Tokenizers: a checkpoint's, GPT-2's from its two original files, or the words or byte pairs of a text."""

import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from archwright.data.files import read_bytes
from archwright.errors import BadInput

UNREADABLE = (OSError, ValueError, LookupError, TypeError, RuntimeError, ArithmeticError, EOFError, struct.error)
"""What transformers raises, depending on the way in which a file is damaged."""
SPECIAL = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
FEWEST_TOKENS = 300
"""Of a vocabulary made from a text: all bytes, the special tokens, and a few more."""
GPT2_FILES = ("encoder.json", "vocab.bpe")
GPT2_END = "<|endoftext|>"


def load_tokenizer(source: str) -> Any:
    """The tokenizer of a folder or hub id, able to pad: with its last token if it has no other for it."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            source, trust_remote_code=False, **gguf_argument(source), **config_argument(source)
        )
    except UNREADABLE as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]
        raise BadInput(
            f"the tokenizer of {source!r} cannot be read ({reason}); put tokenizer.json beside the weights."
        ) from error
    if not tokenizer("a text", add_special_tokens=False)["input_ids"]:  # made up by transformers from nothing
        raise BadInput(f"the tokenizer of {source!r} knows no words; put tokenizer.json beside the weights.")
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is not None:
        tokenizer.pad_token = tokenizer.eos_token  # what it is does not matter: the attention mask hides it
    if tokenizer.pad_token_id is None:
        raise BadInput(
            f"the tokenizer of {source!r} must have a padding or end token; set pad_token in its tokenizer_config.json."
        )
    return tokenizer


def file_tokenizer(file: Path) -> Any:
    """A file of the tokenizers library with the usual names of special tokens."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_file=str(file), pad_token="[PAD]", mask_token="[MASK]", unk_token="<unk>")


def config_argument(source: str) -> dict[str, Any]:
    """An empty config where the folder's own needs code that lies beside it, as networks of ours have it.

    A tokenizer needs neither, but transformers would ask for both.
    """
    from transformers import PreTrainedConfig

    try:
        values = json.loads((Path(source) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {"config": PreTrainedConfig()} if isinstance(values, dict) and "auto_map" in values else {}


def gguf_argument(source: str) -> dict[str, str]:
    """Where the tokenizer of a folder is that has no tokenizer files, but one GGUF file: inside of it."""
    folder = Path(source)
    if not folder.is_dir() or any((folder / name).exists() for name in ("tokenizer.json", "tokenizer_config.json")):
        return {}
    files = sorted(folder.glob("*.gguf"))
    return {"gguf_file": files[0].name} if len(files) == 1 else {}


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
