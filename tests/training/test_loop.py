"""The training loop: seeded, resumable bit by bit, with the schedule and the losses that it promises."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from archwright.errors import Failed
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec
from archwright.subnet.strategies import STRATEGIES, SubnetDraws
from archwright.subnet.supernet import supernet_update
from archwright.training.loop import model_tensors, remaining_batches, train_network
from archwright.training.losses import distillation, task_loss
from archwright.training.schedule import Schedule, rate
from tests.tiny import TinyBatch, tiny, tiny_batch

ALWAYS = -1.0
"""Seconds between checkpoints: one after every step."""
SCHEDULE = Schedule(steps=7, learning_rate=1e-2, warmup=0.3)
State = dict[str, torch.Tensor]


class Memory:
    """Checkpoints without a disk: what was saved is a copy that later steps cannot touch."""

    def __init__(self) -> None:
        self.state: dict[str, Any] | None = None
        self.steps: list[int] = []

    def load(self) -> dict[str, Any] | None:
        return copy.deepcopy(self.state)

    def save(self, state: dict[str, Any]) -> None:
        self.state = copy.deepcopy(state)
        self.steps.append(state["step"])


def epochs(epoch: int) -> list[TinyBatch]:
    """Three batches, other ones in every epoch."""
    return [tiny_batch("bert", seed=10 * epoch + i) for i in range(3)]


def drawn(rng: np.random.Generator, progress: float = 0.0) -> SubnetSpec:
    return tuple(LayerSpec(int(rng.integers(0, 5)), int(rng.integers(0, 11))) for _ in range(3))


def step_of(model: PrunedNetwork, strategy: str = "full") -> Any:
    draw = SubnetDraws((LayerSpec(4, 10),) * 3, (LayerSpec(0, 0),) * 3, drawn, drawn)
    return supernet_update(
        model, draw, STRATEGIES[strategy], loss=task_loss, distil=lambda x, y: distillation(x, y, 10.0)
    )


def killed_at(step: int, update: Callable[..., float]) -> Callable[..., float]:
    """The update, interrupted after its backward pass at the given call."""
    calls = iter(range(10**6))

    def dying(*args: Any) -> float:
        value = update(*args)
        if next(calls) == step:
            raise KeyboardInterrupt
        return value

    return dying


def trained(seed: int, *, strategy: str = "full", schedule: Schedule = SCHEDULE) -> State:
    model = tiny("bert").float()
    assert train_network(model, epochs, step_of(model, strategy), schedule, seed=seed) == schedule.steps
    return model.state_dict()


def equal(one: State, other: State) -> bool:
    return all(torch.equal(value, other[key]) for key, value in one.items())


def test_a_seed_repeats_bit_by_bit_and_another_differs() -> None:
    torch.manual_seed(1)
    first = trained(3)
    torch.manual_seed(2)
    assert equal(first, trained(3))
    assert not equal(first, trained(4))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_learns_something_and_repeats(strategy: str) -> None:
    assert equal(trained(0, strategy=strategy), trained(0, strategy=strategy))
    assert not equal(trained(0, strategy=strategy), tiny("bert").float().state_dict())


def test_dropout_is_on_and_comes_from_the_seed() -> None:
    assert not equal(trained(3, strategy="standard"), trained(4, strategy="standard"))


@pytest.mark.parametrize("died", range(7))
def test_a_killed_training_goes_on_bit_by_bit(died: int) -> None:
    memory, model = Memory(), tiny("bert").float()
    with pytest.raises(KeyboardInterrupt):
        train_network(
            model, epochs, killed_at(died, step_of(model)), SCHEDULE, seed=3, checkpoints=memory, every_seconds=ALWAYS
        )
    assert memory.steps == list(range(1, died + 1))
    again = tiny("bert", seed=died).float()
    if died == 0:  # nothing was saved: the same start is needed
        again = tiny("bert").float()
    done = train_network(again, epochs, step_of(again), SCHEDULE, seed=3, checkpoints=memory, every_seconds=ALWAYS)
    assert done == 7 - died
    assert equal(again.state_dict(), trained(3))


def test_a_training_killed_again_and_again_arrives_at_the_same_weights() -> None:
    memory = Memory()
    for _ in range(3):
        model = tiny("bert").float()
        with pytest.raises(KeyboardInterrupt):
            train_network(
                model, epochs, killed_at(2, step_of(model)), SCHEDULE, seed=3, checkpoints=memory, every_seconds=ALWAYS
            )
    model = tiny("bert").float()
    assert train_network(model, epochs, step_of(model), SCHEDULE, seed=3, checkpoints=memory, every_seconds=ALWAYS) == 1
    assert equal(model.state_dict(), trained(3))


@pytest.mark.parametrize("killed", [True, False], ids=["while it looks", "before it has noted the end"])
def test_a_resumed_training_is_watched_at_the_step_that_ended_it(killed: bool) -> None:
    memory, asked = Memory(), []

    def watch(step: int) -> bool:
        asked.append(step)
        if step == 4 and killed and asked.count(4) == 1:
            raise KeyboardInterrupt
        return step == 4

    for start in (0, 3):
        model = tiny("bert").float()
        with suppress(KeyboardInterrupt):
            words = {"seed": 3, "checkpoints": memory, "every_seconds": ALWAYS, "watch": watch}
            assert train_network(model, epochs, step_of(model), SCHEDULE, **words) == 4 - start
        assert memory.steps == [1, 2, 3]
    assert asked == [1, 2, 3, 4, 4]


def test_a_finished_training_is_not_done_twice() -> None:
    memory, model = Memory(), tiny("bert").float()
    train_network(model, epochs, step_of(model), SCHEDULE, seed=3, checkpoints=memory, every_seconds=ALWAYS)
    again = tiny("bert", seed=5).float()
    assert train_network(again, epochs, step_of(again), SCHEDULE, seed=3, checkpoints=memory) == 0
    assert equal(again.state_dict(), trained(3))


def test_checkpoints_are_written_by_the_clock() -> None:
    memory, model = Memory(), tiny("bert").float()
    train_network(model, epochs, step_of(model), SCHEDULE, seed=3, checkpoints=memory, every_seconds=3600)
    assert memory.steps == []


def test_training_leaves_the_global_generator_and_evaluation_mode() -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    model = tiny("bert").float().eval()
    train_network(model, epochs, step_of(model), SCHEDULE, seed=3)
    assert torch.equal(before, torch.random.get_rng_state())
    assert not any(m.training for m in model.modules())
    assert all(p.grad is None for p in model.parameters())


def test_gradients_from_before_play_no_part() -> None:
    model = tiny("bert").float()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    train_network(model, epochs, step_of(model), SCHEDULE, seed=3)
    assert equal(model.state_dict(), trained(3))


def test_the_learning_rate_rises_and_falls_linearly() -> None:
    ten = Schedule(steps=10, warmup=0.4)
    assert [rate(s, ten) for s in range(10)] == pytest.approx(
        [1 / 4, 2 / 4, 3 / 4, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]
    )
    assert [rate(s, Schedule(steps=4, warmup=0.0)) for s in range(4)] == pytest.approx([1, 1, 2 / 3, 1 / 3])
    assert [rate(s, Schedule(steps=4, warmup=1.0)) for s in range(4)] == pytest.approx([1 / 4, 2 / 4, 3 / 4, 1])
    assert rate(0, Schedule(steps=1)) == 1


class Parts(nn.Module):
    """A matrix, a bias and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(2, 2), nn.LayerNorm(2)
        self.table = nn.Embedding(3, 2)
        for parameter in self.parameters():
            nn.init.ones_(parameter)


