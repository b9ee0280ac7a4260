"""First weights of a student from its teacher (`train --start teacher`).

The student's state is to be the teacher's, lifted to the student's width: s = L x, where L pads x with zeros if the
student is the wider one, and projects onto the teacher's principal directions if it is the narrower. Heads, units and
the token table are cut from the teacher's weights as far as they fit: scores and values of a head to the rank that a
student's head has, the units that add most to the stream, the token table by a singular value decomposition weighted
with how often tokens occur. What a cut has changed, and what has no counterpart in the teacher (the narrow stream of a
MobileBERT block), is fitted layer by layer: least squares from what the student really computes on some training rows
to what the teacher computes on them. So an error of one layer is known to the next.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.data.batching import Batch, Encoded, batch_of
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.networks.nlu.network import MobileLayer, NluLayer, NluModel
from archwright.networks.pruned import ClassificationHead, PrunedNetwork
from archwright.random_streams import INHERITED_ROWS
from archwright.subnet.importance import evaluating
from archwright.training.inheritance.embeddings import inherit_embeddings
from archwright.training.inheritance.fitting import explained_variance
from archwright.training.inheritance.layers import LAYERS
from archwright.training.inheritance.states import (
    StudentStates,
    TeacherStates,
    body_of,
    family_of,
    norm_width,
    pass_on,
    record_teacher,
    teacher_layers,
)
from archwright.training.objectives.layers import Projections, fit_projections, layer_map
from archwright.training.plan import TrainingContext

CALIBRATION_TOKENS, CALIBRATION_ROWS = 8192, 16
"""Tokens of the rows that weights are fitted on and judged by, and most rows per batch of them."""
FITTED = 0.75
"""Share of the batches that weights are fitted on; the rest says how much of the teacher's states they explain."""
FEWEST_BATCHES = 4
"""Of few rows, so that such a share of them can be fitted on."""


@dataclass(frozen=True)
class InheritedPart:
    """One part of the student, as it is before any training."""

    part: str
    source: str
    """What it was made of."""
    explained: float | None
    """Share of the variance of the teacher's state behind this part that the student's state has, on rows that
    nothing was fitted on; None where the teacher has no such state, and of a single row."""


def start_from_teacher(
    context: TrainingContext, network: Any, teacher: Any, encoded: Encoded, projections: Projections
) -> dict[str, Any]:
    """Fills the student, and the projections from its states to the teacher's; facts for the result.

    The same in every process of a training and after an interruption: the rows follow from the seed.
    """
    batches = [batch.to(context.device) for batch in calibration_batches(encoded, context.seed)]
    parts = inherit_from_teacher(student_body(network), teacher, batches, context.precision)
    if isinstance(network, PrunedNetwork) and isinstance(teacher, PrunedNetwork):
        parts += [part] if (part := inherit_head(network, teacher)) else []
    fit_projections(projections, network, teacher, batches, context.precision)
    narrow, wide = norm_width(body_of(teacher), family_of(teacher)), student_body(network).config.hidden_size
    if narrow < wide:
        words = (
            "%s of the student's %s features have no counterpart in the teacher's %s: they start at zero, and a short "
        )
        words += "training hardly moves them"
        logger.warning(words, wide - narrow, wide, narrow)
    return {"start": {"rows": sum(len(batch.rows) for batch in batches), "parts": [asdict(part) for part in parts]}}


def check_start(network: Any, teacher: Any) -> None:
    """BadInput unless the student can be filled from this teacher."""
    student_body(network)
    check_teacher(teacher)


def student_body(network: Any) -> NluModel:
    """BadInput unless it is of a space whose blocks are known here."""
    body = network.backbone if isinstance(network, PrunedNetwork) else getattr(network, "encoder", network)
    if not isinstance(body, NluModel):
        raise BadInput(
            f"--start teacher fills networks of the nlu spaces, got {body.config.model_type!r}; leave --start out."
        )
    return body


def calibration_batches(encoded: Encoded, seed: int) -> list[Batch]:
    """Rows at random, as many as have the tokens that are wanted; multiple choices one below another."""
    order = np.random.default_rng((seed, INHERITED_ROWS)).permutation(len(encoded))
    lengths = np.cumsum(np.asarray(encoded.lengths)[order] * encoded.choices)
    rows = order[: max(1, int(np.searchsorted(lengths, CALIBRATION_TOKENS)))]
    batches, size = [], min(CALIBRATION_ROWS, math.ceil(len(rows) / FEWEST_BATCHES))
    for first in range(0, len(rows), size):
        batch = batch_of(encoded, np.sort(rows[first : first + size]))
        inputs = {name: value.flatten(0, -2) for name, value in batch.inputs.items()}
        batches.append(replace(batch, inputs=inputs))
    return batches


