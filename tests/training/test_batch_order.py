"""Which process learns from which batch, and what is not made at all after an interruption."""

from collections.abc import Iterator, Sequence

import pytest

from archwright.errors import BadInput
from archwright.training.distributed import ProcessGroup
from archwright.training.loop import remaining_batches

LETTERS = "abcde"


def letters(epoch: int) -> list[str]:
    return [f"{epoch}{letter}" for letter in LETTERS]


def one_by_one(epoch: int) -> Iterator[str]:
    yield from letters(epoch)


@pytest.mark.parametrize("batches", [letters, one_by_one])
@pytest.mark.parametrize(("processes", "accumulate"), [(1, 1), (2, 1), (1, 3), (2, 2), (3, 4)])
def test_batches_are_dealt_like_cards(batches: object, processes: int, accumulate: int) -> None:
    everything = [card for epoch in range(20) for card in letters(epoch)]
    hands = [
        dict(remaining_batches(batches, 0, 6, accumulate=accumulate, group=ProcessGroup(processes, rank)))
        for rank in range(processes)
    ]
    for step in range(6):
        size = processes * accumulate
        cards = everything[step * size : (step + 1) * size]
        assert [hand[step] for hand in hands] == [cards[rank::processes] for rank in range(processes)]
    for rank, hand in enumerate(hands):
        later = dict(remaining_batches(batches, 4, 6, accumulate=accumulate, group=ProcessGroup(processes, rank)))
        assert later == {step: hand[step] for step in (4, 5)}


class Lazy(Sequence):
    """Notes which of its items are made."""

    def __init__(self, made: list[int], first: int) -> None:
        self.made, self.first = made, first

    def __len__(self) -> int:
        return 5

    def __getitem__(self, place: int) -> int:
        self.made.append(self.first + place)
        return self.first + place


def test_a_sequence_makes_only_what_is_needed() -> None:
    made: list[int] = []
    found = list(remaining_batches(lambda epoch: Lazy(made, 5 * epoch), 4, 7, group=ProcessGroup(2, 1)))
    assert found == [(4, [9]), (5, [11]), (6, [13])] and made == [9, 11, 13]


def test_an_epoch_without_a_batch_is_refused() -> None:
    with pytest.raises(BadInput, match="no batch"):
        list(remaining_batches(lambda _: [], 0, 3))
