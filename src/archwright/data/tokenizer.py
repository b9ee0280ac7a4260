"""A checkpoint's tokenizer."""

from typing import Any

from archwright.errors import BadInput


def load_tokenizer(source: str) -> Any:
    """The tokenizer of a folder or hub id, able to pad."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]
        raise BadInput(
            f"the tokenizer of {source!r} cannot be read ({reason}); put tokenizer.json beside the weights."
        ) from error
    if tokenizer.pad_token_id is None:
        raise BadInput(f"the tokenizer of {source!r} must have a padding token; set pad_token in its config.")
    return tokenizer
