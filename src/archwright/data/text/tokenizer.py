"""A checkpoint's tokenizer."""

import json
import struct
from pathlib import Path
from typing import Any

from archwright.errors import BadInput

UNREADABLE = (OSError, ValueError, LookupError, TypeError, RuntimeError, ArithmeticError, EOFError, struct.error)
"""What transformers raises, depending on the way in which a file is damaged."""


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
