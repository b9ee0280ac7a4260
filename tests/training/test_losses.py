"""The losses of every kind of task, by hand and against plain torch, also when they are computed in pieces."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from archwright.training.losses import distillation, find_distillation, task_loss

LOSSES = import_module("archwright.training.losses")
SHAPES = {  # logits, targets
    "classification": ((6, 3), (6,)),
    "choice": ((5, 4), (5,)),
    "qa": ((4, 2, 7), (4, 2)),
    "lm": ((2, 5, 7), (2, 5)),
}


def drawn(kind: str, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Random logits that want a gradient, and targets; those of language modelling end with none."""
    rng = np.random.default_rng(seed)
    shape, positions = SHAPES[kind]
    logits = torch.tensor(rng.normal(size=shape), requires_grad=True)
    targets = torch.tensor(rng.integers(shape[-1], size=positions))
    if kind == "lm":
        targets[:, -1] = -100
    return logits, targets


def test_several_labels_per_text() -> None:
    """As torch has it, and a teacher by the definition of the divergence."""
    rng = np.random.default_rng(0)
    logits, teacher = (torch.tensor(rng.normal(size=(5, 3)), requires_grad=True) for _ in range(2))
    targets = torch.tensor(rng.integers(0, 2, size=(5, 3)), dtype=torch.float32)
    expected = torch.nn.BCEWithLogitsLoss()(logits, targets.double())
    torch.testing.assert_close(task_loss(logits, targets), expected)
    one = task_loss(logits[:, :1], targets[:, :1])
    torch.testing.assert_close(one, torch.nn.BCEWithLogitsLoss()(logits[:, :1], targets[:, :1].double()))
    p, q = (1 / (1 + np.exp(-each.detach().numpy() / 2)) for each in (teacher, logits))
    divergence = (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).mean()
    found = find_distillation("multi-label")(logits, teacher, 2.0)
    assert found.item() == pytest.approx(divergence)
    assert find_distillation("multi-label")(teacher, teacher, 2.0).item() == pytest.approx(0, abs=1e-12)
    assert find_distillation("classification") is distillation


def soft(values: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    powers = np.exp(values / temperature)
    return powers / powers.sum(-1, keepdims=True)


@pytest.fixture(params=[2**22, 24, 1], ids=["at once", "pieces", "one position each"])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LOSSES, "PIECE", request.param)


@pytest.mark.parametrize("kind", SHAPES)
def test_the_task_loss_is_the_mean_over_all_targets(kind: str, piece: None) -> None:
    logits, targets = drawn(kind)
    shares = soft(logits.detach().numpy())
    places = [place for place in np.ndindex(*targets.shape) if targets[place] >= 0]
    expected = np.mean([-np.log(shares[(*place, int(targets[place]))]) for place in places])
    assert float(task_loss(logits, targets).detach()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", SHAPES)
def test_distillation_is_the_mean_over_all_positions(kind: str, piece: None) -> None:
    (student, _), (teacher, _) = drawn(kind), drawn(kind, seed=1)
    p, q = (soft(x.detach().numpy(), 10.0) for x in (teacher, student))
    expected = (p * np.log(p / q)).sum(-1).mean()
    assert float(distillation(student, teacher.detach(), 10.0).detach()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", SHAPES)
def test_gradients_are_those_of_numbers(kind: str, piece: None) -> None:
    logits, targets = drawn(kind)
    teacher = drawn(kind, seed=1)[0].detach()
    assert torch.autograd.gradcheck(lambda x: 3 * task_loss(x, targets), logits)
    assert torch.autograd.gradcheck(lambda x: task_loss(x, targets) + distillation(x, teacher, 4.0), logits)


def test_pieces_leave_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, targets = drawn("lm")
    whole = torch.autograd.grad(task_loss(logits, targets), logits)[0]
    monkeypatch.setattr(LOSSES, "PIECE", 28)  # four positions, and ten are no multiple of it
    value = task_loss(logits, targets)
    first = torch.autograd.grad(value, logits, retain_graph=True)[0]
    again = torch.autograd.grad(value, logits)[0]
    assert torch.allclose(first, whole, atol=1e-15) and torch.equal(first, again)
    with torch.no_grad():
        assert not task_loss(logits, targets).requires_grad


def test_a_target_that_is_not_there_gives_no_gradient(piece: None) -> None:
    logits, targets = drawn("lm")
    targets[1] = -100
    (gradient,) = torch.autograd.grad(task_loss(logits, targets), logits)
    assert (gradient[1] == 0).all() and (gradient[:, -1] == 0).all() and (gradient[0, :-1] != 0).all()


def test_closed_positions_of_question_answering_do_no_harm() -> None:
    logits, targets = drawn("qa")
    closed = torch.zeros_like(logits, dtype=torch.bool)
    closed[..., 5:] = True
    student = logits.masked_fill(closed, -1e4)
    loss = task_loss(student, targets % 5) + distillation(student, student.detach() + torch.rand(4, 2, 7), 10.0)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert torch.isfinite(loss) and torch.isfinite(gradient).all() and (gradient[..., 5:] == 0).all()


class Sizes(TorchDispatchMode):
    """Notes how many numbers each new tensor has."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = call(*args, **(kwargs or {}))
        given = {id(x) for x in args if isinstance(x, torch.Tensor)}
        storages = {x.untyped_storage().data_ptr() for x in args if isinstance(x, torch.Tensor)}
        for made in result if isinstance(result, tuple | list) else (result,):
            new = isinstance(made, torch.Tensor) and id(made) not in given
            if new and made.untyped_storage().data_ptr() not in storages:
                self.seen.append(made.numel())
        return result


def copies(logits: torch.Tensor, loss: Callable[[torch.Tensor], torch.Tensor]) -> int:
    """How many tensors as large as the logits a loss and its gradient make."""
    with Sizes() as sizes:
        torch.autograd.grad(loss(logits), logits)
    return sum(size >= logits.numel() for size in sizes.seen)


def test_pieces_save_copies_of_the_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, teacher = torch.randn(4, 32, 256, requires_grad=True), torch.randn(4, 32, 256)
    losses = (partial(task_loss, targets=torch.randint(256, (4, 32))), lambda x: distillation(x, teacher, 2.0))
    at_once = [copies(logits, loss) for loss in losses]
    monkeypatch.setattr(LOSSES, "PIECE", 1024)
    assert [copies(logits, loss) for loss in losses] == [1, 1] and at_once >= [2, 6]
