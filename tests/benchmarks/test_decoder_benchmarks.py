"""hw-gpt-bench and width-depth-heads: exact sizes of every row, cells, warm-ups, and broken files told apart."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from archwright.benchmarks import BENCHMARKS, BenchmarkTable
from archwright.errors import BadInput
from archwright.networks.rotary_decoder import RotaryDecoderForCausalLM


@pytest.fixture(scope="module")
def grid(data_folder: Path) -> BenchmarkTable:
    return BENCHMARKS["width-depth-heads"].load(data_folder / "width-depth-heads")


@pytest.fixture(scope="module", params=["s", "m"])
def hw_gpt(request: pytest.FixtureRequest, data_folder: Path) -> BenchmarkTable:
    return BENCHMARKS["hw-gpt-bench"].load(data_folder / "hw-gpt-bench", request.param)


def test_every_network_of_the_grid_has_the_published_size(grid: BenchmarkTable) -> None:
    """Tokens of a run are 20 per parameter, so that every key of the file says how many there are."""
    assert len(grid.rows) >= 78 and grid.missing == ()
    for row in grid.rows:
        assert grid.space.counts(row.config).parameters == row.published["parameters"], row.id


def test_the_golden_counts_of_the_grid(grid: BenchmarkTable) -> None:
    counts = grid.space.counts({"width": 1024, "depth": 24, "heads": 16})
    assert (counts.parameters, counts.nonembedding) == (411_616_256, 308_331_520)


def test_the_best_warm_up_is_the_score(grid: BenchmarkTable) -> None:
    for row in grid.rows:
        assert row.trained["loss"] == max(row.runs.values())
    assert Counter(len(row.runs) for row in grid.rows)[1] < len(grid.rows) / 2
    assert all(row.cell == f"{row.config['width']}x{row.config['depth']}" for row in grid.rows)


def meta_size(table: BenchmarkTable, config: dict[str, object]) -> int:
    with torch.device("meta"):
        network = RotaryDecoderForCausalLM(table.space.plan(config))  # type: ignore[arg-type]
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("place", [0, 40, 77])
def test_counts_of_the_grid_are_those_of_built_networks(grid: BenchmarkTable, place: int) -> None:
    config = grid.rows[place].config
    assert meta_size(grid, config) == grid.space.counts(config).parameters


def test_counts_of_hw_gpt_bench_are_those_of_built_networks(hw_gpt: BenchmarkTable) -> None:
    for row in (*hw_gpt.rows[:3], next(row for row in hw_gpt.rows if row.config["bias"])):
        assert meta_size(hw_gpt, row.config) == hw_gpt.space.counts(row.config).parameters
        assert hw_gpt.space.plan_counts(hw_gpt.space.plan(row.config)) == hw_gpt.space.counts(row.config)


def test_hw_gpt_bench_by_hand(hw_gpt: BenchmarkTable) -> None:
    """Attention 4 x embed x 64 x heads, FFN 2 x ratio x embed^2, norms with gain and bias, tied embeddings."""
    row = hw_gpt.rows[0]
    config, counts = row.config, hw_gpt.space.counts(row.config)
    embed, places = config["embed"], range(config["layers"])
    mixed = [64 * config[f"heads{place}"] for place in places]
    inner = [embed * config[f"ratio{place}"] for place in places]
    linears = sum(4 * embed * m + 2 * embed * i for m, i in zip(mixed, inner, strict=True))
    biases = sum(3 * m + i + 2 * embed for m, i in zip(mixed, inner, strict=True)) if config["bias"] else 0
    assert counts.nonembedding == linears + biases + (2 * len(places) + 1) * 2 * embed
    assert counts.parameters - counts.nonembedding == 50_254 * embed
    assert sum(layer.total for layer in counts.layers) == linears


def test_hw_gpt_bench_says_that_its_weights_are_shared(hw_gpt: BenchmarkTable) -> None:
    assert hw_gpt.caution.startswith("shared weights")
    assert len({row.cell for row in hw_gpt.rows}) == 9


GOLDEN = {"s": (0.9924, 0.888), "m": (0.9717, 0.747)}
"""Spearman of non-embedding parameters with perplexity, overall and inside cells, on the rows of the test data."""


def test_how_well_size_alone_ranks_hw_gpt_bench(hw_gpt: BenchmarkTable) -> None:
    sizes = np.array([hw_gpt.space.counts(row.config).nonembedding for row in hw_gpt.rows])
    truth = np.array([row.trained["perplexity"] for row in hw_gpt.rows])
    cells = np.array([row.cell for row in hw_gpt.rows])
    inside = [(float(spearmanr(sizes[cells == c], truth[cells == c])[0]), (cells == c).sum()) for c in set(cells)]
    values, rows = zip(*inside, strict=True)
    found = float(spearmanr(sizes, truth)[0]), float(np.average(values, weights=rows))
    if len(hw_gpt.rows) in (5000, 2600):
        assert found == pytest.approx(GOLDEN[hw_gpt.variant], abs=0.001)


LINE = {"embed": 192, "layers": 10, "heads": [4] * 10, "mlp_ratio": [2] * 10, "bias": True}
RESULT = {"perplexity": 30.0, "accuracy": 0.4}
FAULTS = {
    "no JSON": ("{", "must be a JSON object"),
    "a number": ("3", "not subscriptable"),
    "key gone": (json.dumps(LINE | {"accuracy": 0.4}), "has no perplexity"),
    "too few layers": (json.dumps(LINE | RESULT | {"layers": 11}), "one entry for each of 11 layers"),
    "outside": (json.dumps(LINE | RESULT | {"embed": 200}), "embed must be one of 192, 384, 768, got 200"),
    "not a number": (json.dumps(LINE | RESULT | {"perplexity": -1}), "must be a positive number, got -1"),
}


@pytest.mark.parametrize(("line", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_broken_line_costs_that_row_alone(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "gpt_s.jsonl").write_text(json.dumps(LINE | RESULT) + "\n" + line + "\n")
    found = BENCHMARKS["hw-gpt-bench"].load(tmp_path)
    assert len(found.rows) == 1 and reason in found.missing[0].reason and "\n" not in found.missing[0].reason
    (tmp_path / "gpt_s.jsonl").write_text(line)
    with pytest.raises(BadInput, match="has no usable architecture"):
        BENCHMARKS["hw-gpt-bench"].load(tmp_path)


def test_broken_runs_of_the_grid_are_left_out(tmp_path: Path) -> None:
    good = "d=96_l=4_h=4-64-0.003-0.033-64-{}-{}-3e-05"
    runs = {good.format(200, 100): 3.0, good.format(200, 400): 2.5, "another": 1.0, good.format(300, 200): 1.0}
    (tmp_path / "grid.json").write_text(json.dumps(runs | {good.format(200, 800): None}))
    found = BENCHMARKS["width-depth-heads"].load(tmp_path)
    assert [(row.id, row.trained["loss"]) for row in found.rows] == [("d=96_l=4_h=4", -2.5)]
    assert [len(row.runs) for row in found.rows] == [2] and len(found.missing) == 3
    (tmp_path / "grid.json").write_text("[]")
    with pytest.raises(BadInput, match="must map runs to losses, got list"):
        BENCHMARKS["width-depth-heads"].load(tmp_path)
