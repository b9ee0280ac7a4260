"""Causal language modelling: which token comes next? A recurrent network may read on where the last batch ended."""

from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from archwright.data.batching import Batch
from archwright.data.encoding import NO_TARGET
from archwright.data.epochs import Epoch, shuffled_epochs, stream_epochs
from archwright.networks.cells.model import CellForCausalLM
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.loop import Update
from archwright.training.losses import targets_in, task_loss
from archwright.training.objectives.pretraining import (
    VALIDATION_BATCH,
    Losses,
    evaluate_losses,
    load_corpus,
    pretraining_plan,
)
from archwright.training.plan import TrainingContext, TrainingObjective, TrainingPlan

State = tuple[tuple[torch.Tensor, ...], ...]
"""Of every layer its states, rows x units."""


def plan_causal(context: TrainingContext) -> TrainingPlan:
    """Recurrent cells read the text in order and keep their states from row to row."""
    corpus, batch_size = load_corpus(context), context.recipe.batch_size
    network, rows, few = corpus.network, len(corpus.validation), VALIDATION_BATCH // 4
    recurrent = isinstance(network, CellForCausalLM)
    states = RecurrentStates() if recurrent else None
    validation = Epoch(
        corpus.validation, [np.arange(start, min(start + few, rows)) for start in range(0, rows, few)], None, ()
    )

    def losses(batch: Batch, rng: np.random.Generator) -> Losses:
        return {"loss": (float(causal_loss(network, batch, SINGLE_PROCESS)), targets_in(batch))}

    return pretraining_plan(
        context,
        corpus,
        batches=stream_epochs(corpus.train, batch_size, context.group.processes)
        if recurrent
        else shuffled_epochs(corpus.train, batch_size, (context.seed, 0)),
        update=causal_update(network, states=states, group=context.group),
        carry=states,
        evaluate=partial(evaluate_losses, network, validation, losses, tokens=True),
    )


OBJECTIVE = TrainingObjective("lm", "pretraining", plan_causal, head="lm", causal=True)


@runtime_checkable
class FusedLoss(Protocol):
    """A network that works out the loss of the right tokens without the logits of all others."""

    def surprise(self, inputs: dict[str, torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """Negative log-likelihood of all targets that are not -100, summed."""


class RecurrentStates:
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
        named = {f"{layer}.{part}": value for layer, parts in layers for part, value in enumerate(parts)}
        return {"rows": self.rows, **named}

    def restore(self, state: dict[str, Any]) -> None:
        self.rows = list(state["rows"])
        keys = sorted(tuple(map(int, name.split("."))) for name in state if name != "rows")
        depth = 1 + max((layer for layer, _ in keys), default=-1)
        layers = (tuple(state[f"{at}.{part}"] for at, part in keys if at == layer) for layer in range(depth))
        self.states = tuple(layers) or None


def rows_of(batch: Any) -> list[int]:
    return [int(row) for row in getattr(batch, "rows", ())]


def causal_update(
    network: Any, *, states: RecurrentStates | None = None, group: ProcessGroup = SINGLE_PROCESS
) -> Update:
    """A step of guessing next tokens, which are a batch's targets, -100 where nothing follows.

    With `states`, which are also the `carry` of the training, a recurrent network goes on where it ended.
    """

    def update(batch: Any, rng: np.random.Generator, share: float) -> torch.Tensor:
        batch = batch.to(network.device)
        loss = causal_loss(network, batch, group) if states is None else carried_loss(network, batch, states, group)
        loss.backward()
        return loss.detach()

    return update


def causal_loss(network: Any, batch: Any, group: ProcessGroup) -> torch.Tensor:
    if not isinstance(network, FusedLoss):
        return task_loss(network(**batch.inputs).logits, batch.targets, group)
    count = group.count((batch.targets != NO_TARGET).sum(), targets_in)
    return network.surprise(batch.inputs, batch.targets) / count


def carried_loss(network: Any, batch: Any, states: RecurrentStates, group: ProcessGroup) -> torch.Tensor:
    """The loss of a batch that goes on with the states of the one before, which are then those behind this one."""
    before = states.before(batch)
    state = None if before is None else tuple(tuple(each.to(network.device) for each in layer) for layer in before)
    output = network(**batch.inputs, state=state)
    states.after(batch, output.state)
    return task_loss(output.logits, batch.targets, group)
