"""Every stock family in every format and task, and once at the shapes of a known checkpoint with random weights."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from archwright.errors import BadInput
from archwright.exporting import hf
from archwright.exporting.checkpoint import export
from archwright.exporting.formats import FORMATS
from archwright.networks.families import FAMILIES
from archwright.networks.load import network_class, put_weights, supernet_config
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.importance import ImportanceOrder, reorder
from archwright.subnet.slicing import masked_subnetwork, subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec, nonembedding_parameters, parameters, positions
from tests.exporting.tiny import DECODERS, HEADS, SIZES, UNITS, batches, inside, supernet, tokenizer
from tests.tiny import ROUNDED  # stock modules that compute in float64 since it was imported

UNEVEN = (LayerSpec((0, 2), (3, 7, 30)), LayerSpec(3, 0), LayerSpec(1, 11))
EVEN = (LayerSpec(HEADS, 17),) * 3
FIRST = {name.split(",")[0]: name for name in reversed(SIZES)}
"""One tiny network of every family."""
CASES = [
    (family, kind, to)
    for family in FIRST
    for kind in ("classification", *(["lm"] if family in DECODERS else []))
    for to in FORMATS
]


def test_every_stock_family_is_tried() -> None:
    assert set(FIRST) == {name for name, family in FAMILIES.items() if family.stock and not family.shared_layer}


@pytest.mark.slow
@pytest.mark.parametrize(("family", "kind", "to"), CASES)
def test_every_format(family: str, kind: str, to: str, tmp_path: Path) -> None:
    model, keep = supernet(FIRST[family], kind=kind), EVEN if to == "hf" else UNEVEN
    parity = export(
        extract(model, keep),
        tokenizer(FIRST[family]),
        tmp_path / "out",
        to=to,
        reference=inside(model, keep),
        batches=batches(FIRST[family], kind),
    )
    assert parity.family == family
    assert parity.difference.share <= parity.limit


def test_the_first_layer_of_modernbert_has_no_norm_to_give() -> None:
    """Stock classes leave out the norm of the first attention, so an equal network without it cannot be one of them."""
    network = extract(supernet("modernbert", "cls"), (LayerSpec(0, 0), *EVEN[1:]))
    with pytest.raises(BadInput, match=r"first layer of modernbert.*layers \[1, 2\] without it; export to hf-padded"):
        hf.check_expressible(network)
    assert hf.as_stock(network).config.num_hidden_layers == 3


def test_heads_of_mpnet_go_back_to_their_columns_of_the_shared_table() -> None:
    model = supernet("mpnet", "cls")
    heads = ((2, 0, 3, 1), (1, 3, 2, 0), (3, 2, 1, 0))
    reorder(model, ImportanceOrder(heads, (tuple(range(UNITS)),) * 3, (0, 1, 2)))
    network = extract(model, (LayerSpec(2, 5), LayerSpec((0, 3), 4), LayerSpec(4, 3)))
    assert network.backbone.encoder.layer[1].attention.attn.head_places.tolist() == [1, 0]
    stock = hf.as_stock(network)
    for inputs in batches("mpnet"):
        with torch.no_grad():
            torch.testing.assert_close(stock(**inputs).logits, network(**inputs).logits, rtol=0, atol=1e-5)


REAL: dict[str, dict[str, Any]] = {
    "xlm-roberta": {"vocab_size": 250002, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "camembert": {"vocab_size": 32005, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "mpnet": {"vocab_size": 30527, "max_position_embeddings": 514, "layer_norm_eps": 1e-5},
    "modernbert": {},
    "deberta-v2": {
        **{"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "relative_attention": True},
        **{"position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True, "type_vocab_size": 0},
        **{"pos_att_type": "p2c|c2p", "position_biased_input": False, "max_relative_positions": -1},
    },
    "phi3": {"num_attention_heads": 32, "num_key_value_heads": 32, "sliding_window": 2047},
    "gemma2": {},
    "gemma3_text": {
        **{"hidden_size": 640, "intermediate_size": 2048, "num_attention_heads": 4, "num_key_value_heads": 1},
        **{"sliding_window": 512, "vocab_size": 262144},
    },
}
"""XLM-RoBERTa-base, camembert-base, mpnet-base, ModernBERT-base, DeBERTa-v3-base, Phi-3-mini, Gemma-2-2B, Gemma-3-270M:
what differs from the defaults of their configs. Two layers, and 1,000 words, so that they fit."""


assert ROUNDED


def real_config(name: str) -> PreTrainedConfig:
    size = {"vocab_size": 1000, "num_hidden_layers": 2, "pad_token_id": 1 if name in ("mpnet", "camembert") else 0}
    special = {"bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
    return CONFIG_MAPPING[name](**{**REAL[name], **size, **special, "id2label": {0: "a", 1: "b"}})


def zero_removed(stock: Any, network: PrunedNetwork, spec: SubnetSpec) -> None:
    """Zeros in the stock network's own weights for heads and units that are gone: columns of what reads them."""
    for layer, placed, part in zip(
        stock.base_model.get_submodule(network.config.family.layers), network.placed_layers(), spec, strict=True
    ):
        queries, size = network.config.heads_go_by.query_heads(placed.shape, positions(part.heads)), placed.shape.size
        features = [head * size + i for head in queries for i in range(size)]
        for path, kept in ((placed.parts.mix, features), (placed.parts.down, list(positions(part.units)))):
            weight = layer.get_submodule(path).weight
            mask = torch.zeros(weight.shape[1], dtype=weight.dtype)
            mask[kept] = 1
            weight.mul_(mask)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
@torch.no_grad()
def test_real_shapes(name: str) -> None:
    """Masked, sliced and extracted equal transformers' own class with zeros for what is gone, in float64."""
    config = real_config(name)
    decoder = FAMILIES[name].causal
    kind, auto = ("lm", AutoModelForCausalLM) if decoder else ("classification", AutoModelForSequenceClassification)
    torch.manual_seed(0)
    stock = auto.from_config(config, attn_implementation=FAMILIES[name].kernel).double().eval()
    whole = supernet_config(config, kind=kind, labels=() if decoder else ("a", "b"))
    network = network_class(kind)(whole).double().eval()
    put_weights(network, stock, fitted=True)
    heads, units = whole.layers[0]
    spec = (LayerSpec(tuple(range(0, heads, 2)), tuple(range(1, units, 3))), LayerSpec(max(1, heads // 3), units // 2))
    small = extract(network, spec)
    anatomy = read_anatomy(whole)
    assert sum(p.numel() for p in small.parameters()) == parameters(anatomy, spec)
    assert nonembedding_parameters(anatomy, spec) < nonembedding_parameters(anatomy, anatomy.full)
    inputs = {"input_ids": torch.randint(4, 1000, (2, 40)), "attention_mask": torch.ones(2, 40, dtype=torch.long)}
    inputs["attention_mask"][1, 30:] = 0
    inputs["input_ids"][1, 30:] = config.pad_token_id
    with masked_subnetwork(network, spec):
        masked = network(**inputs).logits
    with subnetwork(network, spec):
        sliced = network(**inputs).logits
    zero_removed(stock, network, spec)
    expected = stock(**inputs).logits
    real = inputs["attention_mask"].bool() if decoder else slice(None)
    for found in (masked, sliced, small(**inputs).logits):
        torch.testing.assert_close(found[real], expected[real], rtol=0, atol=1e-9)
