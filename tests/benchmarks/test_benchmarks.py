"""The contract of every benchmark: its record, and the rows of its public files."""

import math
from pathlib import Path

import pytest

from archwright.benchmarks import BENCHMARKS, Benchmark
from archwright.errors import BadInput
from archwright.proxies import PROXIES


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_record_is_whole(name: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS[name]
    assert isinstance(benchmark, Benchmark) and benchmark.name == name
    assert benchmark.origin.startswith("https://") and benchmark.licence and BENCHMARKS.descriptions()[name]
    assert all(metric.proxy in PROXIES for metric in benchmark.metrics)
    for folder, variant in ((tmp_path / "nowhere", None), (tmp_path, "no such variant")):
        with pytest.raises(BadInput) as refusal:
            benchmark.load(folder, variant)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_its_rows_are_designs_of_its_space_with_results(name: str, data_folder: Path) -> None:
    table = BENCHMARKS[name].load(BENCHMARKS[name].shipped or data_folder / BENCHMARKS[name].folder)
    assert table.name == name and table.variant == BENCHMARKS[name].variants[0] and table.target in table.targets
    assert len({row.id for row in table.rows}) == len(table.rows) > 20
    assert all(math.isfinite(row.trained[table.target]) and row.cell for row in table.rows)
    for row in table.rows[:20]:
        table.space.check(row.config)
        assert set(row.trained) <= set(table.targets)
