"""Processes that share the rows of a batch: together they have all of them, and one without rows counts nothing."""

import numpy as np
import pytest
import torch

from archwright.data.batching import Batch
from archwright.training.distributed import ProcessGroup
from archwright.training.loop import tokens_of
from archwright.training.losses import task_loss


def batch_of_rows(rows: int) -> Batch:
    ids = torch.arange(rows * 3).reshape(rows, 3)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return Batch(inputs, torch.arange(rows) % 2, np.arange(rows), asked=ids > 1)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_all_rows_once(rows: int) -> None:
    batch = batch_of_rows(rows)
    parts = [ProcessGroup(3, rank).take_rows(batch) for rank in range(3)]
    real = [part for part in parts if not part.stand_in]
    assert len(real) == min(rows, 3)
    assert sorted(row for part in real for row in part.rows) == list(range(rows))
    assert sum(map(tokens_of, parts)) == tokens_of(batch)
    for part in parts:
        assert len(part.rows) >= 1 and torch.equal(part.inputs["input_ids"][:, 0], torch.as_tensor(part.rows) * 3)
        assert len(part.targets) == len(part.asked) == len(part.rows)
    assert ProcessGroup().take_rows(batch) is batch


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_losses_of_parts_have_the_mean_of_the_whole(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, logits = batch_of_rows(rows), torch.randn(rows, 2, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(ProcessGroup, "sum", lambda self, tensor: torch.tensor(float(rows)))  # of all processes
    losses = []
    for rank in range(3):
        group = ProcessGroup(3, rank)
        part = group.take_rows(batch)
        with group.step([part]):
            losses.append(float(task_loss(logits[torch.as_tensor(part.rows)], part.targets, group)))
        assert losses[-1] > 0 or part.stand_in
    assert sum(losses) / 3 == pytest.approx(float(task_loss(logits, batch.targets)), rel=1e-6)
