"""AdamW in chunks: the same as torch's where nothing is rounded, right on average where something is."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from archwright.store.checkpoints import FileCheckpoints
from archwright.training import chunked_adamw
from archwright.training.chunked_adamw import BLOCK, ChunkedAdamW, round_randomly
from archwright.training.loop import train_network
from archwright.training.optimizer import build_optimizer
from archwright.training.schedule import Schedule

SETTINGS: dict[str, Any] = {"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-8}
WIDTH = 40


def regression(seed: int = 0) -> tuple[nn.Linear, torch.Tensor, torch.Tensor]:
    draws = torch.Generator().manual_seed(seed)
    inputs, truth = (torch.randn(*shape, generator=draws) for shape in ((256, WIDTH), (WIDTH, WIDTH)))
    layer = nn.Linear(WIDTH, WIDTH)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(WIDTH, WIDTH, generator=draws) / 10)
        layer.bias.zero_()
    return layer, inputs, inputs @ truth


def descend(optimizer: torch.optim.Optimizer, layer: nn.Linear, inputs: Any, targets: Any, steps: int) -> float:
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (layer(inputs.to(layer.weight.dtype)).float() - targets).square().mean()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


def groups(layer: nn.Module) -> list[dict[str, Any]]:
    return [{"params": list(layer.parameters()), "weight_decay": 0.01}]


def test_unpacked_float32_is_torch_s_adamw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(chunked_adamw.CHUNK, "cpu", 2 * BLOCK)  # several chunks, the last one not full
    ours, inputs, targets = regression()
    theirs, *_ = regression()
    descend(ChunkedAdamW(groups(ours), **SETTINGS, packed=False), ours, inputs, targets, 30)
    descend(torch.optim.AdamW(groups(theirs), **SETTINGS), theirs, inputs, targets, 30)
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-5, atol=1e-6)


def test_eight_bits_learn_as_well_in_a_quarter_of_the_memory() -> None:
    ours, inputs, targets = regression()
    theirs, *_ = regression()
    packed = ChunkedAdamW(groups(ours), **SETTINGS, packed=True)
    start = float((ours(inputs) - targets).square().mean().detach())
    loss = descend(packed, ours, inputs, targets, 300)
    wanted = descend(torch.optim.AdamW(groups(theirs), **SETTINGS), theirs, inputs, targets, 300)
    assert wanted < 0.2 * start  # there was something to learn
    assert loss < 1.1 * wanted
    state = packed.state[ours.weight]
    assert {name: state[name].dtype for name in ("exp_avg", "exp_avg_sq")} == {
        "exp_avg": torch.int8,
        "exp_avg_sq": torch.uint8,
    }
    assert sum(value.nbytes for value in state.values()) < 2.1 * ours.weight.numel()


def test_moments_survive_their_packing() -> None:
    """To a few percent over three orders of magnitude in a block, and what is not zero does not become zero."""
    values = torch.logspace(-3, 0, BLOCK) * torch.tensor([1.0, -1.0]).repeat(BLOCK // 2)
    layer = nn.Parameter(torch.zeros(BLOCK))
    optimizer = ChunkedAdamW([{"params": [layer]}], **SETTINGS, packed=True)
    layer.grad = values.clone()
    optimizer.step()
    mean, square = optimizer._read(optimizer.state[layer], slice(0, BLOCK), slice(0, 1))
    torch.testing.assert_close(mean, 0.1 * values, rtol=0.6, atol=1e-4)
    assert float(((mean - 0.1 * values) / (0.1 * values)).abs().mean()) < 0.15
    assert bool((square > 0).all()) and float((square / (1e-3 * values.square()) - 1).abs().median()) < 0.1
    layer.grad = torch.tensor([1.0] + [1e-9] * (BLOCK - 1))
    optimizer.step()
    assert bool(layer.isfinite().all()) and float(layer.detach().abs().max()) < 0.1


def test_rounding_to_bfloat16_is_right_on_average() -> None:
    noise = torch.rand(40_000, generator=torch.Generator().manual_seed(0))
    value = 1 + 2.0**-9  # between 1 and the next bfloat16, 1 + 2**-7
    rounded = round_randomly(torch.full((40_000,), value), torch.bfloat16, noise)
    assert set(rounded.tolist()) == {1.0, 1 + 2.0**-7}
    assert float(rounded.float().mean()) == pytest.approx(value, abs=1e-4)
    exact = torch.tensor([1.5, -2.0, 0.0])
    assert torch.equal(round_randomly(exact, torch.bfloat16, noise[:3]).float(), exact)


@pytest.mark.parametrize("packed", [False, True])
def test_small_updates_of_bfloat16_weights_are_not_lost(packed: bool) -> None:
    """Each is a twentieth of half a unit in the last place: rounding to nearest would never leave 1."""
    weights = nn.Parameter(torch.ones(2000, dtype=torch.bfloat16))
    optimizer = ChunkedAdamW([{"params": [weights]}], **{**SETTINGS, "lr": 1e-4}, packed=packed)
    for _ in range(200):
        weights.grad = torch.ones_like(weights)
        optimizer.step()
    assert float(weights.detach().float().mean()) == pytest.approx(0.98, abs=2e-3)


def test_which_optimizer_it_is() -> None:
    layer = nn.Linear(3, 2)
    assert type(build_optimizer(layer, Schedule(steps=1))) is torch.optim.AdamW
    packed = build_optimizer(layer, Schedule(steps=1), "adamw-8bit")
    assert isinstance(packed, ChunkedAdamW) and packed.packed
    low = build_optimizer(layer.bfloat16(), Schedule(steps=1))
    assert isinstance(low, ChunkedAdamW) and not low.packed


@pytest.mark.parametrize(("optimizer", "dtype"), [("adamw-8bit", torch.float32), ("adamw", torch.bfloat16)])
def test_a_training_goes_on_bit_by_bit(tmp_path: Path, optimizer: str, dtype: torch.dtype) -> None:
    def train(place: Path, stops: tuple[int, ...]) -> torch.Tensor:
        checkpoints = FileCheckpoints(place)
        _, inputs, targets = regression()
        for stop in stops:
            layer = regression()[0].to(dtype)

            def update(batch: int, rng: Any, progress: float, layer: nn.Linear = layer) -> torch.Tensor:
                rows = slice(16 * batch, 16 * batch + 16)
                loss = (layer(inputs[rows].to(dtype)).float() - targets[rows]).square().mean()
                loss.backward()
                return loss.detach()

            schedule = Schedule(steps=8, learning_rate=1e-2)
            train_network(
                *(layer, lambda _: list(range(8)), update, schedule),
                seed=3,
                checkpoints=checkpoints,
                stop=stop,
                optimizer=optimizer,
                precision="float32",
            )
        return layer.weight.detach()

    assert torch.equal(train(tmp_path / "a.safetensors", (8,)), train(tmp_path / "b.safetensors", (3, 5, 8)))
