"""Tokenized rows to batches, padded only to their longest row."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from archwright.data.encoding import NO_TARGET, Encoded
from archwright.data.tasks.rows import Split
from archwright.data.windows import Windows
from archwright.errors import BadInput

__all__ = ["Batch", "Encoded", "batch_of", "batches", "encode", "evaluation_batches"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of near-equal length, as a network takes them."""

    inputs: dict[str, torch.Tensor]
    """input_ids, attention_mask, token_type_ids if the tokenizer has them, and for question answering context_mask
    (1: an answer may begin or end there, or it is the first token, which means none), all int64: rows x longest row,
    for multiple choice rows x choices x longest text."""
    targets: torch.Tensor
    """Rows; rows x 2 for question answering; rows x time for language modelling and token classification, -100 where
    nothing follows and where no word begins."""
    rows: NDArray[np.int64]
    """Positions in the encoded data, so that `results[batch.rows] = ...` restores the order."""
    windows: Windows | None = None
    """Question answering: what all windows of the encoded data mean."""
    asked: torch.Tensor | None = None
    """Token classification: rows x time, true at the tokens that a network is asked about; None: everywhere."""
    stand_in: bool = False
    """Whether it stands in for no rows at all, in a process that has none of a batch that several share."""

    def to(self, device: torch.device) -> "Batch":
        """The same batch with its tensors on this device."""
        if device.type == "cpu":
            return self
        inputs = {name: tensor.to(device) for name, tensor in self.inputs.items()}
        asked = None if self.asked is None else self.asked.to(device)
        return replace(self, inputs=inputs, targets=self.targets.to(device), asked=asked)


def encode(rows: Split, tokenizer: Any, *, max_length: int) -> Encoded:
    """Tokenized rows, cut to `max_length` tokens and not padded."""
    return rows.encode(tokenizer, max_length)


def batches(
    encoded: Encoded, *, batch_size: int, rng: np.random.Generator | None, pad_id: int | None = None, bucket: int = 50
) -> Iterator[Batch]:
    """All rows once, rows of near-equal length together; the last batch of a window may be smaller.

    With `rng`: shuffled, sorted by length inside windows of `bucket` batches, then the batches shuffled.
    Without: in order of length, for evaluation. The order is drawn at once, so `rng` moves on even if nothing is read.
    """
    return (
        batch_of(encoded, rows, pad_id) for rows in group_rows(encoded, batch_size=batch_size, rng=rng, bucket=bucket)
    )


def group_rows(
    encoded: Encoded, *, batch_size: int, rng: np.random.Generator | None, bucket: int = 50
) -> list[NDArray[np.int64]]:
    """The rows of every batch, as `batches` has them."""
    if batch_size < 1 or bucket < 1:
        raise BadInput(f"--batch-size and the bucket must be at least 1, got {batch_size} and {bucket}.")
    window = len(encoded) if rng is None else batch_size * bucket
    order = np.arange(len(encoded)) if rng is None else rng.permutation(len(encoded))
    parts = []
    for start in range(0, len(order), window):
        rows = order[start : start + window]
        rows = rows[np.argsort(encoded.lengths[rows], kind="stable")]
        parts += [rows[first : first + batch_size] for first in range(0, len(rows), batch_size)]
    return parts if rng is None else [parts[turn] for turn in rng.permutation(len(parts))]


def evaluation_batches(encoded: Encoded, *, tokens: int, pad_id: int | None = None) -> list[Batch]:
    """All rows once in order of length, at most `tokens` tokens with padding per batch; a longer row is one alone."""
    if tokens < 1:
        raise BadInput(f"evaluation needs at least 1 token per batch, got {tokens}.")
    order = np.argsort(encoded.lengths, kind="stable")
    starts = [0]
    for position, length in enumerate(encoded.lengths[order]):
        if (position - starts[-1] + 1) * length * encoded.choices > tokens and position > starts[-1]:
            starts.append(position)
    return [batch_of(encoded, rows, pad_id) for rows in np.split(order, starts[1:]) if len(rows)]


def batch_of(encoded: Encoded, rows: NDArray[np.int64], pad_id: int | None = None) -> Batch:
    """These rows, padded on the right to the longest of them."""
    texts = (rows[:, None] * encoded.choices + np.arange(encoded.choices)).ravel()
    starts, lengths = encoded.offsets[texts], np.diff(encoded.offsets)[texts]
    columns = np.arange(max(1, lengths.max()))
    mask = columns < lengths[:, None]  # texts x longest
    places = (starts[:, None] + columns)[mask]
    inputs = {
        "input_ids": pad(encoded.ids[places], mask, encoded.pad_id if pad_id is None else pad_id),
        "attention_mask": torch.from_numpy(mask.astype(np.int64)),
    }
    if encoded.types is not None:
        inputs["token_type_ids"] = pad(encoded.types[places], mask, 0)
    if encoded.windows is not None:
        inputs["context_mask"] = pad(encoded.windows.open[places], mask, 0)
    if encoded.choices > 1:
        inputs = {name: tensor.unflatten(0, (-1, encoded.choices)) for name, tensor in inputs.items()}
    targets = torch.from_numpy(encoded.targets[rows])  # ids as torch wants them, numbers as they are
    targets = targets if targets.is_floating_point() else targets.long()
    if encoded.per_word:
        targets = targets[:, : mask.shape[1]]
        return Batch(inputs, targets, rows, asked=targets != NO_TARGET)
    return Batch(inputs, targets, rows, encoded.windows)


def pad(values: NDArray[Any], mask: NDArray[np.bool_], filler: int) -> torch.Tensor:
    table = np.full(mask.shape, filler, dtype=np.int64)
    table[mask] = values
    return torch.from_numpy(table)