def pull(model: nn.Module, slope: float) -> Callable[..., float]:
    """An update whose gradient is `slope` everywhere."""

    def update(*_: Any) -> float:
        (sum(p.sum() for p in model.parameters()) * slope).backward()
        return 0.0

    return update


@contextmanager
def steps_seen() -> Iterator[list[tuple[float, float]]]:
    """Learning rate and norm of the gradient at every optimizer step."""
    seen: list[tuple[float, float]] = []

    def look(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        rates = {group["lr"] for group in optimizer.param_groups}
        slopes = [p.grad.flatten() for group in optimizer.param_groups for p in group["params"]]
        seen.append((rates.pop(), float(torch.cat(slopes).norm())))
        assert not rates

    handle = register_optimizer_step_pre_hook(look)
    try:
        yield seen
    finally:
        handle.remove()


def test_every_step_uses_the_scheduled_rate_also_after_resuming() -> None:
    schedule = Schedule(steps=6, learning_rate=0.2, warmup=0.5, weight_decay=0.0)
    memory, expected = Memory(), [0.2 / 3, 0.4 / 3, 0.2, 0.2, 0.4 / 3, 0.2 / 3]
    model = Parts()
    with steps_seen() as seen, pytest.raises(KeyboardInterrupt):
        train_network(
            model,
            lambda _: [0],
            killed_at(2, pull(model, 0.01)),
            schedule,
            seed=0,
            checkpoints=memory,
            every_seconds=ALWAYS,
        )
    assert [lr for lr, _ in seen] == pytest.approx(expected[:2])
    model = Parts()
    with steps_seen() as seen:
        train_network(model, lambda _: [0], pull(model, 0.01), schedule, seed=0, checkpoints=memory)
    assert [lr for lr, _ in seen] == pytest.approx(expected[2:])
    # Under a constant gradient each step of Adam is as long as its rate.
    assert model.linear.weight[0, 0].item() == pytest.approx(1 - sum(expected), abs=1e-5)


def test_long_gradients_are_clipped_and_short_ones_are_not() -> None:
    for slope, expected in ((100.0, 0.5), (0.01, 0.01 * 16**0.5)):
        model = Parts()
        with steps_seen() as seen:
            train_network(model, lambda _: [0], pull(model, slope), Schedule(steps=1, clip=0.5), seed=0)
        assert seen[0][1] == pytest.approx(expected, rel=1e-4)


def test_only_matrices_decay() -> None:
    model = Parts()
    train_network(
        model, lambda _: [0], pull(model, 0.0), Schedule(steps=1, learning_rate=0.5, weight_decay=0.1), seed=0
    )
    for matrix in (model.linear.weight, model.table.weight):
        assert torch.allclose(matrix, torch.full_like(matrix, 1 - 0.5 * 0.1))
    for vector in (model.linear.bias, model.norm.weight, model.norm.bias):
        assert torch.equal(vector, torch.ones_like(vector))


def test_frozen_parameters_stay() -> None:
    model = Parts()
    model.table.weight.requires_grad_(False)

    def update(*_: Any) -> float:
        model.linear.weight.sum().backward()
        return 0.0

    train_network(model, lambda _: [0], update, Schedule(steps=2), seed=0)
    assert torch.equal(model.table.weight, torch.ones(3, 2))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_loss_that_is_no_number_fails_and_keeps_the_last_good_checkpoint(bad: float) -> None:
    memory, model = Memory(), Parts()
    values = iter([0.1, 0.2, bad])

    def update(*_: Any) -> float:
        model.linear.weight.sum().backward()
        return next(values)

    with pytest.raises(Failed, match="step 2") as failure:
        train_network(model, lambda _: [0], update, Schedule(steps=9), seed=0, checkpoints=memory, every_seconds=ALWAYS)
    assert "\n" not in str(failure.value)
    assert memory.steps == [1, 2]
    assert equal(memory.state["model"], model.state_dict())


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_no_number_fails_before_it_reaches_the_weights(bad: float) -> None:
    memory, model = Memory(), Parts()
    slopes = iter([1.0, bad, 1.0])

    def update(*_: Any) -> float:
        (model.linear.weight.sum() * next(slopes)).backward()
        return 0.3  # the loss of the whole network is fine; a sub-network's was not

    with pytest.raises(Failed, match="step 1") as failure:
        train_network(model, lambda _: [0], update, Schedule(steps=9), seed=0, checkpoints=memory, every_seconds=ALWAYS)
    assert "\n" not in str(failure.value)
    assert memory.steps == [1]
    assert all(torch.isfinite(p).all() for p in model.parameters())


def test_epochs_follow_one_another_and_resuming_skips_what_is_done() -> None:
    def letters(epoch: int) -> list[str]:
        return [f"{epoch}{letter}" for letter in "abc"]

    everything = list(remaining_batches(letters, 0, 7))
    assert everything == list(enumerate([["0a"], ["0b"], ["0c"], ["1a"], ["1b"], ["1c"], ["2a"]]))
    assert list(remaining_batches(letters, 4, 7)) == everything[4:]
    assert list(remaining_batches(letters, 7, 7)) == []


def test_progress_and_randomness_of_a_step_follow_its_number() -> None:
    seen = []
    model = Parts()

    def update(_: Any, rng: np.random.Generator, progress: float) -> float:
        seen.append((progress, float(rng.random())))
        return pull(model, 0.1)()

    train_network(model, lambda _: [0], update, Schedule(steps=4), seed=6)
    assert [progress for progress, _ in seen] == [0, 0.25, 0.5, 0.75]
    assert [value for _, value in seen] == [float(np.random.default_rng((6, step)).random()) for step in range(4)]


def test_dropout_of_every_step_has_its_own_seed_also_after_resuming() -> None:
    def seeds_seen(memory: Memory, dies: int) -> list[int]:
        seen: list[int] = []
        model = Parts()

        def update(*_: Any) -> float:
            seen.append(torch.initial_seed())
            if len(seen) == dies:
                raise KeyboardInterrupt
            return pull(model, 0.1)()

        with suppress(KeyboardInterrupt):
            train_network(
                model, lambda _: [0], update, Schedule(steps=6), seed=6, checkpoints=memory, every_seconds=ALWAYS
            )
        return seen

    whole, memory = seeds_seen(Memory(), 0), Memory()
    assert len(set(whole)) == 6
    assert seeds_seen(memory, 3)[:2] + seeds_seen(memory, 0) == whole


def test_distillation_is_the_divergence_from_the_softened_teacher() -> None:
    student, teacher = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]]), np.array([[2.0, 0.0, -1.0], [1.0, 1.0, 4.0]])
    p, q = (np.exp(x / 10) / np.exp(x / 10).sum(1, keepdims=True) for x in (teacher, student))
    expected = (p * np.log(p / q)).sum(1).mean()  # no factor 100
    found = distillation(torch.tensor(student), torch.tensor(teacher), 10.0)
    assert float(found) == pytest.approx(expected, abs=1e-12)
    assert float(distillation(torch.tensor(teacher), torch.tensor(teacher), 10.0)) == pytest.approx(0, abs=1e-15)
    assert float(distillation(torch.tensor(student), torch.tensor(teacher), 1.0)) > 10 * expected


