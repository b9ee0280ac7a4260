"""The marker `covering`: of the combinations of its parameters a test tries a few in `make test`, all in `test-all`."""

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
        marks = {mark.name for mark in item.iter_markers()}
        if isinstance(item, pytest.Function) and "covering" in marks and "slow" not in marks:
            by_test[item.nodeid.split("[")[0]].append(item)
    for combinations in by_test.values():
        rows = [{name: repr(value) for name, value in item.callspec.params.items()} for item in combinations]
        chosen = set(covering_rows(rows))
        for place, item in enumerate(combinations):
            if place not in chosen:
                item.add_marker(pytest.mark.slow)
