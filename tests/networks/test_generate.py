"""Pruned decoders write text: with a cache the same as without, whatever is left of each layer."""

from pathlib import Path

import pytest
import torch

from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedForCausalLM
from archwright.subnet.extract import extract
from archwright.subnet.slicing import masked_subnetwork, subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec
from tests.tiny import DECODERS, ENCODERS, shared_tiny, text_batch

KEEPS: dict[str, SubnetSpec] = {
    "whole": (LayerSpec(4, 10),) * 3,
    "different heads": (LayerSpec((1, 2, 3), (0, 4, 9)), LayerSpec(1, 4), LayerSpec(2, 0)),
    "no attention at first": (LayerSpec(0, 4), LayerSpec((0, 3), (2, 5)), LayerSpec(1, 3)),
    "attention in the last alone": (LayerSpec(0, 4), LayerSpec(0, 0), LayerSpec((1, 3), 3)),
    "no attention": (LayerSpec(0, 4), LayerSpec(0, 0), LayerSpec(0, 7)),
    "nothing": (LayerSpec(0, 0),) * 3,
}
PROMPT, NEW = 5, 9
"""Tokens; together more than the sliding windows of three."""


def written(model: PrunedForCausalLM, ids: torch.Tensor, **how: object) -> torch.Tensor:
    """Greedy text; the end token is no end, so that all texts are equally long."""
    return model.generate(ids, max_new_tokens=NEW, do_sample=False, eos_token_id=None, **how)


@pytest.mark.covering
@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
@pytest.mark.parametrize("name", DECODERS)
def test_a_cache_changes_no_word(name: str, keep: SubnetSpec, tmp_path: Path) -> None:
    small = extract(shared_tiny(name, None, "lm"), keep)
    ids = text_batch(name, length=PROMPT).inputs["input_ids"]
    expected = written(small, ids, use_cache=False)
    assert expected.shape == (3, PROMPT + NEW)
    assert torch.equal(written(small, ids, use_cache=True), expected)
    small.float().save_pretrained(tmp_path)
    assert torch.equal(
        written(load_saved_network(tmp_path).double(), ids), written(small.double(), ids, use_cache=False)
    )


@pytest.mark.covering
@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
@pytest.mark.parametrize("name", DECODERS)
def test_token_by_token_gives_the_logits_of_the_whole_text(name: str, keep: SubnetSpec) -> None:
    small = extract(shared_tiny(name, None, "lm"), keep)
    ids = text_batch(name, length=8).inputs["input_ids"]
    with torch.no_grad():
        whole, cache, steps = small(ids).logits, None, []
        for place in range(ids.shape[1]):
            answer = small(
                ids[:, place : place + 1],
                position_ids=torch.tensor([[place]]),
                past_key_values=cache,
                use_cache=True,
            )
            cache = answer.past_key_values
            steps.append(answer.logits)
    torch.testing.assert_close(torch.cat(steps, 1), whole, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", DECODERS)
def test_padding_on_the_left_changes_no_word(name: str) -> None:
    small = extract(shared_tiny(name, None, "lm"), KEEPS["different heads"])
    ids = text_batch(name, texts=1, length=PROMPT).inputs["input_ids"]
    padded = torch.nn.functional.pad(ids, (4, 0))
    mask = torch.nn.functional.pad(torch.ones_like(ids), (4, 0))
    assert torch.equal(written(small, padded, attention_mask=mask)[:, 4:], written(small, ids))


@pytest.mark.covering
@pytest.mark.parametrize("way", [subnetwork, masked_subnetwork])
@pytest.mark.parametrize("name", DECODERS)
def test_a_subnetwork_writes_inside_its_supernetwork_too(name: str, way: type) -> None:
    model, keep = shared_tiny(name, None, "lm"), KEEPS["attention in the last alone"]
    ids = text_batch(name, length=PROMPT).inputs["input_ids"]
    expected = written(extract(model, keep), ids)
    whole = written(model, ids)
    with way(model, keep):
        assert torch.equal(written(model, ids), expected)
    assert torch.equal(written(model, ids), whole)
    assert not torch.equal(whole, expected)


def test_nothing_is_cached_unless_asked_for() -> None:
    model, ids = shared_tiny("llama", None, "lm"), text_batch("llama").inputs["input_ids"]
    assert model(ids).past_key_values is None
    assert model(ids, use_cache=True).past_key_values.get_seq_length() == ids.shape[1]


def test_a_cache_holds_only_the_layers_with_attention() -> None:
    small = extract(shared_tiny("qwen3", None, "lm"), KEEPS["no attention at first"])
    cache = small(text_batch("qwen3").inputs["input_ids"], use_cache=True).past_key_values
    assert [layer.keys.shape[1] for layer in cache.layers] == [2, 1]  # key heads
    assert cache.is_sliding == [False, True]


def test_only_the_asked_logits_are_computed() -> None:
    model, ids = shared_tiny("gpt2", None, "lm"), text_batch("gpt2").inputs["input_ids"]
    assert torch.allclose(model(ids, logits_to_keep=2).logits, model(ids).logits[:, -2:], rtol=1e-12)


def test_only_language_models_write() -> None:
    assert PrunedForCausalLM.can_generate()
    kinds = [shared_tiny(name, None, "classification") for name in (*ENCODERS, "llama")]
    assert not any(model.can_generate() for model in kinds)
