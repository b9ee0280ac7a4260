"""Masked language modelling (Devlin et al. 2019), without BERT's second task: which token stood here?"""

from functools import partial
from typing import Any

import numpy as np
import torch

from archwright.data.batching import Batch
from archwright.data.encoding import NO_TARGET
from archwright.data.text.masking import BERT
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.loop import Update
from archwright.training.losses import targets_in, task_loss
from archwright.training.objectives.heads import masked_token_logits
from archwright.training.objectives.pretraining import (
    Losses,
    evaluate_losses,
    load_corpus,
    masked_epochs,
    pretraining_plan,
)
from archwright.training.plan import TrainingContext, TrainingObjective, TrainingPlan


def plan_mlm(context: TrainingContext) -> TrainingPlan:
    corpus = load_corpus(context)
    network = corpus.network
    batches, validation = masked_epochs(context, corpus, BERT)

    def losses(batch: Batch, rng: np.random.Generator) -> Losses:
        return {"loss": (float(mlm_loss(network, batch, SINGLE_PROCESS)), targets_in(batch))}

    return pretraining_plan(
        context,
        corpus,
        batches=batches,
        update=mlm_update(network, group=context.group),
        evaluate=partial(evaluate_losses, network, validation, losses, tokens=True),
    )


OBJECTIVE = TrainingObjective("mlm", "pretraining", plan_mlm, head="mlm")


def mlm_update(network: Any, *, group: ProcessGroup = SINGLE_PROCESS) -> Update:
    """A step of guessing the tokens that were hidden.

    Targets of a batch are the tokens that stood where a guess is wanted, -100 elsewhere; its inputs are masked already.
    """

    def update(batch: Any, rng: np.random.Generator, share: float) -> torch.Tensor:
        loss = mlm_loss(network, batch.to(network.device), group)
        loss.backward()
        return loss.detach()

    return update


def mlm_loss(network: Any, batch: Any, group: ProcessGroup) -> torch.Tensor:
    hidden = batch.targets != NO_TARGET
    return task_loss(masked_token_logits(network, batch.inputs, hidden), batch.targets[hidden], group)
