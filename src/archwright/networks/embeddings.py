"""Smaller embeddings of a network: fewer tokens, or a narrow table with a projection behind it."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from archwright.errors import BadInput


class LowRankEmbedding(nn.Module):
    """A narrow table of word vectors and the linear that widens them: rows x rank, rank x width, and the mean."""

    def __init__(self, rows: int, rank: int, width: int, padding_idx: int | None = None):
        super().__init__()
        self.table = nn.Embedding(rows, rank, padding_idx=padding_idx)
        self.projection = nn.Linear(rank, width)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        vectors: torch.Tensor = self.projection(self.table(input_ids))
        return vectors

    def multiplied_out(self) -> torch.Tensor:
        """The wide table, rows x width, that gives the same vectors."""
        return self.projection(self.table.weight).detach()


def embedding_path(backbone: Any) -> str:
    """Where a network keeps its word vectors."""
    table = backbone.get_input_embeddings()
    return next(path for path, module in backbone.named_modules() if module is table)


def put_low_rank(backbone: Any, rank: int) -> LowRankEmbedding:
    """Replaces the table of word vectors by an untrained one of this rank, and returns it."""
    path, table = embedding_path(backbone), backbone.get_input_embeddings()
    narrow = LowRankEmbedding(table.num_embeddings, rank, table.embedding_dim, table.padding_idx)
    backbone.set_submodule(path, narrow.to(table.weight))
    return narrow


def check_rank(network: Any, rank: int) -> None:
    """BadInput for a rank that makes nothing smaller, or a table that is the output too."""
    if network.get_output_embeddings() is not None:
        raise BadInput(
            f"--embedding-rank is for networks without output embeddings, got {rank} for a language model; "
            "take --vocabulary."
        )
    if type(network.get_input_embeddings()) is not nn.Embedding:
        raise BadInput(
            f"--embedding-rank is for plain tables of word vectors, got {rank} for "
            f"{network.config.backbone['model_type']}, which scales them; take --vocabulary."
        )
    width = network.get_input_embeddings().embedding_dim
    if rank >= width:
        raise BadInput(f"--embedding-rank must be below {width}, the width of the word vectors, got {rank}.")


def factorize_embeddings(
    network: Any, rank: int, counts: torch.Tensor, sensitivity: torch.Tensor | None = None
) -> None:
    """Puts the best table of this rank in place of the network's, where a token counts as often as `counts` says.

    Principal components of the word vectors: with mean m and the leading eigenvectors P (width x rank) of the weighted
    covariance, a vector e becomes (e - m) P in the table and m + (e - m) P P^T behind the projection. No other table
    of this rank has a smaller weighted squared error. With a `sensitivity` F (width x width) an error d counts
    d^T (F / mean eigenvalue + 1) d instead, half by what the loss feels: then the components are those of e S, where S
    is the square root of that matrix, and the projection undoes S (weighted low-rank factorization, Hsu et al. 2022).
    """
    check_rank(network, rank)
    table = network.get_input_embeddings().weight.detach().double()  # rows x width
    weights = counts.to(table) / counts.sum()
    mean = weights @ table
    root = torch.eye(table.shape[1]).to(table) if sensitivity is None else root_of_metric(sensitivity.to(table))
    centred = (table - mean) @ root
    _, vectors = torch.linalg.eigh(centred.T @ (weights[:, None] * centred))  # eigenvalues rise
    leading = vectors[:, -rank:]  # width x rank
    narrow = put_low_rank(network.backbone, rank)
    with torch.no_grad():
        narrow.table.weight.copy_(centred @ leading)
        narrow.projection.weight.copy_(torch.linalg.solve(root, leading))
        narrow.projection.bias.copy_(mean)
    network.config.embedding_rank = rank


def root_of_metric(sensitivity: torch.Tensor) -> torch.Tensor:
    """The symmetric square root of sensitivity / its mean eigenvalue + 1."""
    values, vectors = torch.linalg.eigh(sensitivity)
    mean = values.mean().clamp_min(torch.finfo(values.dtype).tiny)
    return vectors @ torch.diag((values.clamp_min(0) / mean + 1).sqrt()) @ vectors.T


def keep_tokens(network: Any, kept: torch.Tensor) -> None:
    """Cuts the tables of word vectors to these rows, the outputs of a language model too; ids in configs follow."""
    table, rows = network.get_input_embeddings(), kept.to(torch.long)
    if int(rows.max()) >= table.num_embeddings:
        raise BadInput(
            f"--vocabulary needs a row of word vectors for every token, got {table.num_embeddings:,} rows and a token "
            f"with the id {int(rows.max()):,}; leave it out."
        )
    renumber_config(network.config, rows)
    check_position_padding(network)
    padding = getattr(network.config.stock(), "pad_token_id", None)
    table.weight = nn.Parameter(table.weight.detach()[rows].clone())  # in place: Gemma's has a scale besides
    table.num_embeddings, table.padding_idx = len(rows), padding if table.padding_idx is not None else None
    for config in filter(None, (network.backbone.config, getattr(network, "generation_config", None))):
        renumber_values(vars(config), new_ids(rows))
    network.backbone.config.vocab_size = len(rows)
    outputs = network.get_output_embeddings()
    if outputs is not None:
        outputs.weight = nn.Parameter(outputs.weight.detach()[rows].clone())
        outputs.out_features = len(rows)
        network.tie_weights()


def renumber_config(config: Any, kept: torch.Tensor) -> None:
    """A PrunedConfig for these tokens only."""
    numbers = new_ids(kept)
    named = {key: value for key, value in config.stock().to_dict().items() if key.endswith("_token_id")}
    renumber_values(named, numbers)
    config.backbone = {**config.backbone, **named, "vocab_size": len(kept)}
    renumber_values(config.__dict__, numbers)


def named_tokens(config: Any) -> list[int]:
    """Ids that a stock config names, such as the one of the padding token."""
    values = [value for key, value in config.to_dict().items() if key.endswith("_token_id") and value is not None]
    return [token_id for value in values for token_id in (value if isinstance(value, list) else [value])]


def new_ids(kept: torch.Tensor) -> dict[int, int]:
    return {int(old): new for new, old in enumerate(kept)}


def renumber_values(values: dict[str, Any], numbers: Mapping[int, int]) -> None:
    """Token ids among the values, by the ends of their names; an id that stands for no token becomes None."""
    for key, value in values.items():
        if key.endswith("_token_id") and isinstance(value, int | list):
            values[key] = [numbers[i] for i in value if i in numbers] if isinstance(value, list) else numbers.get(value)


def check_position_padding(network: Any) -> None:
    """RoBERTa counts positions from the padding id on: with another id every position would be another one."""
    family = network.config.family
    table = network.backbone.get_submodule(family.positions) if family.positions else None
    before, after = getattr(table, "padding_idx", None), network.config.stock().pad_token_id
    if before is not None and before != after:
        raise BadInput(
            f"--vocabulary must leave the padding token at the id {before}, from which this family counts positions, "
            f"got {after}; leave it out."
        )
