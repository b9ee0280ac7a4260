"""Adaptive input embedding and adaptive softmax (Baevski and Auli 2019; Grave et al. 2017), sharing their weights.

Tokens are cut into clusters by number; cluster i has vectors of d_embed // k^i features and a projection to the width.
"""

from itertools import pairwise
from typing import NamedTuple, Protocol

import torch
from torch import nn
from torch.nn import functional


class Cluster(NamedTuple):
    """Tokens start to end - 1, with vectors of `size` features."""

    start: int
    end: int
    size: int


class AdaptiveVocabulary(Protocol):
    """What the two ends of a network need to know of its config."""

    n_token: int
    d_model: int
    d_embed: int
    div_val: int
    cutoffs: list[int]
    tie_weight: bool
    tie_projs: list[bool]
    weight_init_std: float
    proj_init_std: float


def clusters(of: AdaptiveVocabulary) -> list[Cluster]:
    """A cutoff beyond the last token makes no cluster: of (19997, 39997, 199997) the third is idle at 50,264 tokens."""
    bounds = [0, *(cutoff for cutoff in of.cutoffs if cutoff < of.n_token), of.n_token]
    return [Cluster(start, end, of.d_embed // of.div_val**place) for place, (start, end) in enumerate(pairwise(bounds))]


class Linear(nn.Linear):
    """A linear that knows the standard deviation of its first weights."""

    def __init__(self, inputs: int, outputs: int, *, std: float, bias: bool = True):
        self.std = std
        super().__init__(inputs, outputs, bias=bias)

    def reset_parameters(self) -> None:
        """Nothing: the network draws all first weights when it is complete, each once."""


class AdaptiveEmbedding(nn.Module):
    """With k = 1 one table and at most one projection serve all clusters; else each cluster has its own."""

    def __init__(self, of: AdaptiveVocabulary):
        super().__init__()
        self.clusters = clusters(of)
        self.scale = of.d_model**0.5
        self.shared = of.div_val == 1
        own = [Cluster(0, of.n_token, of.d_embed)] if self.shared else self.clusters
        self.tables = nn.ModuleList(nn.Embedding(one.end - one.start, one.size) for one in own)
        projected = [] if self.shared and of.d_embed == of.d_model else own
        self.projections = nn.ModuleList(
            Linear(one.size, of.d_model, std=of.proj_init_std, bias=False) for one in projected
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        if len(self.tables) == 1:
            return self.project(self.tables[0](tokens), 0) * self.scale
        found = [(tokens >= one.start) & (tokens < one.end) for one in self.clusters]
        parts = [
            self.project(self.tables[place](tokens[inside] - self.clusters[place].start), place)
            for place, inside in enumerate(found)
        ]
        embedded = parts[0].new_zeros(*tokens.shape, parts[0].shape[-1])
        for inside, part in zip(found, parts, strict=True):
            embedded[inside] = part
        return embedded * self.scale

    def project(self, vectors: torch.Tensor, place: int) -> torch.Tensor:
        return self.projections[place](vectors) if self.projections else vectors

    def rows(self, place: int) -> torch.Tensor:
        """Vectors of a cluster, tokens x size."""
        one = self.clusters[place]
        return self.tables[0].weight[one.start : one.end] if self.shared else self.tables[place].weight

    def projection(self, place: int) -> torch.Tensor | None:
        """Weight of the projection of a cluster, width x size."""
        return self.projections[0 if self.shared else place].weight if self.projections else None


class AdaptiveSoftmax(nn.Module):
    """Log-probabilities of all tokens; vectors and projections are the embedding's wherever the config ties them."""

    def __init__(self, of: AdaptiveVocabulary):
        super().__init__()
        self.clusters = clusters(of)
        self.bias = nn.Parameter(torch.zeros(of.n_token))
        tails = len(self.clusters) - 1
        self.choose = Linear(of.d_embed, tails, std=of.weight_init_std) if tails else None
        untied = [] if of.tie_weight else self.clusters
        self.tables = nn.ModuleList(nn.Embedding(one.end - one.start, one.size) for one in untied)
        plain = of.div_val == 1 and of.d_embed == of.d_model
        self.projections = nn.ModuleDict(
            {
                str(place): Linear(one.size, of.d_model, std=of.proj_init_std, bias=False)
                for place, one in enumerate(self.clusters)
                if not (plain or of.tie_projs[place])
            }
        )

    def forward(self, hidden: torch.Tensor, embedding: AdaptiveEmbedding) -> torch.Tensor:
        """... x tokens for hidden states of ... x width."""
        head = self.first(hidden, embedding)
        parts = [head[..., : self.clusters[0].end]]
        for place in range(1, len(self.clusters)):
            parts.append(head[..., self.column(place), None] + self.within(hidden, place, embedding))
        return torch.cat(parts, -1)

    def of_targets(self, hidden: torch.Tensor, targets: torch.Tensor, embedding: AdaptiveEmbedding) -> torch.Tensor:
        """The same for one token per row of rows x width; clusters are worked out only for the rows that need them."""
        head, column = self.first(hidden, embedding), targets.clone()
        inside = [(targets >= one.start) & (targets < one.end) for one in self.clusters]
        for place in range(1, len(self.clusters)):
            column[inside[place]] = self.column(place)
        logs = head.gather(1, column[:, None])[:, 0]
        for place, one in list(enumerate(self.clusters))[1:]:
            rows = inside[place].nonzero()[:, 0]
            tail = self.within(hidden[rows], place, embedding).gather(1, targets[rows, None] - one.start)[:, 0]
            logs = logs.index_add(0, rows, tail)
        return logs

    def first(self, hidden: torch.Tensor, embedding: AdaptiveEmbedding) -> torch.Tensor:
        """Log-probabilities of the tokens of the first cluster, then of the other clusters as a whole."""
        short = self.project(hidden, 0, embedding)
        scores = self.scores(short, 0, embedding)
        return (scores if self.choose is None else torch.cat([scores, self.choose(short)], -1)).log_softmax(-1)

    def column(self, place: int) -> int:
        """Where `first` has a cluster."""
        return self.clusters[0].end + place - 1

    def within(self, hidden: torch.Tensor, place: int, embedding: AdaptiveEmbedding) -> torch.Tensor:
        """Log-probabilities of a cluster's tokens given the cluster."""
        return self.scores(self.project(hidden, place, embedding), place, embedding).log_softmax(-1)

    def project(self, hidden: torch.Tensor, place: int, embedding: AdaptiveEmbedding) -> torch.Tensor:
        own = self.projections[str(place)].weight if str(place) in self.projections else None
        weight = embedding.projection(place) if own is None else own
        return hidden if weight is None else hidden @ weight  # width -> size of the cluster

    def scores(self, short: torch.Tensor, place: int, embedding: AdaptiveEmbedding) -> torch.Tensor:
        one = self.clusters[place]
        rows = self.tables[place].weight if self.tables else embedding.rows(place)
        return functional.linear(short, rows, self.bias[one.start : one.end])
