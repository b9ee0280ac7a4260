"""Layer-wise distillation (Wang 2025, W-PCA, Appendix C, Equations 5 to 7)."""

from typing import Any

import numpy as np
import torch

from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.loop import Update, tokens_of
from archwright.training.losses import mean_of, numbers_in, size_of, squares
from archwright.training.objectives.layer_matching import Projections, layer_map
from archwright.training.objectives.layer_outputs import Heard, answer, listening, posts


def layerwise_update(
    student: Any, teacher: Any, projections: Projections, *, gamma: float, group: ProcessGroup = SINGLE_PROCESS
) -> Update:
    """A step towards the teacher's states, and with weight `gamma` towards its logits; no label plays a part.

    Gamma is 0 in pre-training, where neither network's head is run, and 1 in fine-tuning.
    """
    pairs = layer_map(len(posts(student)), len(posts(teacher)))
    teacher.eval()

    def update(batch: Any, rng: np.random.Generator, share: float) -> torch.Tensor:
        batch = batch.to(next(student.parameters()).device)
        with torch.no_grad(), listening(teacher) as told:
            aim = answer(teacher, batch.inputs, logits=gamma > 0)
        with listening(student) as heard:
            found = answer(student, batch.inputs, logits=gamma > 0)
        loss = state_loss(heard, told, projections, pairs, real_tokens(batch), group)
        if found is not None and aim is not None:
            loss = loss + gamma * prediction_loss(found, aim, group)
        loss.backward()
        return loss.detach()

    return update


def real_tokens(batch: Any) -> torch.Tensor:
    """Where there is no padding, texts x time."""
    ids = batch.inputs["input_ids"]
    return batch.inputs.get("attention_mask", torch.ones_like(ids)).flatten(0, -2).bool()


def state_loss(
    heard: Heard,
    told: Heard,
    projections: Projections,
    pairs: list[tuple[int, int]],
    real: torch.Tensor,
    group: ProcessGroup,
) -> torch.Tensor:
    """Sum over the pairs of layers, and the embeddings, of the mean squared errors; padding has no part in them."""
    both = [(projections.embeddings(heard.embeddings[real]), told.embeddings)]
    both += [(projections.hidden(heard.hidden[i][real]), told.hidden[j]) for i, j in pairs]
    both += [(projections.attention(i, heard.mixed[i][real]), told.mixed[j]) for i, j in pairs if i in heard.mixed]
    count = group.count(real.sum(), tokens_of)
    return torch.stack([squares(found, aim[real]) / (count * aim.shape[-1]) for found, aim in both]).sum()


def prediction_loss(logits: torch.Tensor, teacher: torch.Tensor, group: ProcessGroup) -> torch.Tensor:
    """Soft cross-entropy, mean over positions, or mean squared error for a single output."""
    flat, aims = logits.flatten(0, -2), teacher.flatten(0, -2)
    count = group.count(size_of(flat), numbers_in)
    if logits.shape[-1] == 1:
        return squares(flat, aims) / count
    return mean_of(soft_cross_entropies, flat, aims, count=count)


def soft_cross_entropies(logits: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits, teacher.softmax(-1), reduction="sum")
