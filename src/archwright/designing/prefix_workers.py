"""Designs scored from layer to layer, those that begin alike by the same process, which remembers what they share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from archwright.designing.prefix_cache import PrefixScoring
from archwright.parallel.pool import WorkerPool, worker_pool


@dataclass(frozen=True)
class PrefixPool:
    """A pool that scores requests with the cache of the process they are sent to."""

    pool: WorkerPool

    def map_unordered(self, tasks: Sequence[Any], *, keys: Sequence[Any] | None = None) -> Iterator[tuple[int, Any]]:
        """Sorted by the choices of their designs, the first layer first."""
        choices = [tuple(map(str, request.config.values())) for request in tasks]
        return self.pool.map_unordered([PrefixScoring(request) for request in tasks], keys=choices)


@contextmanager
def prefix_pool(workers: int) -> Iterator[WorkerPool]:
    """So many processes with one thread each (0: one per core); one alone is this process."""
    with worker_pool(workers, None) as pool:
        yield PrefixPool(pool)
