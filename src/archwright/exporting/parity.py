"""Proof that an exported network computes what the sub-network computes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from archwright.exporting.folder import SCHEMA
from archwright.exporting.kinds import KINDS, Kind

Inputs = Mapping[str, Tensor]
Run = Callable[[Inputs], Tensor]
Latency = Callable[[Run], Mapping[str, float]]
"""Times the exported network; its answer goes into the report, e.g. the ratio to the original with its interval."""


@dataclass(frozen=True)
class Difference:
    """How far two networks are apart on some batches."""

    largest: float
    """Largest absolute difference of two logits."""
    largest_logit: float
    same_predictions: float | None
    """Share of equal answers (labels, choices, ends of a span, next tokens); None for regression."""
    shapes: list[dict[str, float]]
    """Rows, length and largest difference of every batch, and how many choices a row has if it has any."""

    @property
    def share(self) -> float:
        """The largest difference in units of the largest logit or of 1, which the limits are about."""
        return self.largest / max(1.0, self.largest_logit)


@dataclass(frozen=True)
class Int8:
    """The 8-bit twin of an export; its difference is reported, not limited."""

    file: str
    bytes: int
    difference: Difference
    latency: Mapping[str, float] | None


@dataclass(frozen=True)
class Parity:
    """What an export is, and how far it is from the network that was exported."""

    format: str
    kind: str
    """The kind of task."""
    family: str
    layers: list[list[int]]
    """Heads and units of every layer of the network that was exported."""
    pooling: str
    limit: float
    """Largest allowed difference, in units of the largest logit or of 1."""
    difference: Difference
    parameters: int
    """Of the network that was exported."""
    stored_parameters: int
    """Of the checkpoint: zeros and a pooling layer are more, constants that were merged are fewer."""
    bytes: int
    """Size of the file with the weights."""
    files: dict[str, int]
    """Every file of the folder but the report and the model card, with its size in bytes."""
    latency: Mapping[str, float] | None
    int8: Int8 | None

    def as_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self), "difference_share": self.difference.share}


class Apart(NamedTuple):
    """How far two networks are apart on one batch."""

    largest: float
    largest_logit: float
    same: Tensor


def difference(reference: Run, run: Run, batches: Sequence[Inputs], *, kind: str) -> Difference:
    """Compares the two on every batch, with at least one batch; logits of one batch at a time are in memory."""
    apart = [compared(reference, run, batch, KINDS[kind]) for batch in batches]
    same = torch.cat([batch.same for batch in apart]).float()
    return Difference(
        largest=float(torch.tensor([batch.largest for batch in apart]).max()),  # not a number if one is none
        largest_logit=max(batch.largest_logit for batch in apart),
        same_predictions=float(same.mean()) if len(same) else None,
        shapes=[shape(batch) | {"largest": far.largest} for batch, far in zip(batches, apart, strict=True)],
    )


def compared(reference: Run, run: Run, batch: Inputs, kind: Kind) -> Apart:
    with torch.inference_mode():
        ours, theirs = reference(dict(batch)).float(), run(batch).float()
        same = same_answers(kind.decided(ours, batch), kind.decided(theirs, batch))
        ours, theirs = kind.counted(ours, batch), kind.counted(theirs, batch)
        return Apart(float((ours - theirs).abs().max()), float(ours.abs().max()), same)


def same_answers(ours: Tensor, theirs: Tensor) -> Tensor:
    """One entry per answer; none for regression, which has a single output."""
    if ours.shape[-1] == 1:
        return torch.empty(0, dtype=torch.bool)
    return (ours.argmax(-1) == theirs.argmax(-1)).flatten()


def shape(batch: Inputs) -> dict[str, float]:
    rows, *choices, length = batch["input_ids"].shape
    return {"rows": rows, "length": length} | ({"choices": choices[0]} if choices else {})


def varied_batches(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[str] | None = None,
    *,
    max_length: int = 128,
) -> list[dict[str, Tensor]]:
    """Batches of several shapes: the shortest text, the longest, the middle one, and eight of all lengths together."""
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]) + (len(pairs[row]) if pairs else 0))
    spread = [order[place * (len(order) - 1) // 7] for place in range(8)]
    chosen = [[order[0]], [order[-1]], [order[len(order) // 2]], spread, order[:3]]
    batches = []
    for rows in chosen:
        second = [pairs[row] for row in rows] if pairs else None
        inputs = tokenizer(
            [texts[row] for row in rows],
            second,
            padding=True,
            truncation=True,
            max_length=max_length,
            return_tensors="pt",
        )
        batches.append(dict(inputs))
    return batches
