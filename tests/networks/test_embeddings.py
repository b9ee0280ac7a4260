"""Narrow tables of word vectors, and tables with fewer rows."""

import copy
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from archwright.errors import BadInput
from archwright.exporting.hf import write_stock
from archwright.networks.embeddings import LowRankEmbedding, factorize_embeddings, keep_tokens, renumber_config
from archwright.networks.load import freeze_embeddings, load_saved_network
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, flops, parameters
from tests.tiny import DECODERS, ENCODERS, tiny

KEPT = torch.tensor([0, 1, 2, 3, 7, 8, 11, 20, 21, 30, 39])
"""Of forty tokens; 1 and 2 are the ends of a text, 0 or 1 is the padding."""
SMALL = (LayerSpec(3, 7), LayerSpec(0, 4), LayerSpec(2, 0))


def texts(ids: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


@pytest.mark.parametrize("name", [*ENCODERS, *DECODERS])
def test_kept_tokens_mean_what_they_meant(name: str, tmp_path: Path) -> None:
    """Texts of tokens that stay get the same logits, before and after saving."""
    whole = tiny(name)
    small = copy.deepcopy(whole)
    keep_tokens(small, KEPT)
    new = torch.randint(4, len(KEPT), (3, 6), generator=torch.Generator().manual_seed(0))
    expected = whole(**texts(KEPT[new])).logits
    torch.testing.assert_close(small(**texts(new)).logits, expected, rtol=0, atol=1e-12)
    small.save_pretrained(tmp_path)
    torch.testing.assert_close(load_saved_network(tmp_path).double()(**texts(new)).logits, expected, rtol=0, atol=1e-5)
    assert small.config.backbone["vocab_size"] == len(KEPT)
    removed = 40 - len(KEPT)
    width = whole.get_input_embeddings().embedding_dim
    assert count(whole) - count(small) == removed * width
    assert count(small) == parameters(read_anatomy(small.config), read_anatomy(small.config).full)


def count(network: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("name", ["gpt2", "llama", "llama-groups", "qwen2"])
def test_language_models_lose_the_same_outputs(name: str) -> None:
    whole = tiny(name, kind="lm")
    small = copy.deepcopy(whole)
    keep_tokens(small, KEPT)
    new = torch.randint(4, len(KEPT), (2, 5), generator=torch.Generator().manual_seed(0))
    expected = whole(**texts(KEPT[new])).logits[..., KEPT]
    torch.testing.assert_close(small(**texts(new)).logits, expected, rtol=0, atol=1e-12)
    tied = whole.config.tie_word_embeddings
    assert (small.lm_head.weight is small.get_input_embeddings().weight) == tied
    assert small.generation_config.eos_token_id in (None, 2)
    anatomy = read_anatomy(small.config)
    assert count(small) == parameters(anatomy, anatomy.full)


def test_ids_in_configs_follow() -> None:
    """Also those that stand in the config only as its family's default, as GPT-2's end of a text does."""
    config = tiny("llama").config
    config.backbone = {**config.backbone, "eos_token_id": [30, 5], "bos_token_id": 39, "pad_token_id": 4}
    config.bos_token_id = 39
    renumber_config(config, KEPT)
    stock = config.stock()
    assert (stock.vocab_size, stock.bos_token_id, config.bos_token_id) == (11, 10, 10)
    assert stock.eos_token_id == [9] and stock.pad_token_id is None
    plain = tiny("gpt2").config
    plain.backbone = {key: value for key, value in plain.backbone.items() if not key.endswith("_token_id")}
    renumber_config(plain, torch.tensor([0, 1, 50256]))
    assert plain.stock().eos_token_id == 2


def test_positions_counted_from_the_padding() -> None:
    with pytest.raises(BadInput, match="leave the padding token at the id 1"):
        keep_tokens(tiny("roberta"), KEPT[1:])
    with pytest.raises(BadInput, match="40 rows and a token with the id 55"):
        keep_tokens(tiny(), torch.tensor([0, 1, 55]))


@pytest.mark.parametrize("name", [*ENCODERS, "llama"])
def test_counts_of_a_narrow_table_are_exact(name: str) -> None:
    network = tiny(name)
    width, before = network.get_input_embeddings().embedding_dim, read_anatomy(network.config)
    factorize_embeddings(network, 3, torch.ones(40))
    anatomy = read_anatomy(network.config)
    assert anatomy.embeddings == before.embeddings - 40 * width + 40 * 3 + 3 * width + width
    small = extract(network, SMALL)
    assert count(small) == parameters(anatomy, SMALL)
    assert flops(anatomy, SMALL, length=7) - flops(before, SMALL, length=7) == 2 * 7 * 3 * width


def test_the_best_table_of_its_rank() -> None:
    """Frequent tokens are kept best, and what has this rank is kept exactly."""
    network = tiny()
    table = network.get_input_embeddings().weight.detach().clone()
    counts = torch.ones(40)
    counts[5] = 1e6
    errors = {}
    for name, weights in (("even", torch.ones(40)), ("frequent", counts)):
        copied = copy.deepcopy(network)
        factorize_embeddings(copied, 4, weights)
        errors[name] = (copied.get_input_embeddings().multiplied_out() - table).pow(2).sum(1)
    values = torch.linalg.svdvals(table - table.mean(0))
    assert errors["even"].sum().item() == pytest.approx(values[4:].pow(2).sum().item())
    assert errors["frequent"][5] < 1e-6 < errors["even"][5] and errors["even"].sum() < errors["frequent"].sum()
    draws = torch.Generator().manual_seed(1)
    with torch.no_grad():
        factors = [torch.randn(*shape, generator=draws) for shape in ((40, 2), (2, 16))]
        network.get_input_embeddings().weight.copy_(factors[0] @ factors[1])
    expected = network.get_input_embeddings().weight.detach().clone()
    factorize_embeddings(network, 2, torch.ones(40))
    torch.testing.assert_close(network.get_input_embeddings()(torch.arange(40)), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ENCODERS)
def test_saved_and_multiplied_out(name: str, tmp_path: Path) -> None:
    network = tiny(name)
    factorize_embeddings(network, 3, torch.ones(40))
    inputs = texts(torch.randint(2, 40, (2, 6), generator=torch.Generator().manual_seed(0)))
    expected = network(**inputs).logits
    network.save_pretrained(tmp_path)
    again = load_saved_network(tmp_path).double()
    assert isinstance(again.get_input_embeddings(), LowRankEmbedding)
    torch.testing.assert_close(again(**inputs).logits, expected, rtol=0, atol=1e-4)
    write_stock(network, tmp_path / "padded", padded=True)
    stock = AutoModelForSequenceClassification.from_pretrained(tmp_path / "padded", dtype=torch.float64)
    torch.testing.assert_close(stock(**inputs).logits, expected, rtol=0, atol=1e-5)
    with pytest.raises(BadInput, match=r"rank 3 .* export to compact, or to hf-padded"):
        write_stock(network, tmp_path / "stock")


def test_only_the_projection_of_a_frozen_table_learns() -> None:
    network = tiny()
    factorize_embeddings(network, 3, torch.ones(40))
    freeze_embeddings(network)
    embeddings = network.backbone.embeddings
    assert {name for name, p in embeddings.named_parameters() if p.requires_grad} == {
        "word_embeddings.projection.weight",
        "word_embeddings.projection.bias",
    }


def test_ranks_that_make_no_sense() -> None:
    with pytest.raises(BadInput, match="below 16"):
        factorize_embeddings(tiny(), 16, torch.ones(40))
    with pytest.raises(BadInput, match="language model"):
        factorize_embeddings(tiny("llama", kind="lm"), 3, torch.ones(40))
