"""The marker `covering`: of the combinations of its parameters a test tries a few in `make test`, all in `test-all`."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

import pytest

LATER = ("xlm-roberta", "camembert", "mpnet", "modernbert", "deberta-v2", "phi3", "gemma2", "gemma3_text")
"""Families of which `make test` tries the CORE only: the mechanism is that of the others, which it tries in full."""
CORE = {
    "test_every_way_to_run_a_subnetwork_agrees_with_the_hand_written_one",
    "test_every_kind_of_task_agrees_with_the_hand_written_one",
    "test_the_record_names_what_is_there",
    "test_saving_and_loading_changes_nothing",
    "test_a_fine_tuned_checkpoint_gives_the_stock_answers",
    "test_reordering_changes_no_answer",
    "test_counts_are_those_of_the_extracted_network",
    "test_kept_tokens_mean_what_they_meant",
    "test_corners",
    "test_corners_in_double_precision",
}


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


def mark_later_families_slow(items: Sequence[pytest.Item]) -> None:
    """Every test of a later family that is not of the core becomes `slow`."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and item.originalname not in CORE:
            values = item.callspec.params.values()
            names = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
            if any(isinstance(name, str) and name.startswith(LATER) for name in names):
                item.add_marker(pytest.mark.slow)
