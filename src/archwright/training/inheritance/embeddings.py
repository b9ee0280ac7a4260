"""The student's embeddings from its teacher's."""

from typing import Any

import torch

from archwright.networks.nlu.network import NluEmbeddings
from archwright.training.inheritance.fitting import explained_variance, fit_linear, fit_norm
from archwright.training.inheritance.states import (
    StudentStates,
    TeacherStates,
    at_tokens,
    body_of,
    family_of,
    mask_of,
    record,
    run_embeddings,
)

SMOOTHING = 1.0
"""Added to how often a token occurs: those that never do count a little."""


def inherit_embeddings(
    embeddings: NluEmbeddings, teacher: Any, lift: torch.Tensor, fit: TeacherStates, held: TeacherStates
) -> tuple[float, float]:
    """Token table, positions and segments; the projection and the norm are then fitted.

    Returns the share of the token table's variance that its rank leaves, and of the teacher's embeddings that the
    student's have on rows that nothing was fitted on.
    """
    kept = inherit_tables(embeddings, teacher, lift, fit)
    projection, norm, masks = embeddings.projection, embeddings.norm, [mask_of(batch) for batch in fit.batches]
    with record(projection, inputs=True) as around, record(projection) as projected, record(norm, inputs=True) as sums:
        run_embeddings(embeddings, fit.batches)
    rest = at_tokens(sums, masks) - at_tokens(projected, masks)  # positions and segments
    fit_linear(projection, at_tokens(around, masks), fit.embedding_sum @ lift.T - rest)
    with record(norm, inputs=True) as sums:
        run_embeddings(embeddings, fit.batches)
    fit_norm(norm, at_tokens(sums, masks), fit.embeddings @ lift.T)
    reached = StudentStates.begin(embeddings, held).tokens
    return kept, explained_variance(reached, held.embeddings @ lift.T)


def inherit_tables(embeddings: NluEmbeddings, teacher: Any, lift: torch.Tensor, fit: TeacherStates) -> float:
    """Returns the share of the token table's variance that its rank leaves, tokens weighted with how often they occur.

    The projection takes the token itself; its neighbours have no part in it yet.
    """
    body, family = body_of(teacher), family_of(teacher)
    table = body.get_input_embeddings().weight.double()  # vocabulary x teacher width
    ids = torch.cat([batch.inputs["input_ids"][mask_of(batch)] for batch in fit.batches])
    weights = (torch.bincount(ids, minlength=len(table)) + SMOOTHING).double()
    mean = weights @ table / weights.sum()
    spread = (weights.sqrt()[:, None] * (table - mean)).square()
    scatter = (table - mean).T @ (weights[:, None] * (table - mean))
    values, directions = torch.linalg.eigh(scatter)  # rising
    rank = min(embeddings.tokens.embedding_dim, len(values))
    directions = directions[:, -rank:]
    rows, place = min(len(table), embeddings.tokens.num_embeddings), embeddings.tokens.embedding_dim
    embeddings.tokens.weight[:rows, :rank] = ((table - mean) @ directions)[:rows].float()
    embeddings.projection.weight.zero_()  # of the next token, the token itself, and the one before
    embeddings.projection.weight[:, place : place + rank] = lift @ directions.float()
    embeddings.projection.bias.copy_(lift @ mean.float())
    positions = body.get_submodule(family.positions)
    first = 0 if positions.padding_idx is None else positions.padding_idx + 1
    usable = min(len(embeddings.positions.weight), len(positions.weight) - first)
    embeddings.positions.weight[:usable] = positions.weight[first : first + usable] @ lift.T
    segments = getattr(body.embeddings, "token_type_embeddings", None)
    embeddings.segments.weight.zero_()
    if segments is not None:
        kinds = min(len(embeddings.segments.weight), len(segments.weight))
        embeddings.segments.weight[:kinds] = segments.weight[:kinds] @ lift.T
    return float(values[-rank:].sum() / spread.sum())
