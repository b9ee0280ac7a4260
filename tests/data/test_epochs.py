"""Batches whose rows go on where others ended."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from archwright.data.encoding import Encoded
from archwright.data.epochs import stream_epochs
from archwright.training.distributed import ProcessGroup
from archwright.training.loop import remaining_batches

WIDTH = 3


def text_of(rows: int) -> Encoded:
    ids = np.arange(rows * WIDTH, dtype=np.int32)
    return Encoded(ids, np.arange(rows + 1, dtype=np.int64) * WIDTH, None, np.zeros((rows, WIDTH), np.int32))


@pytest.mark.parametrize("readers", [1, 2, 3])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_every_process_reads_on(readers: int, accumulate: int) -> None:
    batches, read = stream_epochs(text_of(50), 4, readers), []
    epoch = len(batches(0)) // readers  # batches of one reader
    for rank in range(readers):
        hands = remaining_batches(batches, 0, 12, accumulate=accumulate, group=ProcessGroup(readers, rank))
        mine: list[Any] = [batch.rows for _, hand in hands for batch in hand]
        for place, (one, following) in enumerate(pairwise(mine), 1):
            assert np.array_equal(following, mine[0] if place % epoch == 0 else one + 1)
        read += np.concatenate(mine[:epoch]).tolist()
    assert len(set(read)) == len(read) == 50 // (4 * readers) * 4 * readers
