"""Any pruned decoder as stock classes: equal logits for every family, both groupings and every choice of parts."""

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from transformers import AutoModelForCausalLM, PreTrainedModel

from archwright.errors import BadInput
from archwright.exporting import hf
from archwright.logs import silence_libraries
from archwright.networks.pruned import PrunedNetwork as Network
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, SubnetSpec
from tests.exporting.tiny import DECODERS, HEADS, QUERIES, UNITS, batches, inside, keeps, supernet

MOST = {"groups": HEADS, "queries": QUERIES}
CASES = [
    (family, grouping)
    for family in DECODERS
    for grouping in (["groups"] if "gpt2" in family else ["groups", "queries"])
]
SUPERNETS = {(family, grouping): supernet(family, kind="lm", grouping=grouping) for family, grouping in CASES}
GONE = LayerSpec(0, 0)


def reloaded(network: Network) -> PreTrainedModel:
    with silence_libraries(), tempfile.TemporaryDirectory() as folder:
        hf.write_stock(network, Path(folder), padded=True)
        return AutoModelForCausalLM.from_pretrained(folder)


def largest_share(network: Network, other: PreTrainedModel, family: str) -> float:
    """Largest difference of logits in units of the largest logit or of 1."""
    with torch.no_grad():
        pairs = [(network(**batch).logits, other(**batch).logits) for batch in batches(family, "lm")]
    scale = max(1.0, *(float(ours.abs().max()) for ours, _ in pairs))
    return max(float((ours - theirs).abs().max()) for ours, theirs in pairs) / scale


@pytest.mark.parametrize(("family", "grouping"), CASES)
def test_padded_equals_the_extracted_network(family: str, grouping: str) -> None:
    @settings(max_examples=6, deadline=None, derandomize=True)
    @given(keep=keeps(MOST[grouping]))
    def check(keep: SubnetSpec) -> None:
        network = extract(SUPERNETS[family, grouping], keep)
        assert largest_share(network, reloaded(network), family) < 1e-4

    check()


CORNERS = {
    "no layer": (GONE,) * 3,
    "attention only": (LayerSpec(2, 0),) * 3,
    "FFN only": (LayerSpec(0, 5),) * 3,
    "FFN before attention": (LayerSpec(0, 5), LayerSpec(1, 0), LayerSpec((0, 1), 7)),
}


@pytest.mark.covering
@pytest.mark.parametrize(("family", "grouping"), CASES)
@pytest.mark.parametrize("keep", CORNERS.values(), ids=CORNERS)
def test_corners_in_double_precision(family: str, grouping: str, keep: SubnetSpec) -> None:
    """The norms of these families work in single precision, whatever their inputs are in."""
    model = SUPERNETS[family, grouping]
    network = extract(model, keep)
    exact = 1e-9 if "gpt2" in family else 1e-6
    assert largest_share(network.double(), reloaded(network).double(), family) < exact
    for inputs in batches(family, "lm"):
        assert torch.allclose(inside(model, keep)(inputs), network.float()(**inputs).logits, atol=1e-4, rtol=0)


def test_every_group_keeps_its_own_queries() -> None:
    """Two of three query heads of each of four groups: the third place of every group is empty, not the last four."""
    network = extract(SUPERNETS["mistral", "queries"], (LayerSpec((0, 2), 5), LayerSpec(3, 5), GONE))
    layer = hf.as_stock(network).model.layers[0].self_attn
    ours = network.backbone.layers[0].self_attn
    rows = layer.q_proj.weight.view(HEADS, QUERIES, 6, 48)
    assert torch.equal(rows[:, :2].flatten(0, 2), ours.q_proj.weight)
    assert not rows[:, 2].any()
    columns = layer.o_proj.weight.view(48, HEADS, QUERIES, 6)
    assert torch.equal(columns[:, :, :2].flatten(1), ours.o_proj.weight)
    assert not columns[:, :, 2].any()
    assert layer.k_proj.weight is not None and torch.equal(layer.k_proj.weight, ours.k_proj.weight)


def test_groups_go_with_their_queries() -> None:
    network = extract(SUPERNETS["qwen2", "groups"], (LayerSpec((1, 3), 5), LayerSpec(3, 5), GONE))
    whole = SUPERNETS["qwen2", "groups"].backbone.layers[0].self_attn
    layer = hf.as_stock(network).model.layers[0].self_attn
    assert torch.equal(layer.k_proj.weight.view(3, 4, 48)[:2], whole.k_proj.weight.view(HEADS, 4, 48)[[1, 3]])
    expected = whole.q_proj.bias.view(HEADS, QUERIES * 4)[[1, 3]]
    assert torch.equal(layer.q_proj.bias.view(3, QUERIES * 4)[:2], expected)
    assert not layer.k_proj.weight[8:].any() and not layer.q_proj.bias[24:].any()


