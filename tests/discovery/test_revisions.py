"""What lies on disk is known by revisions of the code: a comment costs nothing, a raised revision makes it new."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archwright.benchmarks.nas_bert import load_nas_bert
from archwright.data.text.snippets import Snippets
from archwright.discovery import evolution_runs
from archwright.discovery.context import DiscoveryContext
from archwright.discovery.evolution import EvolutionSettings, evolve
from archwright.discovery.statistics import StatisticsRequest
from archwright.scoring.request import ScoreRequest
from archwright.spaces.formulas import FormulaSpace
from tests.discovery import toys


def request_of(table: Path) -> StatisticsRequest:
    benchmark = load_nas_bert(table)
    row = benchmark.rows[0]
    tokens = np.zeros((2, 4), dtype=np.int64)
    at = ScoreRequest(benchmark.space, row.config, (0, 0), Snippets(tokens, tokens, 100), "mlm", "own", {})
    return StatisticsRequest(at, ("A", "W"), ((), ("exp",)))


def search_name() -> str:
    space = FormulaSpace(1, toys.INPUTS)

    class Setup:
        seed = 0

    setup: Any = Setup()
    rows: Any = None
    folder = Path("nowhere")
    context = DiscoveryContext(rows, setup, space, toys.toy_rows(), [], toys.toy_table(space), {}, folder, toys.POOL)
    return evolution_runs.search_key(context, EvolutionSettings(), evolve, -1, 0)


@pytest.mark.parametrize("name", ["archwright.discovery.statistics.STATISTICS_REVISION", "archwright.probe.REVISION"])
def test_statistics_are_taken_again_only_after_a_new_revision(
    table: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of(table)
    before = request.key
    with monkeypatch.context() as patch:  # the text of the code does not count
        patch.setattr(Path, "read_bytes", lambda self: pytest.fail(f"{self} was read"))
        assert request.key == before
    monkeypatch.setattr(name, 99)
    assert request.key != before


@pytest.mark.parametrize("name", ["EVOLUTION_REVISION", "FORMULAS_REVISION"])
def test_searches_are_done_again_only_after_a_new_revision(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = search_name()
    with monkeypatch.context() as patch:  # the text of the code does not count
        patch.setattr(Path, "read_bytes", lambda self: pytest.fail(f"{self} was read"))
        assert search_name() == before
    monkeypatch.setattr(evolution_runs, name, 99)
    assert search_name() != before
