"""What a half-done training is, and how it goes on."""

from typing import Any, Protocol

import torch
from torch import nn

from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup


class Checkpoints(Protocol):
    """Where a half-done training lies; `store` provides one that survives kill -9."""

    def load(self) -> dict[str, Any] | None: ...
    def save(self, state: dict[str, Any]) -> None: ...


class Carry(Protocol):
    """What an update remembers between steps, so that a resumed training goes on with it.

    The values of the dict are JSON values, or tensors, which may differ from process to process.
    """

    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


def training_state(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    carry: Carry | None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> dict[str, Any]:
    """Everything to go on with; what is carried is that of all processes, of which every one must ask."""
    carried = group.gather(carry.state() if carry else {})
    return {
        "step": step,
        "model": model_tensors(model),
        "optimizer": optimizer.state_dict()["state"],
        "carry": {
            rank_prefix(rank) + name: value for rank, values in enumerate(carried) for name, value in values.items()
        },
    }


def rank_prefix(rank: int) -> str:
    """Before the names of what a process carries; a process alone has none."""
    return f"{rank}/" if rank else ""


def model_tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, each once however many modules share it."""
    saved = model.state_dict().keys()
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: tensor.detach() for name, tensor in named.items() if name in saved}


def load_state(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    checkpoints: Checkpoints | None,
    carry: Carry | None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> int:
    """The step to go on with, after the last checkpoint has been put into model, optimizer and carry."""
    state = checkpoints.load() if checkpoints else None
    if state is None:
        return 0
    for name, tensor in model_tensors(model).items():
        tensor.copy_(state["model"][name])
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state["optimizer"]})
    if carry:
        own = rank_prefix(group.rank)
        parts = ((key, *key.rpartition("/")) for key in state["carry"])
        carry.restore({name: state["carry"][key] for key, rank, slash, name in parts if rank + slash == own})
    return int(state["step"])
