"""A kind of task: shares between 0 and 1, such as how many of the annotators called a text toxic."""

from dataclasses import replace
from typing import Any

import torch
from transformers.modeling_outputs import SequenceClassifierOutput

from archwright.data.tasks.rows import Rows, UnsplitTask
from archwright.data.tasks.task import TaskRequest, load_labelled
from archwright.errors import BadInput
from archwright.exporting.kinds import LABELS
from archwright.networks.pruned import PrunedForSequenceClassification
from archwright.tasks import TASK_KINDS
from archwright.tasks.kind import Reference


class PrunedForShares(PrunedForSequenceClassification):
    """Its answers, batch x 1, are between 0 and 1."""

    def forward(self, *inputs: Any, labels: torch.Tensor | None = None, **more: Any) -> SequenceClassifierOutput:
        shares = super().forward(*inputs, **more).logits.sigmoid()
        loss = None if labels is None else torch.nn.functional.mse_loss(shares.squeeze(-1), labels.to(shares.dtype))
        return SequenceClassifierOutput(loss=loss, logits=shares)


def load(request: TaskRequest) -> UnsplitTask:
    """The user's files, read as measurements that must be shares."""
    task = load_labelled(replace(request, name=None, regression=True))
    for split in (task.train, task.validation, task.test):
        if isinstance(split, Rows) and not ((split.targets >= 0) & (split.targets <= 1)).all():
            raise BadInput("a share must be between 0 and 1; divide the labels by their largest possible value.")
    return replace(task, kind="share", metric=SHARE.metric)


def stock_shares(model: Any, inputs: Any) -> torch.Tensor:
    """A stock class knows no shares: with the sigmoid it gives the same."""
    return model(**inputs).logits.sigmoid()


EXPORT = replace(LABELS, stock_logits=stock_shares, notes={"hf": "Apply a sigmoid to the logit to get the share."})
SHARE = replace(
    TASK_KINDS["regression"],
    metric="pearson",
    network=Reference(f"{__name__}:PrunedForShares"),
    export=Reference(f"{__name__}:EXPORT"),
    load=Reference(f"{__name__}:load"),
)
