"""Any pruned encoder as stock classes: equal logits for every family, pooling and choice of parts."""

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from archwright.errors import BadInput
from archwright.exporting import hf, stock_layers
from archwright.logs import silence_libraries
from archwright.networks.pruned import PrunedNetwork as Network
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, SubnetSpec, count
from tests.exporting.tiny import ENCODERS, HEADS, UNITS, batches, extracted, inside, keeps, readable, supernet

READ = [(family, pooling) for family in ENCODERS for pooling in readable(family)]
"""What stock heads of an encoder can be made to read."""
FULL, GONE = LayerSpec(HEADS, UNITS), LayerSpec(0, 0)
NO_FFN, NO_ATTENTION = LayerSpec(HEADS, 0), LayerSpec(0, UNITS)
SUPERNETS = {(family, pooling): supernet(family, pooling) for family, pooling in READ}
CORNERS = {
    "no layer": (GONE,) * 3,
    "attention only": (NO_FFN,) * 3,
    "attention first and last": (NO_FFN, GONE, NO_FFN),
    "all": (FULL,) * 3,
}
FFN_FIRST = {"FFN only": (NO_ATTENTION,) * 3, "FFN first": (NO_ATTENTION, NO_FFN, NO_ATTENTION)}


def reloaded(network: Network) -> PreTrainedModel:
    with silence_libraries(), tempfile.TemporaryDirectory() as folder:
        hf.write_stock(network, Path(folder), padded=True)
        return AutoModelForSequenceClassification.from_pretrained(folder)


def largest_share(network: Network, other: PreTrainedModel, family: str) -> float:
    """Largest difference of logits in units of the largest logit or of 1."""
    with torch.no_grad():
        pairs = [(network(**batch).logits, other(**batch).logits) for batch in batches(family)]
    scale = max(1.0, *(float(ours.abs().max()) for ours, _ in pairs))
    return max(float((ours - theirs).abs().max()) for ours, theirs in pairs) / scale


def begins_with_ffn(keep: SubnetSpec) -> bool:
    left = [layer for layer in keep if count(layer.heads) or count(layer.units)]
    return bool(left) and not count(left[0].heads)


@pytest.mark.covering
@pytest.mark.parametrize(("family", "pooling"), READ)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(keep=keeps())
def test_padded_equals_the_extracted_network(family: str, pooling: str, keep: SubnetSpec) -> None:
    network = extract(SUPERNETS[family, pooling], keep)
    if begins_with_ffn(keep) and "projected" in family:
        with pytest.raises(BadInput, match=r"begin with an FFN.*compact"):
            hf.as_stock(network)
        return
    assert largest_share(network, reloaded(network), family) < 1e-5


@pytest.mark.covering
@pytest.mark.parametrize(("family", "pooling"), READ)
@pytest.mark.parametrize("keep", CORNERS.values(), ids=CORNERS)
def test_corners(family: str, pooling: str, keep: SubnetSpec) -> None:
    network = extract(SUPERNETS[family, pooling], keep)
    assert largest_share(network, reloaded(network), family) < 1e-5


@pytest.mark.covering
@pytest.mark.parametrize(("family", "pooling"), [case for case in READ if "projected" not in case[0]])
@pytest.mark.parametrize("keep", FFN_FIRST.values(), ids=FFN_FIRST)
def test_corners_that_begin_with_an_ffn(family: str, pooling: str, keep: SubnetSpec) -> None:
    network = extract(SUPERNETS[family, pooling], keep)
    assert largest_share(network, reloaded(network), family) < 1e-5


@pytest.mark.covering
@pytest.mark.parametrize(("family", "pooling"), READ)
def test_the_algebra_is_exact_in_double_precision(family: str, pooling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock_layers, "GROW", 2.0**40)  # beside which the first token vanishes in double precision too
    network = extract(SUPERNETS[family, pooling], (LayerSpec((0, 2), 0), LayerSpec(3, (5, 6)), LayerSpec(0, 9)))
    assert largest_share(network.double(), reloaded(network).double(), family) < 1e-9


@pytest.mark.parametrize("family", [family for family, pooling in READ if pooling == "mean"])
def test_mean_pooling_survives_half_precision(family: str) -> None:
    network = extract(SUPERNETS[family, "mean"], (FULL, LayerSpec(2, 20), FULL))
    half = largest_share(network, reloaded(network).half(), family)
    assert half < 0.05  # not finite values would fail too


def test_large_eps_is_exact_while_no_sublayer_is_dead() -> None:
    network = extracted("roberta", "mean", (FULL, GONE, LayerSpec(1, 3)), layer_norm_eps=1e-5)
    assert largest_share(network, reloaded(network), "roberta") < 1e-5


def test_the_network_is_left_as_it_was() -> None:
    network = extract(SUPERNETS["bert", "mean"], (NO_FFN, NO_FFN, FULL))
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    state = torch.random.get_rng_state()
    hf.as_stock(network)
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)


def test_an_attention_and_a_later_ffn_share_a_layer() -> None:
    network = extract(SUPERNETS["bert", "cls"], (NO_FFN, NO_ATTENTION, FULL))
    hf.check_expressible(network)
    assert hf.as_stock(network).config.num_hidden_layers == 2
    assert largest_share(network, reloaded(network), "bert") < 1e-5


def test_sizes_are_those_that_are_needed() -> None:
    config = hf.as_stock(extract(SUPERNETS["distilbert", "mean"], (LayerSpec(1, 9), GONE, LayerSpec(2, 5)))).config
    assert (config.n_layers, config.n_heads, config.hidden_dim) == (3, HEADS, 9)  # one layer more for the mean


REFUSED = {
    "both heads and units": (NO_FFN, FULL, FULL),
    "all 4 heads": (LayerSpec(2, UNITS), FULL, FULL),
    "equally many units": (LayerSpec(HEADS, 7), FULL, FULL),
}


@pytest.mark.parametrize(("rule", "keep"), REFUSED.items(), ids=REFUSED)
def test_stock_sizes_refuse_what_they_cannot_say(rule: str, keep: SubnetSpec, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=rf"hf needs {rule}.*hf-padded or compact") as caught:
        hf.write_stock(extract(SUPERNETS["bert", "cls"], keep), tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_the_super_network_agrees_too() -> None:
    keep = (LayerSpec((1, 3), (0, 8, 9)), GONE, LayerSpec(1, 0))
    model = SUPERNETS["electra", "mean"]
    other = reloaded(extract(model, keep))
    for inputs in batches("electra"):
        with torch.no_grad():
            assert torch.allclose(inside(model, keep)(inputs), other(**inputs).logits, atol=1e-5, rtol=0)
