"""The marker `covering`: of a test with many combinations of parameters some are run by `make test`, all by `test-all`."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

import pytest


def covering_rows(rows: Sequence[Mapping[str, Hashable]]) -> list[int]:
    """Places of rows that hold every value of every column at least once: greedily, the first among equals."""
    missing = {cell for row in rows for cell in row.items()}
    chosen = []
    while missing:
        best = max(range(len(rows)), key=lambda place: len(missing & rows[place].items()))
        chosen.append(best)
        missing -= rows[best].items()
    return sorted(chosen)


def mark_combinations_slow(items: Sequence[pytest.Item]) -> None:
    """Of every test with the marker, all combinations but a covering selection become `slow`."""
    by_test: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("covering") and hasattr(item, "callspec"):
            if item.get_closest_marker("slow") is None:
                by_test[item.nodeid.split("[")[0]].append(item)
    for combinations in by_test.values():
        rows = [{name: repr(value) for name, value in item.callspec.params.items()} for item in combinations]
        chosen = set(covering_rows(rows))
        for place, item in enumerate(combinations):
            if place not in chosen:
                item.add_marker(pytest.mark.slow)
