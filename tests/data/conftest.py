"""Tokenizers of an encoder and of a decoder, and generated data."""

from pathlib import Path
from typing import Any

import pytest
from transformers import GPT2Tokenizer

from archwright.data.text.tokenizer import load_tokenizer


@pytest.fixture(scope="session")
def wordpiece(minilm: Path) -> Any:
    """The bert-base-uncased vocabulary: special tokens around texts, offsets without blanks."""
    return load_tokenizer(str(minilm))


@pytest.fixture(scope="session")
def bpe(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """GPT-2's: no special tokens, no padding token of its own, offsets with the blank before a word."""
    folder = tmp_path_factory.mktemp("gpt2")
    files = {"vocab": "encoder.json", "merges": "vocab.bpe"}
    GPT2Tokenizer(**{key: str(data_dir / "gpt2-bpe" / name) for key, name in files.items()}).save_pretrained(folder)
    return load_tokenizer(str(folder))
