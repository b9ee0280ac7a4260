"""One pass over the rows after another, each batch made when it is asked for."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from archwright.data.batching import Batch, batch_of, group_rows
from archwright.data.encoding import Encoded
from archwright.data.text.masking import BERT, MaskingRule, mask_tokens

Change = Callable[[Batch, np.random.Generator], Batch]
"""What is done to a batch on the way, with randomness of its own."""


class Epoch(Sequence[Batch]):
    """The batches of one pass; which one is asked for, and how often, does not matter for what it is."""

    def __init__(self, encoded: Encoded, parts: list[NDArray[np.int64]], change: Change | None, seed: tuple[int, ...]):
        self.encoded, self.parts, self.change, self.seed = encoded, parts, change, seed

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[each] for each in range(*position.indices(len(self)))]
        batch = batch_of(self.encoded, self.parts[position])
        if self.change is None:
            return batch
        return self.change(batch, np.random.default_rng((*self.seed, position % len(self))))


def shuffled_epochs(
    encoded: Encoded, batch_size: int, seed: tuple[int, ...], change: Change | None = None
) -> Callable[[int], Epoch]:
    """Epoch number to its batches: rows of near-equal length together, in another order each time."""

    def epoch(number: int) -> Epoch:
        parts = group_rows(encoded, batch_size=batch_size, rng=np.random.default_rng((*seed, number)))
        return Epoch(encoded, parts, change, (*seed, number, 1))

    return epoch


def stream_epochs(encoded: Encoded, batch_size: int, readers: int = 1) -> Callable[[int], Epoch]:
    """Epoch number to batches whose rows each go on where those of the reader's batch before ended; none comes twice.

    The text is cut into `readers` x `batch_size` parts that are read side by side; what does not fill all of them is
    left out. Readers take turns: the batches of reader r are those at r, r + readers and so on.
    """
    streams = readers * batch_size
    length = len(encoded) // streams
    starts = np.arange(streams, dtype=np.int64).reshape(readers, batch_size) * length
    parts = [own + step for step in range(length) for own in starts]
    return lambda number: Epoch(encoded, parts, None, ())


def masking(tokenizer: Any, rule: MaskingRule = BERT) -> Change:
    """What masks the tokens of a batch; its targets are then those that stood there."""
    mask_id, vocabulary, special = tokenizer.mask_token_id, len(tokenizer), set(tokenizer.all_special_ids)

    def mask(batch: Batch, rng: np.random.Generator) -> Batch:
        ids, attention = (batch.inputs[name].numpy() for name in ("input_ids", "attention_mask"))
        changed, labels = mask_tokens(
            ids, rng, mask_id=mask_id, vocabulary=vocabulary, special=special, attention=attention, rule=rule
        )
        return Batch({**batch.inputs, "input_ids": torch.from_numpy(changed)}, torch.from_numpy(labels), batch.rows)

    return mask
