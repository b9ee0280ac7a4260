"""Causal language modelling: which token comes next? A recurrent network may read on where the last batch ended."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.loop import Update
from archwright.training.losses import NO_TARGET, targets_in, task_loss

State = tuple[tuple[torch.Tensor, ...], ...]
"""Of every layer its states, rows x units."""


@runtime_checkable
class Surprised(Protocol):
    """A network that works out the loss of the right tokens without the logits of all others."""

    def surprise(self, inputs: dict[str, torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """Negative log-likelihood of all targets that are not -100, summed."""


class Reading:
    """The states of a recurrent network behind the last batch, carried to the next (truncated back-propagation).

    A batch goes on where the one before ended if each of its `rows` is the next one of the encoded text; else the
    network begins with empty states, as at the start of an epoch.
    """

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.states: State | None = None

    def before(self, batch: Any) -> State | None:
        """The states to begin this batch with."""
        follows = [row + 1 for row in self.rows] == rows_of(batch) and bool(self.rows)
        return self.states if follows else None

    def after(self, batch: Any, states: State | None) -> None:
        self.rows, self.states = rows_of(batch), states

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        layers = enumerate(self.states or ())
        named = {f"{place}.{part}": value for place, parts in layers for part, value in enumerate(parts)}
        return {"rows": self.rows, **named}

    def restore(self, state: dict[str, Any]) -> None:
        self.rows = list(state["rows"])
        places = sorted(tuple(map(int, name.split("."))) for name in state if name != "rows")
        depth = 1 + max((place for place, _ in places), default=-1)
        layers = (tuple(state[f"{at}.{part}"] for at, part in places if at == place) for place in range(depth))
        self.states = tuple(layers) or None


def rows_of(batch: Any) -> list[int]:
    return [int(row) for row in getattr(batch, "rows", ())]


def causal_update(network: Any, *, reading: Reading | None = None, group: ProcessGroup = SINGLE_PROCESS) -> Update:
    """A step of guessing next tokens, which are a batch's targets, -100 where nothing follows.

    With `reading`, which is also the `carry` of the training, a recurrent network goes on with its states.
    """

    def update(batch: Any, rng: np.random.Generator, share: float) -> torch.Tensor:
        moved = batch.to(network.device)
        loss = read(moved, network, group) if reading is None else read_on(moved, network, reading, group)
        loss.backward()
        return loss.detach()

    return update


def read(batch: Any, network: Any, group: ProcessGroup) -> torch.Tensor:
    if not isinstance(network, Surprised):
        return task_loss(network(**batch.inputs).logits, batch.targets, group)
    count = group.count((batch.targets != NO_TARGET).sum(), targets_in)
    return network.surprise(batch.inputs, batch.targets) / count


def read_on(batch: Any, network: Any, reading: Reading, group: ProcessGroup) -> torch.Tensor:
    before = reading.before(batch)
    states = None if before is None else tuple(tuple(each.to(network.device) for each in layer) for layer in before)
    answer = network(**batch.inputs, state=states)
    reading.after(batch, answer.state)
    return task_loss(answer.logits, batch.targets, group)
