"""One pass over the rows after another, each batch made when it is asked for."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.data.batching import Batch, batch_of, group_rows
from archwright.data.encoding import Encoded
from archwright.data.text.masking import BERT, MaskingRule, masked

Change = Callable[[Batch, np.random.Generator], Batch]
"""What is done to a batch on the way, with randomness of its own."""


class Epoch(Sequence[Batch]):
    """The batches of one pass; which one is asked for, and how often, does not matter for what it is."""

    def __init__(self, encoded: Encoded, parts: list[NDArray[np.int64]], change: Change | None, seed: tuple[int, ...]):
        self.encoded, self.parts, self.change, self.seed = encoded, parts, change, seed

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        batch = batch_of(self.encoded, self.parts[place])
        if self.change is None:
            return batch
        return self.change(batch, np.random.default_rng((*self.seed, place % len(self))))


def shuffled_epochs(encoded: Encoded, batch_size: int, seed: tuple[int, ...], change: Change | None = None) -> Any:
    """Epoch number to its batches: rows of near-equal length together, in another order each time."""

    def epoch(number: int) -> Epoch:
        parts = group_rows(encoded, batch_size=batch_size, rng=np.random.default_rng((*seed, number)))
        return Epoch(encoded, parts, change, (*seed, number, 1))

    return epoch


def stream_epochs(encoded: Encoded, batch_size: int, readers: int = 1) -> Any:
    """Epoch number to batches whose rows each go on where those of the reader's batch before ended; none comes twice.

    The text is cut into `readers` x `batch_size` parts that are read side by side; what does not fill all of them is
    left out. Readers take turns: the batches of reader r are those at r, r + readers and so on.
    """
    streams = readers * batch_size
    length = len(encoded) // streams
    starts = np.arange(streams, dtype=np.int64).reshape(readers, batch_size) * length
    parts = [mine + step for step in range(length) for mine in starts]
    return lambda number: Epoch(encoded, parts, None, ())


def hiding(tokenizer: Any, vocabulary: int, fates: MaskingRule = BERT) -> Change:
    """Masks the tokens of a batch; its targets are then those that stood there."""
    return partial(
        hidden,
        mask_id=tokenizer.mask_token_id,
        vocabulary=vocabulary,
        special=set(tokenizer.all_special_ids),
        fates=fates,
    )


def hidden(
    batch: Batch, rng: np.random.Generator, *, mask_id: int, vocabulary: int, special: set[int], fates: MaskingRule
) -> Batch:
    ids, attention = batch.inputs["input_ids"], batch.inputs["attention_mask"]
    changed, labels = masked(ids, attention, rng, mask_id, vocabulary, special, fates=fates)
    return Batch({**batch.inputs, "input_ids": changed}, labels, batch.rows)
