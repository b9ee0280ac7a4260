"""Which student layer learns from which teacher layer, and the matrices between their widths."""

import math
from typing import Any

import torch
from torch import nn

from archwright.training.objectives.layer_outputs import Heard, answer, listening, posts


def layer_map(student: int, teacher: int) -> list[tuple[int, int]]:
    """Pairs of layers, counted from 1: the shorter network's layers, spread evenly over the longer one to its end.

    Student i learns from teacher i x T/S; with more student than teacher layers, teacher j teaches student j x S/T.
    Where the numbers do not divide, the nearest layer is taken, the higher one of two equally near.
    """
    if student <= teacher:
        return [(i, nearest(i * teacher, student)) for i in range(1, student + 1)]
    return [(nearest(j * student, teacher), j) for j in range(1, teacher + 1)]


def nearest(share: int, whole: int) -> int:
    return math.floor(share / whole + 0.5)


class Projections(nn.Module):
    """Trainable matrices from the student's widths to the teacher's.

    One for the hidden states of all layers and one for the embeddings; for what attention gives one per kind of layer,
    because a MobileBERT block's is narrower.
    """

    def __init__(self, student: Heard, teacher: Heard, kinds: dict[int, str]):
        super().__init__()
        self.kinds = kinds
        self.embeddings = between(student.embeddings, teacher.embeddings)
        self.hidden = between(student.hidden[1], teacher.hidden[1])
        aim = teacher.mixed[1]
        self.mixed = nn.ModuleDict({kinds[number]: between(one, aim) for number, one in student.mixed.items()})

    def attention(self, number: int, mixed: torch.Tensor) -> torch.Tensor:
        """What attention of this layer gave, as wide as the teacher's."""
        projected: torch.Tensor = self.mixed[self.kinds[number]](mixed)
        return projected


def between(narrow: torch.Tensor, wide: torch.Tensor) -> nn.Linear:
    return nn.Linear(narrow.shape[-1], wide.shape[-1], bias=False)


def projections_for(student: Any, teacher: Any, *, generator: torch.Generator) -> Projections:
    """Matrices for these two networks, their first values from the generator."""
    heard, told = (tried(network) for network in (student, teacher))
    kinds = {
        number: f"{type(post.layer).__name__}-{heard.mixed[number].shape[-1]}"
        for number, post in enumerate(posts(student), 1)
        if number in heard.mixed
    }
    with torch.random.fork_rng(devices=[]):
        made = Projections(heard, told, kinds)
    for matrix in made.parameters():
        nn.init.xavier_uniform_(matrix, generator=generator)
    return made.to(heard.hidden[1].device)


@torch.no_grad()
def tried(network: Any) -> Heard:
    """What a pass over two tokens says, for its widths."""
    learning = network.training
    device = next(network.parameters()).device
    with listening(network) as heard:
        answer(network.eval(), {"input_ids": torch.ones(1, 2, dtype=torch.long, device=device)}, logits=False)
    network.train(learning)
    return heard
