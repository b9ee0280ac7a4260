"""The unary operations: values by hand, guards, and the three ways to apply them agree."""

import math

import numpy as np
import pytest
import torch

from archwright.proxies.formulas.operations import BINARY, UNARY

X = [[-2.0, 0.0, 1.0], [3.0, 4.0, 0.0]]
MEAN, SPREAD = 1.0, 2.0  # (4 + 0 + 1 + 9 + 16 + 0) / 6 - 1 = 4
BY_HAND = {
    "log": [[0, 0, 0], [math.log(3), math.log(4), 0]],
    "abslog": [[0, 0, 0], [math.log(3), math.log(4), 0]],
    "abs": [[2, 0, 1], [3, 4, 0]],
    "square": [[4, 0, 1], [9, 16, 0]],
    "exp": [[math.exp(-2), 1, math.e], [math.exp(3), math.exp(4), 1]],
    "zscore": [[-1.5, -0.5, 0], [1, 1.5, -0.5]],
    "relu": [[0, 0, 1], [3, 4, 0]],
    "inverse": [[-0.5, 1e9, 1], [1 / 3, 0.25, 1e9]],
    "frobenius": math.sqrt(30),
    "norm_sum": 1,
    "l1": 10,
    "softmax": [
        [1 / (1 + math.exp(5)), 1 / (1 + math.exp(4)), 1 / (1 + math.exp(-1))],
        [1 / (1 + math.exp(-5)), 1 / (1 + math.exp(-4)), 1 / (1 + math.exp(1))],
    ],
    "sigmoid": [
        [1 / (1 + math.exp(2)), 0.5, 1 / (1 + math.exp(-1))],
        [1 / (1 + math.exp(-3)), 1 / (1 + math.exp(-4)), 0.5],
    ],
    "log_softmax": [
        [-math.log(1 + math.exp(5)), -math.log(1 + math.exp(4)), -math.log(1 + math.exp(-1))],
        [-math.log(1 + math.exp(-5)), -math.log(1 + math.exp(-4)), -math.log(1 + math.exp(1))],
    ],
    "sqrt": [[0, 0, 1], [math.sqrt(3), 2, 0]],
    "negate": [[2, 0, -1], [-3, -4, 0]],
    "minmax": [[0, 1 / 3, 0.5], [5 / 6, 1, 1 / 3]],
    "average": 1,
    "std": 2,
    "no_op": X,
}


def tensor() -> torch.Tensor:
    return torch.tensor(X, dtype=torch.float64)


@pytest.mark.parametrize("name", BY_HAND)
def test_values_by_hand(name: str) -> None:
    found = UNARY[name].apply(tensor())
    np.testing.assert_allclose(found, BY_HAND[name], rtol=1e-7)
    assert UNARY[name].scalar == (found.dim() == 0)


@pytest.mark.parametrize("name", BY_HAND)
def test_its_python_gives_the_same(name: str) -> None:
    found = eval(UNARY[name].python, {"x": tensor()})
    np.testing.assert_array_equal(found, UNARY[name].apply(tensor()))


def test_there_are_the_21_and_the_four_of_the_paper() -> None:
    assert [unary.number for unary in UNARY.values()] == [f"f{number:02d}" for number in range(1, 22)]
    assert [binary.number for binary in BINARY.values()] == ["g01", "g02", "g03", "g04"]
    assert set(UNARY) - {"prune"} == set(BY_HAND)
    tensors = {name for name in BY_HAND if not UNARY[name].scalar} - {"no_op"}
    assert {name for name, unary in UNARY.items() if unary.kernel} == tensors


def test_binary_operations() -> None:
    assert {name: binary.apply(3.0, 4.0) for name, binary in BINARY.items()} == {
        "add": 7.0, "sub": -1.0, "mul": 12.0, "hadamard": 12.0,
    }  # fmt: skip
    for binary in BINARY.values():
        assert eval(binary.python, {"x": 3.0, "y": 4.0}) == binary.apply(3.0, 4.0)
        assert (binary.apply(3.0, 4.0) == binary.apply(4.0, 3.0)) == binary.commutes


@pytest.mark.parametrize("x", [-3.0, -1.0, 0.0, 0.3, 1.0, 7.5])
@pytest.mark.parametrize("name", BY_HAND)
def test_one_number_is_a_tensor_of_one(name: str, x: float) -> None:
    assert UNARY[name].of_number(x) == pytest.approx(
        float(UNARY[name].apply(torch.tensor(x, dtype=torch.float64))), rel=1e-12
    )


@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_called_nonnegative_is(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    found = UNARY[name].apply(torch.randn(50, 7, generator=generator) * 10)
    assert bool((found >= 0).all()) or not UNARY[name].nonnegative


@pytest.mark.parametrize("value", [0.0, 1.0, -2.5, 0.1, 1e30])
def test_equal_numbers_have_no_spread(value: float) -> None:
    constant = torch.full((7, 3), value)
    for name in ("zscore", "minmax", "std"):
        assert not UNARY[name].apply(constant).any()
