"""What sentence encoders say of themselves: read, refused, and written so that it is read as the same."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from archwright.errors import BadInput
from archwright.networks.pruned import SENTENCE_POOLINGS
from archwright.networks.sentence_encoder import (
    POOLING_MODES,
    SentenceEncoder,
    read_sentence_encoder,
    write_sentence_encoder,
)
from tests.tiny import pair_batch, tiny

TYPES = "sentence_transformers.models."


def described(
    folder: Path, pooling: Any, *, kinds: tuple[str, ...] = ("Transformer", "Pooling"), **lengths: Any
) -> str:
    (folder / "1_Pooling").mkdir(parents=True)
    modules = [
        {"idx": i, "path": "1_Pooling" if i == 1 else "", "type": f"{TYPES}{kind}"} for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps(lengths))
    return str(folder)


def test_minilm(minilm: Path) -> None:
    assert read_sentence_encoder(str(minilm), None, "cls") == SentenceEncoder("mean", True, 256)
    assert read_sentence_encoder(str(minilm), "cls", "cls").pooling == "cls"


def test_without_files_it_is_the_mean_or_the_last_token(tmp_path: Path) -> None:
    assert read_sentence_encoder(str(tmp_path), None, "cls") == SentenceEncoder("mean")
    assert read_sentence_encoder(str(tmp_path), None, "last") == SentenceEncoder("last")


@pytest.mark.parametrize(
    ("pooling", "name"),
    [
        ({"pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": False}, "max"),
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode": ["lasttoken"]}, "last"),
        ({}, "mean"),
    ],
)
def test_pooling_in_old_and_new_words(pooling: dict[str, Any], name: str, tmp_path: Path) -> None:
    assert read_sentence_encoder(described(tmp_path / "m", pooling), None, "cls").pooling == name


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"pooling": {"pooling_mode_mean_sqrt_len_tokens": True}}, "must be one of cls, mean, max, lasttoken"),
        ({"pooling": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}}, "got cls, mean"),
        ({"pooling": {}, "kinds": ("Transformer", "Pooling", "Dense", "Normalize")}, "got Transformer, Pooling, Dense"),
        ({"pooling": {}, "do_lower_case": True}, "do_lower_case"),
    ],
)
def test_what_cannot_be_kept_is_refused(options: dict[str, Any], rule: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=rule):
        read_sentence_encoder(described(tmp_path / "m", **options), None, "cls")


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("{")
    with pytest.raises(BadInput, match="must be JSON"):
        read_sentence_encoder(str(tmp_path), None, "cls")


@pytest.mark.parametrize("pooling", POOLING_MODES)
@pytest.mark.parametrize("normalize", [True, False])
def test_what_is_written_is_read_as_the_same(pooling: str, normalize: bool, tmp_path: Path) -> None:
    encoder = SentenceEncoder(pooling, normalize, 99, {"prompts": {"query": "query: "}, "similarity_fn_name": "dot"})
    write_sentence_encoder(tmp_path, pooling=pooling, width=16, sentence=encoder.config)
    assert read_sentence_encoder(str(tmp_path), None, "cls") == encoder


@pytest.mark.parametrize("pooling", SENTENCE_POOLINGS)
@pytest.mark.parametrize("normalize", [True, False])
def test_padding_and_the_other_text_of_a_row_change_no_vector(pooling: str, normalize: bool) -> None:
    model, batch = tiny("bert", kind="embeddings", pooling=pooling), pair_batch("bert")
    model.config.sentence = {"normalize": normalize}
    with torch.no_grad():
        answer = model(**batch.inputs)
        assert answer.logits.shape == (3, 2, 16)
        for row in range(3):
            for text in range(2):
                alone = {name: tensor[row, text] for name, tensor in batch.inputs.items()}
                length = int(alone["attention_mask"].sum())
                single = model(**{name: tensor[None, :length] for name, tensor in alone.items()})
                torch.testing.assert_close(single.logits[0, 0], answer.logits[row, text], rtol=0, atol=1e-9)
                torch.testing.assert_close(
                    single.last_hidden_state[0], answer.last_hidden_state[2 * row + text, :length], rtol=0, atol=1e-9
                )
    lengths = answer.logits.norm(dim=-1)
    assert torch.allclose(lengths, torch.ones_like(lengths)) == normalize
