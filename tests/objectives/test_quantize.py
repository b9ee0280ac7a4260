"""Packed weights: matrices by hand, the bound of the rounding, real bytes, networks that compute from them."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from archwright.errors import BadInput
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import random_inputs
from archwright.objectives.quantize import (
    PACKINGS,
    PRODUCTS,
    Bytes,
    Nibbles,
    PackedEmbedding,
    PackedLinear,
    float_product,
    integer_product,
    matrices,
    quantize_weights,
    stored_bytes,
)
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec
from tests.tiny import DECODERS, choice_batch, shared_tiny, span_batch, text_batch, tiny, tiny_batch


def packed_linear(weight: torch.Tensor, bits: int, product: str = "float") -> PackedLinear:
    linear = nn.Linear(*weight.T.shape, bias=False, dtype=weight.dtype)
    linear.weight = nn.Parameter(weight)
    return PackedLinear(linear, PACKINGS[bits](weight), PRODUCTS[product])


def dequantized(weight: torch.Tensor, bits: int) -> torch.Tensor:
    """The weights that the module really computes with: its answers to the unit vectors."""
    with torch.no_grad():
        return packed_linear(weight, bits)(torch.eye(weight.shape[1], dtype=weight.dtype)).T


def unit_of(weight: torch.Tensor, bits: int) -> torch.Tensor:
    """The distance of neighbouring values of each weight."""
    packed = PACKINGS[bits](weight)
    if bits == 8:
        return packed.scales[:, None].expand_as(weight)
    return (packed.scales[:, None] * packed.steps).repeat_interleave(64, dim=1)[:, : weight.shape[1]]


def test_bytes_by_hand() -> None:
    packed = Bytes(torch.tensor([[127.0, -64.0, 0.4], [0.0, 0.0, 0.0], [-254.0, 3.0, 100.0]]))
    assert packed.values.tolist() == [[127, -64, 0], [0, 0, 0], [-127, 2, 50]]  # 3 / 2 = 1.5 goes to the even 2
    assert packed.scales.tolist()[::2] == [1.0, 2.0]
    assert packed.integers(torch.tensor([2, 0])).tolist() == [[-127, 2, 50], [127, -64, 0]]


def test_nibbles_by_hand() -> None:
    weight = torch.zeros(1, 66)
    weight[0, :3] = torch.tensor([63.0, -18.0, 5.0])  # scale 63 / (7 * 18) = 0.5; 18 steps of it: values are 9 apart
    weight[0, 64:] = torch.tensor([7.0, -3.4])  # ceil(7 / 3.5) = 2 steps: values are 1 apart
    packed = Nibbles(weight)
    assert packed.scales.tolist() == [0.5] and packed.steps.tolist() == [[18, 2]]
    assert packed.pairs.shape == (1, 64) and packed.pairs.dtype is torch.int8
    first = [7 | 7 << 4, (-2 & 15) | (-3 << 4), 1 & 15]
    assert packed.pairs[0, :4].tolist() == [*first, 0]
    assert packed.integers()[0, [0, 1, 2, 64, 65, 66]].tolist() == [126, -36, 18, 14, -6, 0]
    assert dequantized(weight, 4)[0, [0, 1, 2, 3, 64, 65]].tolist() == [63.0, -18.0, 9.0, 0.0, 7.0, -3.0]


@given(
    rows=st.integers(1, 6), columns=st.integers(1, 150), seed=st.integers(0, 2**32 - 1), bits=st.sampled_from([8, 4])
)
def test_no_weight_moves_by_more_than_half_a_unit(rows: int, columns: int, seed: int, bits: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-6, 3, size=(rows, 1))
    weight = torch.from_numpy(rng.standard_t(3, size=(rows, columns)) * sizes)
    moved = (dequantized(weight, bits) - weight).abs()
    assert (moved <= unit_of(weight, bits) / 2 * (1 + 1e-5)).all()
    peaks = weight.abs().amax(1, keepdim=True)
    assert (unit_of(weight, bits) <= peaks / {8: 127, 4: 7}[bits] * (1 + 1e-5)).all()


@given(bits=st.sampled_from([8, 4]), texts=st.integers(1, 9), columns=st.integers(2, 200), seed=st.integers(0, 999))
def test_integer_products_are_exact(bits: int, texts: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    packed = PACKINGS[bits](torch.from_numpy(rng.normal(size=(5, columns))))
    x = torch.nn.functional.pad(torch.from_numpy(rng.normal(size=(texts, columns))), (0, packed.width - columns))
    scale = np.abs(x.numpy()).max(1, keepdims=True) / 127
    sums = np.rint(x.numpy() / scale).astype(np.int64) @ packed.integers().numpy().astype(np.int64).T
    wanted = sums * scale * packed.scales.double().numpy()
    np.testing.assert_allclose(integer_product(x, packed).numpy(), wanted, rtol=1e-12, atol=1e-300)
    tolerance = scale / 2 * (packed.integers().double().abs().sum(1) * packed.scales.double()).numpy()
    assert (np.abs(float_product(x, packed).numpy() - wanted) <= tolerance * (1 + 1e-6)).all()


def test_a_single_column_is_multiplied_too() -> None:
    weight, x = torch.tensor([[2.54], [-1.27]]), torch.tensor([[3.0], [-1.0], [0.5]])
    for bits in PACKINGS:
        torch.testing.assert_close(packed_linear(weight, bits, "int8")(x), x @ weight.T, rtol=1e-2, atol=1e-2)


def test_products_of_an_all_zero_text_are_zero() -> None:
    for bits in PACKINGS:
        linear = packed_linear(torch.randn(4, 64), bits, "int8")
        assert torch.equal(linear(torch.zeros(2, 3, 64)), torch.zeros(2, 3, 4))


@pytest.mark.parametrize("bits", PACKINGS)
def test_embeddings_give_the_rows_of_the_table(bits: int) -> None:
    table = nn.Embedding(11, 70, padding_idx=1)
    packed = PackedEmbedding(table, PACKINGS[bits](table.weight.detach()))
    ids = torch.tensor([[1, 10, 3], [0, 0, 7]])
    torch.testing.assert_close(packed(ids), dequantized(table.weight.detach(), bits)[ids])
    assert (packed.num_embeddings, packed.embedding_dim, packed.padding_idx) == (11, 70, 1)


def expected_bytes(network: PrunedNetwork, bits: int) -> int:
    """Counted by hand from the shapes of all parameters: matrices are packed, vectors stay in four bytes."""
    total = 0
    for parameter in network.parameters():
        rows, columns = (len(parameter), parameter.numel() // len(parameter)) if parameter.dim() > 1 else (0, 0)
        groups = -(-columns // 64)
        packed = {8: rows * columns + 4 * rows, 4: rows * groups * 33 + 4 * rows}[bits]
        total += packed if parameter.dim() > 1 else 4 * parameter.numel()
    return total


@pytest.mark.covering
@pytest.mark.parametrize("bits", PACKINGS)
@pytest.mark.parametrize("product", PRODUCTS)
def test_every_family_computes_from_packed_weights(any_family: PrunedNetwork, bits: int, product: str) -> None:
    any_family.eval()
    of = read_anatomy(any_family.config)
    small = extract(any_family, (LayerSpec(2, 7), LayerSpec(0, 5), *(LayerSpec(1, 0),) * (of.layers - 2)))
    packed = quantize_weights(small, bits, product=product)
    assert not [name for name, _ in matrices(packed)]
    assert stored_bytes(small) == sum(4 * p.numel() for p in small.parameters())
    assert stored_bytes(packed) == expected_bytes(small, bits)
    inputs = random_inputs(small, batch=2, length=9, rng=np.random.default_rng(0))
    with torch.no_grad():
        wanted, found = small(**inputs).logits, packed(**inputs).logits
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    assert not torch.equal(found, wanted)
    assert (found - wanted).abs().max() < {8: 0.1, 4: 1.0}[bits] * wanted.abs().max()


KINDS = [
    *((name, "lm", text_batch) for name in DECODERS),
    ("gpt2", "classification", tiny_batch),
    ("electra-narrow", "classification", tiny_batch),
    ("bert", "choice", choice_batch),
    ("roberta", "qa", span_batch),
]


@pytest.mark.parametrize(("name", "kind", "batch"), KINDS, ids=[f"{name}, {kind}" for name, kind, _ in KINDS])
def test_decoders_and_all_kinds_of_heads(name: str, kind: str, batch: Any) -> None:
    network, inputs = shared_tiny(name, kind=kind), batch(name).inputs
    of = read_anatomy(network.config)
    small = extract(network, (LayerSpec(2, 7), *(LayerSpec(1, 0),) * (of.layers - 1))).float()
    for bits in PACKINGS:
        packed = quantize_weights(small, bits)
        assert stored_bytes(packed) == expected_bytes(small, bits)
        with torch.no_grad():
            wanted, found = rounded(small, bits)(**inputs).logits, packed(**inputs).logits
            assert not torch.equal(found, small(**inputs).logits)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def rounded(network: PrunedNetwork, bits: int) -> PrunedNetwork:
    """The same network in floats, with the weights that packing leaves of its own: it must compute the same."""
    copy = deepcopy(network)
    for weight in {module.weight for _, module in matrices(copy)}:
        weight.data = dequantized(weight.detach(), bits)
    return copy


def test_a_tied_table_is_packed_once() -> None:
    network = tiny("llama-groups", kind="lm").float()
    packed = quantize_weights(network, 8)
    assert packed.lm_head.packed is packed.backbone.embed_tokens.packed
    untied = quantize_weights(tiny("llama-queries", kind="lm").float(), 8)
    assert untied.lm_head.packed is not untied.backbone.embed_tokens.packed
    written = packed.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=4, do_sample=False)
    again = packed.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=4, do_sample=False, use_cache=False)
    assert written.shape[1] > 3 and torch.equal(written, again)


def test_the_network_itself_stays_as_it_was(bert: PrunedNetwork) -> None:
    before = {name: tensor.clone() for name, tensor in bert.state_dict().items()}
    packed = quantize_weights(bert, 8)
    with torch.no_grad():
        for parameter in packed.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in bert.state_dict().items())
    assert quantize_weights(bert, 32) is bert


@pytest.mark.parametrize("bits", PACKINGS)
def test_a_state_dict_returns(bert: PrunedNetwork, bits: int) -> None:
    bert.eval()
    packed = quantize_weights(bert, bits)
    with torch.no_grad():
        for parameter in bert.parameters():
            parameter.mul_(torch.randn(()))
        other = quantize_weights(bert, bits)
        inputs = random_inputs(bert, batch=2, length=9, rng=np.random.default_rng(0))
        wanted = packed(**inputs).logits
        assert not torch.equal(other(**inputs).logits, wanted)
        other.load_state_dict(packed.state_dict())
        assert torch.equal(other(**inputs).logits, wanted)


def test_bits_and_products_that_do_not_exist(bert: PrunedNetwork) -> None:
    for bits, product in ((3, "float"), (8, "bfloat16")):
        with pytest.raises(BadInput, match=f"got {bits}, '{product}'"):
            quantize_weights(bert, bits, product=product)
