"""Every kind of task: its record is whole, and what it names is there."""

import pytest

from archwright.exporting.kinds import KINDS as EXPORTED_KINDS
from archwright.networks.pruned import HEADS
from archwright.networks.stock_heads import STOCK_HEADS
from archwright.objectives.error import ERRORS
from archwright.statistics import METRICS
from archwright.tasks import TASK_KINDS


def test_networks_and_exports_know_the_same_kinds() -> None:
    assert list(TASK_KINDS) == list(STOCK_HEADS) == list(HEADS)
    assert set(TASK_KINDS) <= set(EXPORTED_KINDS)  # exports know objectives of pre-training, too


@pytest.mark.parametrize("name", TASK_KINDS)
def test_the_record_names_what_is_there(name: str) -> None:
    kind = TASK_KINDS[name]
    assert kind.metric in ERRORS and set(kind.metrics) <= set(METRICS)
    assert callable(kind.outputs.load()) and callable(kind.scores.load())
    assert kind.evaluation_tokens >= 1024
    assert TASK_KINDS.descriptions()[name]