EXACT = {
    ("llama", "groups"): (LayerSpec(2, 17), {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4}),
    ("llama", "queries"): (LayerSpec(1, 17), {"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 4}),
    ("qwen2", "groups"): (LayerSpec(3, 17), {"num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 4}),
    ("qwen3", "queries"): (LayerSpec(2, 17), {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 6}),
    ("mistral", "groups"): (LayerSpec(3, 17), {"num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 6}),
    ("gpt2", "groups"): (LayerSpec(HEADS, 17), {"n_head": HEADS, "n_inner": 17}),
}


@pytest.mark.parametrize(("case", "part", "sizes"), [(c, *v) for c, v in EXACT.items()], ids=map(str, EXACT))
def test_equal_layers_are_stored_as_they_are(
    case: tuple[str, str], part: LayerSpec, sizes: dict[str, int], tmp_path: Path
) -> None:
    network = extract(SUPERNETS[case], (part, GONE, part))
    with silence_libraries():
        hf.write_stock(network, tmp_path)
        other = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert {name: getattr(other.config, name) for name in sizes} == sizes
    assert other.config.num_hidden_layers == 2
    assert other.num_parameters() == network.num_parameters()
    assert largest_share(network, other, case[0]) < 1e-5


def test_sliding_windows_stay_with_their_layers() -> None:
    network = extract(SUPERNETS["qwen2", "groups"], (GONE, LayerSpec(2, 5), LayerSpec(2, 5)))
    assert hf.as_stock(network).config.layer_types == ["sliding_attention", "full_attention"]


def test_heads_that_a_llama_config_refuses_are_padded_or_refused(tmp_path: Path) -> None:
    """Nine heads do not divide a width of 48, as LlamaConfig wants; Mistral's and Qwen's do not ask."""
    network = extract(SUPERNETS["llama", "groups"], (LayerSpec(3, 5),) * 3)
    with pytest.raises(
        BadInput, match=r"stock config accepts \(The hidden size \(48\) .*hf-padded or compact"
    ) as caught:
        hf.write_stock(network, tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert hf.as_stock(network).config.num_attention_heads == HEADS * QUERIES
    assert largest_share(network, reloaded(network), "llama") < 1e-5


REFUSED = {
    "both heads and units": (LayerSpec(2, 0), LayerSpec(2, UNITS), GONE),
    "equally many heads": (LayerSpec(2, 7), LayerSpec(1, 7), GONE),
    "equally many units": (LayerSpec(2, 7), LayerSpec(2, 8), GONE),
}


@pytest.mark.parametrize(("rule", "keep"), REFUSED.items(), ids=REFUSED)
def test_stock_sizes_refuse_what_they_cannot_say(rule: str, keep: SubnetSpec, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=rf"hf needs {rule}.*hf-padded or compact"):
        hf.write_stock(extract(SUPERNETS["mistral", "groups"], keep), tmp_path / "out")
    with pytest.raises(BadInput, match="hf needs"):
        hf.write_stock(extract(SUPERNETS["gpt2", "groups"], (LayerSpec(2, 7),) * 3), tmp_path / "out")


def test_tied_embeddings_are_stored_once(tmp_path: Path) -> None:
    from safetensors import safe_open

    network = extract(SUPERNETS["llama", "groups"], (LayerSpec(2, 7),) * 3)
    with silence_libraries():
        hf.write_stock(network, tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as stored:
        assert "lm_head.weight" not in list(stored.keys())
    assert AutoModelForCausalLM.from_pretrained(tmp_path).config.tie_word_embeddings


def test_the_network_is_left_as_it_was() -> None:
    network = extract(SUPERNETS["gpt2, scaled by depth", "groups"], (GONE, LayerSpec(2, 7), LayerSpec(1, 3)))
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    hf.as_stock(network)
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_stock_heads_must_read_what_ours_reads(family: str, tmp_path: Path) -> None:
    pooling = {"llama": "mean", "bert": "last"}[family]
    with pytest.raises(
        BadInput, match=rf"stock heads of {family} need the pooling .*, got {pooling}; export to compact"
    ):
        hf.write_stock(extract(supernet(family, pooling), (LayerSpec(2, 7),) * 3), tmp_path, padded=True)
