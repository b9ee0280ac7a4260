"""bfloat16 only where it pays, sums in float32, and trainings that use what they were told."""

from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from archwright.configs.training import ScheduleOptions, TrainConfig
from archwright.networks.cells.model import CellForCausalLM
from archwright.store import RunFolder
from archwright.training.distributed import SINGLE_PROCESS
from archwright.training.loop import train_network
from archwright.training.losses import distillation, task_loss
from archwright.training.objectives import OBJECTIVES
from archwright.training.pipeline import note_precision
from archwright.training.plan import TrainingContext
from archwright.training.precision import choose_precision, mixed_precision
from archwright.training.recipes import Recipe
from archwright.training.schedule import Schedule

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("device", "able", "width", "precision"),
    [
        (CUDA, True, 384, "bfloat16"),
        (CUDA, False, 384, "float32"),
        (CPU, True, 384, "bfloat16"),
        (CPU, False, 384, "float32"),
        (CPU, True, 64, "float32"),
    ],
)
def test_bfloat16_where_the_device_is_made_for_it_and_the_network_is_wide(
    device: torch.device, able: bool, width: int, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: able)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: MappingProxyType({"avx512_bf16": able, "avx2": True}))
    assert choose_precision(device, width) == precision


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_products_are_of_the_precision_and_weights_stay_float32(precision: str) -> None:
    layer = nn.Linear(4, 2)
    kinds = set()

    def update(batch: int, rng: object, progress: float) -> torch.Tensor:
        answers = layer(torch.ones(3, 4))
        kinds.add(answers.dtype)
        loss = answers.float().square().mean()
        loss.backward()
        return loss.detach()

    train_network(layer, lambda _: [0], update, Schedule(steps=1), seed=0, precision=precision)
    assert kinds == {getattr(torch, precision)} and layer.weight.dtype is torch.float32


def test_losses_of_bfloat16_answers_are_summed_in_float32() -> None:
    """1,000 and 1,001 are the same number in bfloat16; a regression target must not be rounded to it."""
    logits = torch.tensor([[1000.0]], dtype=torch.bfloat16)
    targets = torch.tensor([1001.0])
    assert float(task_loss(logits, targets)) == 1.0
    assert float(distillation(logits, targets[:, None], 1.0)) == 1.0
    torch.manual_seed(0)
    classes = torch.randn(64, 5).bfloat16()
    labels = torch.randint(0, 5, (64,))
    with mixed_precision(CPU, "bfloat16"):
        loss, kl = task_loss(classes, labels), distillation(classes, classes.float() + 0.5, 2.0)
    assert loss.dtype is kl.dtype is torch.float32
    assert float(loss) == pytest.approx(float(task_loss(classes.double(), labels)), rel=1e-6)
    assert abs(float(kl)) < 1e-6


def context_of(folder: Path, precision: str = "auto") -> Any:
    """What the decision reads of a training."""
    folder.mkdir(exist_ok=True)
    config = TrainConfig(schedule=ScheduleOptions(precision=precision))
    return TrainingContext(config, OBJECTIVES["finetune"], Recipe(), RunFolder(folder), SINGLE_PROCESS)


@pytest.fixture
def capable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: MappingProxyType({"avx512_bf16": True}))


@pytest.mark.parametrize(("width", "precision"), [(528, "bfloat16"), (128, "float32")])
def test_a_training_decides_by_the_width_of_its_network(
    width: int, precision: str, capable: None, tmp_path: Path
) -> None:
    context = context_of(tmp_path)
    note_precision(context, plan_of(width), begun=False)
    assert context.precision == precision


def test_a_training_goes_on_with_the_precision_it_began_with(
    capable: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_precision(context_of(tmp_path), plan_of(528), begun=False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: MappingProxyType({}))  # on another processor
    note_precision(again := context_of(tmp_path), plan_of(528), begun=True)
    assert again.precision == "bfloat16"


def test_what_an_earlier_version_began_goes_on_in_float32(capable: None, tmp_path: Path) -> None:
    note_precision(context := context_of(tmp_path), plan_of(528), begun=True)
    assert context.precision == "float32"


def test_what_is_asked_for_wins_and_recurrent_networks_stay_in_float32(capable: None, tmp_path: Path) -> None:
    note_precision(asked := context_of(tmp_path / "a", "float32"), plan_of(528), begun=False)
    assert asked.precision == "float32"
    recurrent = SimpleNamespace(network=object.__new__(CellForCausalLM))
    note_precision(context := context_of(tmp_path / "b"), recurrent, begun=False)  # type: ignore[arg-type]
    assert context.precision == "float32"


def plan_of(width: int) -> Any:
    return SimpleNamespace(network=SimpleNamespace(config=SimpleNamespace(hidden_size=width)))
