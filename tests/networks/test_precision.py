"""The precision of weights: what a checkpoint stores, what a run keeps, and that loading makes no second copy."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, LlamaConfig

from archwright.errors import BadInput
from archwright.networks.load import load_saved_network, load_supernet
from archwright.networks.precision import LARGE, Float32Arithmetic, choose_weights, stored_precisions
from archwright.networks.pruned import PrunedNetwork

SIZE = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "pad_token_id": 0,
}
IDS = torch.tensor([[5, 9, 3, 30, 41, 7]])


def save_llama(folder: Path, dtype: torch.dtype = torch.bfloat16, **options: object) -> Path:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = AutoModelForCausalLM.from_config(LlamaConfig(**SIZE, tie_word_embeddings=True))
    network.to(dtype).save_pretrained(folder, **options)
    return folder


def mapped_files(network: torch.nn.Module) -> set[str]:
    """Names of the files that the memory of its parameters belongs to; empty for memory of its own."""
    ranges = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        first, last = (int(end, 16) for end in words[0].split("-"))
        ranges.append((first, last, words[5] if len(words) > 5 else ""))
    places = [parameter.data_ptr() for parameter in network.parameters()]
    return {Path(name).name for place in places for first, last, name in ranges if first <= place < last}


def test_a_checkpoint_of_the_same_precision_is_mapped_and_not_copied(tmp_path: Path) -> None:
    source = save_llama(tmp_path / "llama")
    network = load_supernet(str(source), kind="lm", dtype=torch.bfloat16)
    assert network.dtype == torch.bfloat16 and mapped_files(network) == {"model.safetensors"}
    assert network.lm_head.weight is network.backbone.embed_tokens.weight
    network.save_pretrained(tmp_path / "ours")
    saved = load_saved_network(tmp_path / "ours")
    assert saved.dtype == torch.bfloat16 and mapped_files(saved) == {"model.safetensors"}
    widened = load_supernet(str(source), kind="lm")
    assert widened.dtype == torch.float32 and not mapped_files(widened) & {"model.safetensors"}
    assert torch.equal(widened.backbone.norm.weight, network.backbone.norm.weight.float())


def test_training_mapped_weights_leaves_the_file_alone(tmp_path: Path) -> None:
    source = save_llama(tmp_path / "llama")
    before = (source / "model.safetensors").read_bytes()
    network = load_supernet(str(source), kind="lm", dtype=torch.bfloat16)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    assert (source / "model.safetensors").read_bytes() == before
    assert float(load_supernet(str(source), kind="lm", dtype=torch.bfloat16).lm_head.weight.abs().max()) > 0


def test_it_computes_what_the_stock_network_computes(tmp_path: Path) -> None:
    """Also the speeds of rotations, which are no weights and stay float32."""
    source = save_llama(tmp_path / "llama")
    network = load_supernet(str(source), kind="lm", dtype=torch.bfloat16)
    stock = AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16).eval()
    assert network.backbone.rotary_emb.inv_freq.dtype == torch.float32
    assert torch.equal(network.backbone.rotary_emb.inv_freq, stock.model.rotary_emb.inv_freq)
    with torch.no_grad():
        assert torch.equal(network(IDS).logits, stock(IDS).logits)


def test_a_new_head_on_bfloat16_weights_is_the_same_for_a_seed(tmp_path: Path) -> None:
    source = str(save_llama(tmp_path / "llama"))

    def load(seed: int) -> PrunedNetwork:
        return load_supernet(source, labels=("bad", "good"), dtype=torch.bfloat16, seed=seed, keep_head=False)

    one, same, other = load(1), load(1), load(2)
    assert one.head.out.weight.dtype == torch.bfloat16 and not any(p.is_meta for p in one.parameters())
    assert torch.equal(one.head.out.weight, same.head.out.weight)
    assert not torch.equal(one.head.out.weight, other.head.out.weight)
    assert one(IDS).logits.shape == (1, 2) and bool(one(IDS).logits.isfinite().all())


def test_an_own_head_keeps_its_weights(tmp_path: Path) -> None:
    config = LlamaConfig(**SIZE, id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
    stock = AutoModelForSequenceClassification.from_config(config, dtype=torch.bfloat16).eval()
    stock.save_pretrained(tmp_path)
    network = load_supernet(str(tmp_path), labels=("bad", "good"), dtype=torch.bfloat16)
    with torch.no_grad():
        assert torch.equal(network(IDS).logits, stock(IDS).logits)


@pytest.mark.parametrize("shard", ["1GB", "10KB"])
def test_stored_precisions_are_read_from_headers(tmp_path: Path, shard: str) -> None:
    source = save_llama(tmp_path / "llama", max_shard_size=shard)
    assert (source / "model.safetensors").exists() == (shard == "1GB")
    counts = stored_precisions(str(source))
    network = load_supernet(str(source), kind="lm", dtype=torch.bfloat16)
    assert counts == {torch.bfloat16: sum(parameter.numel() for parameter in network.parameters())}
    assert stored_precisions(str(tmp_path)) == {}


def test_a_damaged_header_says_nothing_here(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    assert stored_precisions(str(tmp_path)) == {}
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weights": 1}))
    assert stored_precisions(str(tmp_path)) == {}


@pytest.mark.parametrize(
    ("rule", "stored", "chosen"),
    [
        ("auto", {torch.bfloat16: LARGE}, torch.bfloat16),
        ("auto", {torch.bfloat16: LARGE - 1}, torch.float32),
        ("auto", {torch.float16: 2 * LARGE}, torch.float32),
        ("auto", {torch.float32: 2 * LARGE}, torch.float32),
        ("auto", {}, torch.float32),
        ("float32", {torch.bfloat16: LARGE}, torch.float32),
        ("checkpoint", {torch.bfloat16: 5, torch.float32: 2}, torch.bfloat16),
        ("checkpoint", {torch.float32: 5}, torch.float32),
    ],
)
def test_which_precision_is_kept(rule: str, stored: dict[torch.dtype, int], chosen: torch.dtype) -> None:
    assert choose_weights(rule, "model", stored) == chosen


@pytest.mark.parametrize(("stored", "name"), [({torch.float16: 5}, "float16"), ({}, "a packed or pickled file")])
def test_what_cannot_be_kept_is_refused(stored: dict[torch.dtype, int], name: str) -> None:
    with pytest.raises(BadInput, match=f"needs safetensors in bfloat16 or float32, got {name}.*take float32"):
        choose_weights("checkpoint", "model", stored)


def test_float32_arithmetic_is_that_of_widened_weights(tmp_path: Path) -> None:
    source = save_llama(tmp_path / "llama")
    low, wide = (load_supernet(str(source), kind="lm", dtype=kind) for kind in (torch.bfloat16, torch.float32))
    with torch.no_grad():
        expected, rounded = wide(IDS).logits, low(IDS).logits
        with Float32Arithmetic():
            exact = low(IDS).logits
    assert exact.dtype == torch.float32 and low.dtype == torch.bfloat16
    torch.testing.assert_close(exact, expected, rtol=1e-6, atol=1e-6)
    assert float((rounded.float() - expected).abs().max()) > 1e-4  # the test can tell
