"""Which sub-networks a training step updates, and the gradients that it leaves."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

from archwright.search.choices import largest, sample, smallest
from archwright.spaces.subnetwork import subnet_space
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.slicing import masked_subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec
from archwright.subnet.strategies import STRATEGIES, SubnetDraws, SubnetUpdate
from archwright.subnet.supernet import FixedTeacher, plain_update, supernet_update
from archwright.training.losses import distillation, task_loss
from tests.tiny import TinyBatch, shared_tiny, tiny, tiny_batch

BIG: SubnetSpec = (LayerSpec(4, 10),) * 3
SMALL: SubnetSpec = (LayerSpec(0, 0),) * 3

KINDS = {
    "standard": (["big"], [False]),
    "random": (["random"], [False]),
    "sandwich": (["big", "small", "random", "random"], [False] * 4),
    "kd": (["big", "random", "random"], [False, True, True]),
    "full": (["big", "small", "random", "random"], [False, True, True, True]),
    "front": (["big", "small", "random", "near"], [False, True, True, True]),
}
"""Sub-networks of one step and whether each learns from the full network; random-linear aside."""


def drawn(rng: np.random.Generator, progress: float = 0.0) -> SubnetSpec:
    return tuple(LayerSpec(int(rng.integers(1, 5)), int(rng.integers(1, 10))) for _ in range(3))


def near(rng: np.random.Generator) -> SubnetSpec:
    return (*drawn(rng)[:2], LayerSpec(4, 10))


DRAW = SubnetDraws(BIG, SMALL, drawn, near)


def kind(spec: SubnetSpec) -> str:
    return {BIG: "big", SMALL: "small"}.get(spec, "near" if spec[2] == LayerSpec(4, 10) else "random")


OF_THE_PAPERS = sorted(set(STRATEGIES) - {"teacher"})
"""Those without a fixed teacher, which has its own tests in test_supernet.py."""


@pytest.mark.parametrize("name", OF_THE_PAPERS)
def test_every_strategy_starts_from_labels_and_repeats_with_its_seed(name: str) -> None:
    for progress in (0.0, 0.5, 0.99):
        first, again = (STRATEGIES[name](DRAW, np.random.default_rng(5), progress) for _ in range(2))
        assert first == again
        assert isinstance(first[0], SubnetUpdate)
        assert not first[0].distil
        assert all(update.spec == BIG for update in first[:1]) or not any(update.distil for update in first)


@pytest.mark.parametrize("name", KINDS)
def test_updates_are_those_of_the_papers(name: str) -> None:
    kinds, distil = KINDS[name]
    for seed in range(20):
        updates = STRATEGIES[name](DRAW, np.random.default_rng(seed), seed / 20)
        assert [kind(u.spec) for u in updates] == kinds
        assert [u.distil for u in updates] == distil


def test_all_strategies_are_held_to_the_papers() -> None:
    assert set(STRATEGIES) == {*KINDS, "random-linear", "teacher"}


@pytest.mark.parametrize("name", sorted(set(STRATEGIES) - {"standard"}))
def test_another_seed_draws_other_subnetworks(name: str) -> None:
    draws = [tuple(STRATEGIES[name](DRAW, np.random.default_rng(seed), 1.0)) for seed in range(10)]
    assert len(set(draws)) == 10


def test_the_two_random_ones_of_a_step_are_drawn_separately() -> None:
    steps = [STRATEGIES["kd"](DRAW, np.random.default_rng(seed), 0.0) for seed in range(10)]
    assert sum(step[1].spec != step[2].spec for step in steps) >= 9


def test_random_linear_draws_ever_more_often() -> None:
    def share(progress: float) -> float:
        steps = [STRATEGIES["random-linear"](DRAW, np.random.default_rng(seed), progress) for seed in range(1000)]
        assert all(len(step) == 1 and not step[0].distil for step in steps)
        return Counter(kind(step[0].spec) for step in steps)["random"] / 1000

    assert (share(0.0), share(1.0)) == (0.0, 1.0)
    assert [share(p) for p in (0.1, 0.5, 0.9)] == pytest.approx([0.1, 0.5, 0.9], abs=0.05)


def softened(logits: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    return distillation(logits, teacher, 10.0)


def separate_gradients(model: nn.Module, updates: list[SubnetUpdate], batch: TinyBatch) -> dict[str, torch.Tensor]:
    """The sum of gradients taken one by one from masked networks, Equation 2 written out."""
    with torch.no_grad():
        teacher = torch.softmax(model(**batch.inputs).logits / 10, -1)
    total = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    for spec, learns in updates:
        with masked_subnetwork(model, spec):
            logits = model(**batch.inputs).logits
            loss = nn.functional.cross_entropy(logits, batch.targets)
            gap = teacher * (teacher.log() - torch.log_softmax(logits / 10, -1))
            (loss + gap.sum(-1).mean() if learns else loss).backward()
        for name, parameter in model.named_parameters():
            total[name] += 0 if parameter.grad is None else parameter.grad
        model.zero_grad()
    return total


@pytest.mark.parametrize("space", ["small", "large"])
@pytest.mark.parametrize("strategy", OF_THE_PAPERS)
def test_a_step_leaves_the_sum_of_all_gradients(strategy: str, space: str) -> None:
    model, batch = tiny("bert", pooling="mean"), tiny_batch("bert", texts=5)
    chosen = subnet_space(space, read_anatomy(model.config))
    draw = SubnetDraws(
        chosen.build(largest(chosen.choices)),
        chosen.build(smallest(chosen.choices)),
        *[lambda rng, progress=0.0: chosen.build(sample(chosen.choices, rng))] * 2,
    )
    rule = STRATEGIES[strategy]
    expected = separate_gradients(model, rule(draw, np.random.default_rng(8), 0.5), batch)
    update = supernet_update(model, draw, rule, loss=task_loss, distil=softened)
    value = update(batch, np.random.default_rng(8), 0.5)
    for name, parameter in model.named_parameters():
        found = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(found, expected[name], rtol=1e-9, atol=1e-9)
    with torch.no_grad(), masked_subnetwork(model, rule(draw, np.random.default_rng(8), 0.5)[0].spec):
        assert value == pytest.approx(float(task_loss(model(**batch.inputs).logits, batch.targets)), abs=1e-12)


def test_a_plain_step_learns_from_labels_and_teacher() -> None:
    model, teacher, batch = tiny("bert"), tiny("bert", seed=9), tiny_batch("bert")
    logits = model(**batch.inputs).logits
    value = task_loss(logits, batch.targets)
    answers = teacher(**batch.inputs).logits.detach()
    (0.5 * value + 0.5 * softened(logits, answers)).backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    update = plain_update(model, loss=task_loss, teacher=FixedTeacher(lambda batch: answers, softened))
    assert update(batch, np.random.default_rng(0), 0.0) == pytest.approx(float(value.detach()), abs=1e-12)
    assert all(torch.allclose(p.grad, expected[name], atol=1e-12) for name, p in model.named_parameters())
    assert all(p.grad is None for p in teacher.parameters())
    model.zero_grad()
    plain_update(model, loss=task_loss)(batch, np.random.default_rng(0), 0.0)
    assert any(not torch.allclose(p.grad, expected[name], atol=1e-6) for name, p in model.named_parameters())


def test_an_error_in_the_loss_leaves_the_network_whole() -> None:
    def broken(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        raise FloatingPointError

    model = shared_tiny("bert", "cls")
    classes = [type(m) for m in model.modules()]
    with pytest.raises(FloatingPointError):
        supernet_update(model, DRAW, STRATEGIES["random"], loss=broken, distil=softened)(
            tiny_batch("bert"), np.random.default_rng(0), 0.0
        )
    assert [type(m) for m in model.modules()] == classes
