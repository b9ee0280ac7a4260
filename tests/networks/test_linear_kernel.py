"""Linear layers give the same with either kernel, and whatever oneDNN's has no answer for stays with torch."""

from collections.abc import Iterator

import pytest
import torch
from torch.nn import functional

from archwright.networks import linear_kernel
from archwright.networks.linear_kernel import OneDnnLinears, fast_linears, onednn_is_faster, suits

ROWS, INPUTS, OUTPUTS = 48, 96, 80


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.skipif(not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="torch without oneDNN")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sliced", [True, False])
def test_both_kernels_give_the_same(sliced: bool, bias: bool) -> None:
    inputs, weight = draw(4, ROWS // 4, INPUTS), draw(OUTPUTS, INPUTS)
    if sliced:  # columns of larger tensors, as sub-networks have them
        inputs, weight = draw(4, ROWS // 4, 2 * INPUTS)[..., :INPUTS], draw(OUTPUTS, 2 * INPUTS)[:, :INPUTS]
    offset = draw(OUTPUTS) if bias else None
    assert suits(inputs, weight, offset)
    plain = functional.linear(inputs, weight, offset)
    with OneDnnLinears():
        fast = functional.linear(inputs, weight, offset)
        named = functional.linear(inputs, weight, bias=offset)
    assert fast.shape == plain.shape and fast.is_contiguous()
    assert torch.allclose(fast, plain, atol=1e-4)
    assert torch.equal(named, plain)


def test_what_has_no_such_kernel_stays_with_torch() -> None:
    inputs, weight = draw(ROWS, INPUTS), draw(OUTPUTS, INPUTS)
    assert not suits(inputs.double(), weight.double())
    assert not suits(inputs[:8], weight)
    assert not suits(inputs, weight[:8])
    assert not suits(inputs.to("meta"), weight.to("meta"))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not suits(inputs, weight)
    with torch.enable_grad():
        assert not suits(inputs, weight)


def test_gradients_pass_through() -> None:
    weight = draw(OUTPUTS, INPUTS).requires_grad_()
    with OneDnnLinears(), torch.enable_grad():
        functional.linear(draw(ROWS, INPUTS), weight).sum().backward()
    assert weight.grad is not None


@pytest.mark.parametrize("name, faster", [("AMD EPYC 9R14", True), ("Intel(R) Xeon(R) 6975P-C", False)])
def test_the_processor_decides(name: str, faster: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_kernel, "cpu", lambda: name)
    monkeypatch.setattr(torch.cpu, "_is_avx512_supported", lambda: True)
    onednn_is_faster.cache_clear()
    try:
        assert onednn_is_faster() == (faster and hasattr(torch.ops.mkldnn, "_linear_pointwise"))
        with fast_linears():
            assert (type(torch.overrides._get_current_function_mode()) is OneDnnLinears) == onednn_is_faster()
    finally:
        onednn_is_faster.cache_clear()
