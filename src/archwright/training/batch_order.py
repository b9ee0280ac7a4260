"""Which batches a step learns from, on every process and after every interruption the same."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from archwright.errors import BadInput
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup

Epochs = Callable[[int], Iterable[Any]]
"""The data of one epoch; where it is a sequence, batches that are not needed are not even made."""


def remaining(
    batches: Epochs, start: int, steps: int, *, accumulate: int = 1, group: ProcessGroup = SINGLE_PROCESS
) -> Iterator[tuple[int, list[Any]]]:
    """Step number and this process's batches from `start` on, epoch after epoch.

    Batches are dealt like cards: of the `processes` x `accumulate` batches of a step, process r has r, r + processes,
    and so on. A step may begin at the end of one epoch and end in the next, so all steps are of one size.
    """
    hand = accumulate * group.processes
    places = range(start * hand + group.rank, steps * hand, group.processes)
    cards = chosen(batches, places)
    for step in range(start, steps):
        yield step, list(islice(cards, accumulate))


def chosen(batches: Epochs, places: range) -> Iterator[Any]:
    """The batches at these places of all epochs in a row."""
    epoch, before = 0, 0
    while places:
        data = batches(epoch)
        size = yield from within(data, places, before)
        if size == 0:
            raise BadInput(f"epoch {epoch} of the training data has no batch; give more text or a smaller batch size.")
        before, epoch = before + size, epoch + 1
        places = places[len(range(places.start, min(before, places.stop), places.step)) :]


def within(data: Iterable[Any], places: range, before: int) -> Generator[Any, None, int]:
    """Those of one epoch, which begins at place `before`; returns how many batches the epoch has."""
    if isinstance(data, Sequence):
        yield from (
            data[place - before] for place in places[: len(range(places.start, before + len(data), places.step))]
        )
        return len(data)
    size = 0
    for size, batch in enumerate(data, 1):
        if before + size - 1 in places:
            yield batch
        if before + size - 1 >= places[-1]:
            break
    return size