def inherit_from_teacher(
    student: NluModel, teacher: Any, batches: Sequence[Batch], precision: str = "float32"
) -> list[InheritedPart]:
    """Fills the student's weights from the teacher's; both must read the same tokens, which the batches hold.

    `precision` is that of the passes which are recorded; what is fitted on them is computed in float32 and above.
    Nothing is drawn at random: rows of the student's first weights that have no counterpart stay as they are.
    """
    with evaluating(student), evaluating(teacher), torch.no_grad():
        pairs = dict(layer_map(len(student.layers), len(teacher_layers(teacher))))
        numbers = sorted(set(pairs.values()))
        to_fit, to_judge = split_rows(batches)
        fit, held = (record_teacher(teacher, rows, numbers, precision) for rows in (to_fit, to_judge or to_fit))
        lift = lift_states(student.config.hidden_size, fit)
        kept, explained = inherit_embeddings(student.embeddings, teacher, lift, fit, held)
        table = f"the teacher's table at rank {student.embeddings.tokens.embedding_dim}, which leaves {kept:.0%} of it"
        parts = [InheritedPart("embeddings", f"{table}; its positions and segments", explained)]
        states, judged = (StudentStates.begin(student.embeddings, rows, precision) for rows in (fit, held))
        for place, layer in enumerate(student.layers, 1):
            number = pairs.get(place)
            following = min(theirs for own, theirs in pairs.items() if own >= place)
            recorded = fit.layers[following] if number else pass_on(fit.layers[following])
            LAYERS[type(layer)](layer, states, recorded, lift)
            states, judged = states.behind(layer), judged.behind(layer)
            wanted = held.layers[number].outputs @ lift.T if number else None
            parts.append(describe_layer(layer, place, number, judged, wanted))
    return parts if to_judge else [replace(part, explained=None) for part in parts]


def check_teacher(teacher: Any) -> None:
    """BadInput unless its layers can be cut: an encoder that norms behind the residuals and has its own word table."""
    family, body = family_of(teacher), body_of(teacher)
    unlike = family is None or family.norms_first or family.shared_layer or family.gate or family.position_query
    if unlike or not hasattr(body.get_input_embeddings(), "weight") or not family.positions:
        known = "bert, roberta, distilbert, electra"
        raise BadInput(
            f"--start teacher takes layers of an encoder such as {known}, got {body.config.model_type!r}; "
            "choose another --teacher or leave --start out."
        )
    table, width = body.get_input_embeddings().weight.shape[1], norm_width(body, family)
    if table != width:
        raise BadInput(
            f"--start teacher needs word vectors as wide as the layers, {body.config.model_type!r} has {table} and "
            f"{width}; choose another --teacher or leave --start out."
        )


def split_rows(batches: Sequence[Batch]) -> tuple[list[Batch], list[Batch]]:
    """Batches to fit on, and others to judge by; of a single one there are none of these."""
    number = max(1, min(round(FITTED * len(batches)), len(batches) - 1))
    return list(batches[:number]), list(batches[number:])


def lift_states(width: int, teacher: TeacherStates) -> torch.Tensor:
    """Student width x teacher width, with orthonormal columns, or rows where the student is narrower."""
    states = teacher.layers[max(teacher.layers)].outputs.double()
    if width >= states.shape[1]:
        return torch.eye(width, states.shape[1], device=states.device)
    directions = torch.linalg.eigh(states.T @ states).eigenvectors  # rising
    return directions[:, -width:].T.flip(0).float()


def describe_layer(
    layer: NluLayer, place: int, number: int | None, states: StudentStates, wanted: torch.Tensor | None
) -> InheritedPart:
    """What this layer of the student has of the teacher's, on rows that nothing was fitted on."""
    block = f"{'mobile' if isinstance(layer, MobileLayer) else 'base'}-{layer.ffn.up.out_features}"
    if wanted is None:
        return InheritedPart(f"layer {place} ({block})", "between two of the teacher's: it passes its input on", None)
    explained = explained_variance(states.tokens, wanted)
    return InheritedPart(f"layer {place} ({block})", f"layer {number} of the teacher", explained)


def inherit_head(student: PrunedNetwork, teacher: PrunedNetwork) -> InheritedPart | None:
    """The head of a task, where it reads the same of a text and the student's state holds the teacher's as it is."""
    own, theirs = student.head, teacher.head
    same = isinstance(own, ClassificationHead) and isinstance(theirs, ClassificationHead)
    if not same or student.config.pooling != teacher.config.pooling or not isinstance(own.norm, nn.Identity):
        return None
    wide, narrow = own.dense.in_features, theirs.dense.in_features
    if (
        wide < narrow
        or own.out.out_features != theirs.out.out_features
        or type(own.activation) is not type(theirs.activation)
    ):
        return None
    with torch.no_grad():
        own.dense.weight[:narrow, :narrow] = theirs.dense.weight
        own.dense.bias[:narrow] = theirs.dense.bias
        own.out.weight[:, :narrow] = theirs.out.weight
        own.out.bias.copy_(theirs.out.bias)
        own.dense.weight[:narrow, narrow:] = 0.0
        own.out.weight[:, narrow:] = 0.0
    return InheritedPart("head", "the teacher's", None)
