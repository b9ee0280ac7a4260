"""The contract of every kind of task: its record is whole, and what it names is there."""

import ast
from pathlib import Path

import pytest

import archwright
from archwright.exporting.kinds import WITHOUT_TASK, TaskExport, task_export
from archwright.networks.load import network_class
from archwright.networks.pruned import PrunedNetwork
from archwright.networks.stock_heads import StockHead, stock_head
from archwright.statistics import ANSWER_METRICS, METRICS, RATIOS, VECTOR_METRICS
from archwright.tasks import TASK_KINDS


@pytest.mark.parametrize("name", TASK_KINDS)
def test_the_record_names_what_is_there(name: str) -> None:
    kind = TASK_KINDS[name]
    assert kind.metric in {*METRICS, *ANSWER_METRICS, *RATIOS, *VECTOR_METRICS, "perplexity"}
    assert set(kind.metrics) <= set(METRICS)
    assert all(callable(named.load()) for named in (kind.outputs, kind.scores, kind.export_batches))
    assert kind.evaluation_tokens >= 1024
    assert set(kind.judged_by) <= {*METRICS, *RATIOS}
    assert set(kind.aliases.values()) <= {kind.metric, *kind.judged_by}
    assert TASK_KINDS.descriptions()[name]
    assert all(named is None or callable(named.load()) for named in (kind.load, kind.teach))
    assert kind.recognise is None or (callable(kind.recognise.load()) and kind.load is not None)


@pytest.mark.parametrize("name", TASK_KINDS)
def test_networks_and_exports_know_it(name: str) -> None:
    network, head, export = network_class(name), stock_head(name), task_export(name)
    assert issubclass(network, PrunedNetwork) and network.__name__.endswith(head.endings)
    assert isinstance(head, StockHead) and head.auto.__name__.endswith(head.endings)
    assert isinstance(export, TaskExport) and ("choices" in export.axes) == TASK_KINDS[name].several_texts


def test_what_encoders_are_pre_trained_for_is_no_kind_of_task() -> None:
    assert not set(WITHOUT_TASK) & set(TASK_KINDS)
    assert all(task_export(name) is record for name, record in WITHOUT_TASK.items())


def test_nobody_else_keeps_a_table_by_kind() -> None:
    """A dict with the names of several kinds as keys would have to be kept in step by hand."""
    root, tables = Path(archwright.__file__).parent, []
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            keys = node.keys if isinstance(node, ast.Dict) else []
            names = {key.value for key in keys if isinstance(key, ast.Constant)}
            if len(names & set(TASK_KINDS)) > 1:
                tables.append(path.relative_to(root).as_posix())
    assert tables == ["tasks/__init__.py"]
