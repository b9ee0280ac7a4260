"""The contract of every kind of task: its record is whole, and what it names is there."""

import pytest

from archwright.exporting.kinds import TaskExport, task_export
from archwright.networks.load import network_class
from archwright.networks.pruned import PrunedNetwork
from archwright.networks.stock_heads import StockHead, stock_head
from archwright.objectives.error import ERRORS
from archwright.statistics import METRICS
from archwright.tasks import TASK_KINDS


@pytest.mark.parametrize("name", TASK_KINDS)
def test_the_record_names_what_is_there(name: str) -> None:
    kind = TASK_KINDS[name]
    assert kind.metric in ERRORS and set(kind.metrics) <= set(METRICS)
    assert callable(kind.outputs.load()) and callable(kind.scores.load())
    assert kind.evaluation_tokens >= 1024
    assert TASK_KINDS.descriptions()[name]
    assert kind.load is None or callable(kind.load.load())


@pytest.mark.parametrize("name", TASK_KINDS)
def test_networks_and_exports_know_it(name: str) -> None:
    assert issubclass(network_class(name), PrunedNetwork)
    assert isinstance(stock_head(name), StockHead) and isinstance(task_export(name), TaskExport)
