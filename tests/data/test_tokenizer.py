"""The tokenizer beside a checkpoint, or one clear line."""

from pathlib import Path

import pytest

from archwright.data import load_tokenizer
from archwright.errors import BadInput


def test_the_tokenizer_of_a_folder(minilm: Path) -> None:
    tokenizer = load_tokenizer(str(minilm))
    assert tokenizer.is_fast and tokenizer.pad_token_id == 0


def test_a_folder_without_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"the tokenizer of .* cannot be read") as caught:
        load_tokenizer(str(tmp_path))
    assert "\n" not in str(caught.value)