def test_one_output_is_distilled_by_squared_error() -> None:
    student, teacher = torch.tensor([[1.0], [3.0]]), torch.tensor([[2.0], [0.0]])
    assert float(distillation(student, teacher, 10.0)) == pytest.approx(5.0)


def test_the_task_loss_is_cross_entropy_or_squared_error() -> None:
    logits = torch.tensor([[0.0, np.log(3.0)], [np.log(4.0), 0.0]])
    assert float(task_loss(logits, torch.tensor([1, 1]))) == pytest.approx((np.log(4 / 3) + np.log(5)) / 2)
    assert float(task_loss(torch.tensor([[1.0], [2.0]]), torch.tensor([2.0, 4.0]))) == pytest.approx(2.5)
    assert task_loss(torch.tensor([[1.0]]), torch.tensor([1.5], dtype=torch.float64)).dtype == torch.float32


class Count:
    """Something to carry: how many steps were done."""

    def __init__(self) -> None:
        self.steps = 0

    def state(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def restore(self, state: dict[str, Any]) -> None:
        self.steps = int(state["steps"])


def counted(model: PrunedNetwork, count: Count) -> Callable[..., float]:
    update = step_of(model)

    def counting(*arguments: Any) -> float:
        count.steps += 1
        return float(update(*arguments))

    return counting


def test_a_training_in_parts_is_the_training_in_one_piece() -> None:
    whole, parts, memory = tiny("bert"), tiny("bert"), Memory()
    train_network(whole, epochs, step_of(whole), SCHEDULE, seed=3)
    for stop, done in ((2, 2), (2, 0), (5, 3), (None, 2)):
        network = tiny("bert")
        assert train_network(network, epochs, step_of(network), SCHEDULE, seed=3, checkpoints=memory, stop=stop) == done
        parts = network
    assert memory.steps == [2, 5]
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), parts.parameters(), strict=True))


def test_what_an_update_remembers_goes_on_with_the_checkpoint() -> None:
    memory, first, second = Memory(), Count(), Count()
    network = tiny("bert")
    train_network(network, epochs, counted(network, first), SCHEDULE, seed=3, checkpoints=memory, stop=4, carry=first)
    network = tiny("bert")
    train_network(network, epochs, counted(network, second), SCHEDULE, seed=3, checkpoints=memory, carry=second)
    assert (first.steps, second.steps) == (4, 7)


def test_a_checkpoint_of_tied_weights_has_each_tensor_once() -> None:
    network = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6, bias=False))
    network[1].weight = network[0].weight
    assert list(model_tensors(network)) == ["0.weight"]


def test_a_training_inside_another_autocast_learns_as_outside() -> None:
    """Autocast keeps weights in bfloat16 until its outermost block ends: what is learned must not be lost on them."""

    def learn() -> State:
        model = tiny("bert", seed=1).float()
        train_network(model, epochs, step_of(model), SCHEDULE, seed=0, precision="bfloat16")
        return copy.deepcopy(model.state_dict())

    outside = learn()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = learn()
    assert equal(inside, outside)
