"""Dropout of NLU networks: the shares, the scale, the generator and the gradient of torch's."""

import pytest
import torch

from archwright.networks.nlu.dropout import LOWEST, Dropout, draw_uniform


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_drops_the_share_and_keeps_the_mean(p: float) -> None:
    torch.manual_seed(0)
    values = torch.ones(1000, 1001)
    dropped = Dropout(p)(values)
    assert float((dropped == 0).float().mean()) == pytest.approx(p, abs=0.003)
    assert float(dropped.mean()) == pytest.approx(1.0, abs=0.01)
    assert len(dropped.unique()) == 2


def test_elements_of_one_draw_are_independent_and_all_numbers_are_drawn() -> None:
    torch.manual_seed(0)
    draws = draw_uniform(torch.Size([1 << 20]))
    assert draws.min() == LOWEST and draws.max() == -LOWEST - 1
    parts = (draws.view(-1, 4).double() / -LOWEST).T
    assert torch.corrcoef(parts).fill_diagonal_(0).abs().max() < 0.01
    assert abs(float(draws.double().mean())) < 100


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 3, 7), (0, 4)])
def test_any_shape_and_precision(shape: tuple[int, ...]) -> None:
    layer = Dropout(0.25)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        dropped = layer(torch.ones(shape, dtype=dtype))
        assert dropped.shape == shape and dropped.dtype is dtype


def test_follows_torchs_generator_and_gives_the_gradient_of_what_it_kept() -> None:
    values = torch.randn(64, 33, requires_grad=True)
    layer = Dropout(0.3)
    torch.manual_seed(1)
    first = layer(values)
    torch.manual_seed(1)
    assert torch.equal(first, layer(values))
    assert not torch.equal(first, layer(values))
    first.sum().backward()
    assert torch.equal(values.grad, (first != 0) * (2**16 / (2**16 - round(0.3 * 2**16))))


def test_nothing_is_dropped_in_evaluation_and_everything_at_one() -> None:
    values = torch.randn(5, 6)
    assert Dropout(0.4).eval()(values) is values or torch.equal(Dropout(0.4).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)
    assert not Dropout(1.0)(values).any()
