"""A layer that is run at every place (ALBERT): the same goes everywhere, its weights count once, it may run less."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from archwright.compression.pipeline import fit_space, resolve_space
from archwright.configs.compress import CompressConfig
from archwright.configs.options import make_config
from archwright.errors import BadInput
from archwright.exporting import hf
from archwright.exporting.checkpoint import export
from archwright.networks.load import load_supernet
from archwright.search.choices import Bits
from archwright.spaces.subnetwork import SPACES, subnet_space
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.importance import mask_scores, order_by_importance, reorder
from archwright.subnet.slicing import masked_subnetwork, subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec, flops, parameters, positions
from tests.exporting.tiny import inside, tokenizer
from tests.tiny import BATCHES, LABELS, SHARED_LAYER, saved_classifier, shared_tiny, tiny, tiny_batch

GONE = LayerSpec(0, 0)
SPECS: dict[str, SubnetSpec] = {
    "everything": (LayerSpec(4, 10),) * 3,
    "prefixes": (LayerSpec(2, 3),) * 3,
    "positions, twice": (LayerSpec((1, 3), (0, 2, 9)),) * 2 + (GONE,),
    "the last time": (GONE, GONE, LayerSpec(1, 4)),
    "no attention": (LayerSpec(0, (2, 3)),) * 3,
    "no ffn": (LayerSpec((0, 2), 0),) * 2 + (GONE,),
    "nothing": (GONE,) * 3,
}


def linear(state: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def norm(state: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    return scaled * state[f"{name}.weight"] + state[f"{name}.bias"]


def answer_by_hand(state: dict[str, Tensor], spec: SubnetSpec, inputs: dict[str, Tensor]) -> Tensor:
    """What the classifier must compute, from its tensors alone: neither transformers nor our code."""
    table, root = "backbone.embeddings", "backbone.encoder.layers.0"
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    x = state[f"{table}.word_embeddings.weight"][ids] + state[f"{table}.position_embeddings.weight"][: ids.shape[1]]
    x = norm(state, f"{table}.LayerNorm", x + state[f"{table}.token_type_embeddings.weight"][inputs["token_type_ids"]])
    x = linear(state, "backbone.encoder.embedding_hidden_mapping_in", x)  # texts x tokens x 16
    for heads, units in ((positions(part.heads), positions(part.units)) for part in spec):
        if heads:
            q, k, v = (linear(state, f"{root}.attention.{name}", x) for name in ("query", "key", "value"))
            mixed = torch.zeros_like(x)
            for head in heads:
                own = slice(4 * head, 4 * head + 4)
                scores = (q[..., own] @ k[..., own].mT / 2).masked_fill(mask[:, None] == 0, -math.inf)
                mixed = mixed + scores.softmax(-1) @ v[..., own] @ state[f"{root}.attention.dense.weight"][:, own].T
            x = norm(state, f"{root}.attention.LayerNorm", x + mixed + state[f"{root}.attention.dense.bias"])
        if units:
            up = linear(state, f"{root}.ffn", x)[..., list(units)]
            active = 0.5 * up * (1 + torch.tanh(math.sqrt(2 / math.pi) * (up + 0.044715 * up**3)))
            down = active @ state[f"{root}.ffn_output.weight"][:, list(units)].T + state[f"{root}.ffn_output.bias"]
            x = norm(state, f"{root}.full_layer_layer_norm", x + down)
    return linear(state, "head.out", torch.tanh(linear(state, "head.dense", x[:, 0])))


def pass_back(logits: Tensor) -> Tensor:
    """The logits, after a sum of them in which each counts differently was passed back."""
    (logits * torch.arange(1.0, 1 + logits.numel()).view_as(logits)).sum().backward()
    return logits.detach()


def take_gradients(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Zeros where there are none; afterwards there are none."""
    gradients = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in tensors.items()}
    for tensor in tensors.values():
        tensor.grad = None
    return gradients


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_every_way_to_run_a_subnetwork_agrees_with_the_hand_written_one(spec: SubnetSpec) -> None:
    model, inputs = shared_tiny("albert"), tiny_batch("albert").inputs
    state = {name: tensor.detach().clone().requires_grad_() for name, tensor in model.named_parameters()}
    expected = pass_back(answer_by_hand(state, spec, inputs))
    slopes, weights = take_gradients(state), dict(model.named_parameters())
    with masked_subnetwork(model, spec):
        masked = pass_back(model(**inputs).logits)
    masked_slopes = take_gradients(weights)
    with subnetwork(model, spec):
        sliced = pass_back(model(**inputs).logits)
    sliced_slopes = take_gradients(weights)
    with torch.no_grad(), subnetwork(model, spec):
        frozen = model(**inputs).logits
    small = extract(model, spec)
    for logits in (masked, sliced, frozen, small(**inputs).logits.detach()):
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-9)
    for found in (masked_slopes, sliced_slopes):
        torch.testing.assert_close(found, slopes, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_parameters_count_once_and_operations_every_time(spec: SubnetSpec) -> None:
    model = shared_tiny("albert")
    anatomy, small = read_anatomy(model.config), extract(model, spec)
    assert sum(p.numel() for p in small.parameters()) == parameters(anatomy, spec)
    times = sum(part != GONE for part in spec)
    none, full = (flops(anatomy, each, length=8) for each in ((GONE,) * 3, (spec[-1] if times else GONE,) * 3))
    if spec[-1] != GONE or not times:
        assert (flops(anatomy, spec, length=8) - none) * 3 == (full - none) * times


def test_a_shared_layer_cannot_keep_different_things() -> None:
    model = shared_tiny("albert")
    uneven = (LayerSpec(2, 3), LayerSpec(2, 3), LayerSpec(3, 3))
    with pytest.raises(ValueError, match="keeps the same wherever it is run"), subnetwork(model, uneven):
        pass
    with subnetwork(model, SPECS["prefixes"]):  # the failure left nothing behind
        pass


def test_importance_is_that_of_one_mask_over_all_times() -> None:
    """Of a mask that multiplies a head everywhere: the gradient by differences, squared."""
    model, batch = tiny("albert"), tiny_batch("albert", texts=1)
    loss = nn.functional.cross_entropy
    heads, units = mask_scores(model, [batch], loss, torch.square)
    assert all(torch.equal(row, heads[0]) for row in heads) and all(torch.equal(row, units[0]) for row in units)
    layer, step = model.placed_layers()[0].layer, 1e-5
    for linear_name, column, score in (
        ("ffn_output", [7], units[0][7]),
        ("attention.dense", [4, 5, 6, 7], heads[0][1]),
    ):
        weight, values = layer.get_submodule(linear_name).weight.data, []
        whole = weight[:, column].clone()
        for factor in (1 + step, 1 - step):
            weight[:, column] = whole * factor
            values.append(loss(model(**batch.inputs).logits, batch.targets).item())
        weight[:, column] = whole
        assert ((values[0] - values[1]) / (2 * step)) ** 2 == pytest.approx(float(score), rel=1e-4)


def test_the_order_changes_nothing_but_who_is_first() -> None:
    model, batch = tiny("albert"), tiny_batch("albert")
    before = model(**batch.inputs).logits
    order = order_by_importance(model, [batch], nn.functional.cross_entropy, torch.square)
    assert order.layers == (0, 1, 2) and order.heads[0] != (0, 1, 2, 3)
    reorder(model, order)
    torch.testing.assert_close(model(**batch.inputs).logits, before, rtol=0, atol=1e-9)
    assert torch.stack(mask_scores(model, [batch], nn.functional.cross_entropy, torch.square)[1]).diff().max() <= 1e-12


@pytest.mark.parametrize("kind", [kind for kind in BATCHES if kind != "lm"])
def test_every_kind_of_task(kind: str) -> None:
    model, inputs = shared_tiny("albert", kind=kind), BATCHES[kind]("albert").inputs
    with torch.no_grad(), subnetwork(model, SPECS["positions, twice"]):
        expected = model(**inputs).logits
    small = extract(model, SPECS["positions, twice"])
    torch.testing.assert_close(small(**inputs).logits, expected, rtol=0, atol=1e-9)


def test_a_checkpoint_answers_as_transformers_has_it(tmp_path: Path) -> None:
    stock, inputs = saved_classifier(tmp_path, "albert"), tiny_batch("albert").inputs
    ours = load_supernet(str(tmp_path), labels=LABELS)
    torch.testing.assert_close(ours(**inputs).logits, stock(**inputs).logits, rtol=0, atol=1e-5)
    assert ours.config.depth == 3 and sum(p.numel() for p in ours.parameters()) == stock.num_parameters()


FORMATS = {
    "compact": "positions, twice",
    "hf-padded": "positions, twice",
    "hf": "all heads",
    "onnx": "positions, twice",
}


@pytest.mark.parametrize("to", [*list(FORMATS)[:3], pytest.param("onnx", marks=pytest.mark.slow)])
def test_exports_prove_themselves(to: str, tmp_path: Path) -> None:
    model = tiny("albert").float()
    spec = {**SPECS, "all heads": (LayerSpec(4, 6),) * 2 + (GONE,)}[FORMATS[to]]
    inputs = [tiny_batch("albert", texts=texts, length=length).inputs for texts, length in ((1, 3), (3, 7), (2, 20))]
    parity = export(
        *(extract(model, spec), tokenizer("bert"), tmp_path / "out"),
        **{"to": to, "reference": inside(model, spec), "batches": inputs},
    )
    assert parity.family == "albert" and parity.difference.share <= parity.limit


@pytest.mark.parametrize("odd", ["no attention", "no ffn", "nothing"])
def test_stock_classes_always_run_both_sublayers(odd: str) -> None:
    with pytest.raises(BadInput, match=r"always run heads and units of the shared layer, got .*; export to compact"):
        hf.as_stock(extract(shared_tiny("albert"), SPECS[odd]))


def fitted(tmp_path: Path, **options: Any) -> CompressConfig:
    """The options of a run on this family, with a space that it can be searched in."""
    SHARED_LAYER["albert"].save_pretrained(tmp_path)
    return fit_space(resolve_space(make_config(CompressConfig, options)), SimpleNamespace(source=str(tmp_path)))


def test_the_usual_space_becomes_one_in_which_all_layers_are_alike(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert fitted(tmp_path).supernet.space == "small"
    assert "albert runs one layer at every place, from which the same goes everywhere: --space small" in caplog.text
    caplog.clear()
    for options in ({"method": "standard"}, {"method": "layer-dropping"}, {"for_": "hf"}, {"space": "layer"}):
        assert SPACES[str(fitted(tmp_path, **options).supernet.space)].alike
    assert not caplog.text
    with pytest.raises(BadInput, match="--space must be small or stock or layer, got medium"):
        fitted(tmp_path, space="medium")
    for method in ("magnitude", "retraining-free"):
        with pytest.raises(BadInput, match=f"so --method must be weight-sharing or standard .*, got {method}"):
            fitted(tmp_path, method=method)


def test_only_the_number_of_times_is_a_network_of_its_own() -> None:
    space = subnet_space("layer", read_anatomy(shared_tiny("albert").config))
    first, second, third = ({"layers": Bits(3).pack(np.array(on))} for on in ([1, 1, 0], [0, 1, 1], [0, 1, 0]))
    assert space.canonical(first) == space.canonical(second) != space.canonical(third)
