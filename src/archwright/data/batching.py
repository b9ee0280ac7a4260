"""Texts to token ids, kept flat, and from there to batches padded only to their longest row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from archwright.data.tasks import Rows
from archwright.errors import BadInput
from archwright.progress import progress

TEXTS_PER_CALL = 2048
"""Texts given to the tokenizer at once: many, for its threads; not all, because what it returns is large."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Token ids of all rows one after another: row i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    types: NDArray[np.int8] | None
    """Token type ids, when the tokenizer has them."""
    targets: NDArray[np.int64] | NDArray[np.float32]
    pad_id: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of near-equal length, as a network takes them."""

    inputs: dict[str, torch.Tensor]
    """input_ids, attention_mask, and token_type_ids if the tokenizer has them: rows x longest row, int64."""
    targets: torch.Tensor
    rows: NDArray[np.int64]
    """Positions in the encoded data, so that `results[batch.rows] = ...` restores the order."""

    def to(self, device: torch.device) -> "Batch":
        """The same batch with its tensors on this device."""
        if device.type == "cpu":
            return self
        inputs = {name: tensor.to(device) for name, tensor in self.inputs.items()}
        return Batch(inputs, self.targets.to(device), self.rows)


def encode(rows: Rows, tokenizer: Any, *, max_length: int) -> Encoded:
    """Tokenized rows, cut to `max_length` tokens and not padded."""
    check_length(max_length, tokenizer, pair=rows.pairs is not None)
    parts = []
    with progress("tokenize", len(rows), "texts") as bar:
        for start in range(0, len(rows), TEXTS_PER_CALL):
            parts.append(tokenized(rows, slice(start, start + TEXTS_PER_CALL), tokenizer, max_length))
            bar.advance(len(parts[-1][2]))
    ids, types, lengths = zip(*parts, strict=True)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    flat_types = None if types[0] is None else np.concatenate(types)
    return Encoded(np.concatenate(ids), offsets, flat_types, rows.targets, tokenizer.pad_token_id or 0)


def check_length(max_length: int, tokenizer: Any, *, pair: bool) -> None:
    """Refuses a length without room for text, or beyond what the tokenizer's model can take."""
    special = tokenizer.num_special_tokens_to_add(pair=pair)
    if not special < max_length <= tokenizer.model_max_length:
        rule = f"--max-length must be {special + 1} to {tokenizer.model_max_length} for this tokenizer"
        raise BadInput(f"{rule}, got {max_length}.")


def tokenized(
    rows: Rows, part: slice, tokenizer: Any, max_length: int
) -> tuple[NDArray[np.int32], NDArray[np.int8] | None, NDArray[np.int64]]:
    """Flat ids, flat token types and lengths of a part of the rows."""
    pairs = None if rows.pairs is None else rows.pairs[part]
    output = tokenizer(
        rows.texts[part], pairs, truncation=True, max_length=max_length, padding=False, return_attention_mask=False
    )
    lengths = np.array([len(ids) for ids in output["input_ids"]], dtype=np.int64)
    types = flat(output["token_type_ids"], np.int8) if "token_type_ids" in output else None
    return flat(output["input_ids"], np.int32), types, lengths


def flat(lists: Sequence[Sequence[int]], dtype: type) -> NDArray[Any]:
    return np.fromiter(chain.from_iterable(lists), dtype=dtype)


def median_length(encoded: Encoded) -> int:
    """The middle number of tokens per row, for timing a network at a typical length."""
    return int(np.median(encoded.lengths))


def batches(
    encoded: Encoded,
    *,
    batch_size: int,
    rng: np.random.Generator | None,
    pad_id: int | None = None,
    bucket: int = 50,
) -> Iterator[Batch]:
    """All rows once, rows of near-equal length together; the last batch of a window may be smaller.

    With `rng`: shuffled, sorted by length inside windows of `bucket` batches, then the batches shuffled.
    Without: in order of length, for evaluation. The order is drawn at once, so `rng` moves on even if nothing is read.
    """
    if batch_size < 1 or bucket < 1:
        raise BadInput(f"--batch-size and the bucket must be at least 1, got {batch_size} and {bucket}.")
    window = len(encoded) if rng is None else batch_size * bucket
    order = np.arange(len(encoded)) if rng is None else rng.permutation(len(encoded))
    parts = [
        rows
        for start in range(0, len(order), window)
        for rows in by_length(encoded, order[start:][:window], batch_size)
    ]
    turns = range(len(parts)) if rng is None else rng.permutation(len(parts))
    return (batch_of(encoded, parts[turn], pad_id) for turn in turns)


def by_length(encoded: Encoded, rows: NDArray[np.int64], batch_size: int) -> list[NDArray[np.int64]]:
    """Positions sorted by length and cut into batches."""
    rows = rows[np.argsort(encoded.lengths[rows], kind="stable")]
    return [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]


def evaluation_batches(encoded: Encoded, *, tokens: int, pad_id: int | None = None) -> list[Batch]:
    """All rows once in order of length, at most `tokens` tokens with padding per batch; a longer row is one alone."""
    if tokens < 1:
        raise BadInput(f"evaluation needs at least 1 token per batch, got {tokens}.")
    order = np.argsort(encoded.lengths, kind="stable")
    starts = [0]
    for position, length in enumerate(encoded.lengths[order]):
        if (position - starts[-1] + 1) * length > tokens and position > starts[-1]:
            starts.append(position)
    return [batch_of(encoded, rows, pad_id) for rows in np.split(order, starts[1:]) if len(rows)]


def batch_of(encoded: Encoded, rows: NDArray[np.int64], pad_id: int | None = None) -> Batch:
    """These rows, padded on the right to the longest of them."""
    starts, lengths = encoded.offsets[rows], encoded.lengths[rows]
    columns = np.arange(max(1, lengths.max()))
    mask = columns < lengths[:, None]  # rows x longest
    places = (starts[:, None] + columns)[mask]
    inputs = {
        "input_ids": padded(encoded.ids[places], mask, encoded.pad_id if pad_id is None else pad_id),
        "attention_mask": torch.from_numpy(mask.astype(np.int64)),
    }
    if encoded.types is not None:
        inputs["token_type_ids"] = padded(encoded.types[places], mask, 0)
    return Batch(inputs, torch.from_numpy(encoded.targets[rows]), rows)


def padded(values: NDArray[Any], mask: NDArray[np.bool_], filler: int) -> torch.Tensor:
    table = np.full(mask.shape, filler, dtype=np.int64)
    table[mask] = values
    return torch.from_numpy(table)
