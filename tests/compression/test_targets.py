"""compress --for FORMAT: the search stays where the export is exact, and latency is that of its runtime."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archwright.cli.main import main
from archwright.compression.budgets.targets import TARGETS, target_space
from archwright.compression.pipeline import resolve_space
from archwright.configs.compress import CompressConfig
from archwright.configs.options import make_config
from archwright.errors import BadInput
from archwright.exporting.hf import check_expressible
from archwright.networks.load import load_supernet
from archwright.objectives.latency import measure_latency
from archwright.objectives.table import LatencyTable, timed_specs
from archwright.search import sample
from archwright.spaces.subnetwork import subnet_space
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.spec import sizes
from tests.compression.runs import compressed, refusal, words_of


@pytest.fixture(scope="module")
def network(bert: Path) -> Any:
    return load_supernet(str(bert), labels=("bad", "good"))


def test_every_network_of_the_stock_space_can_be_said_by_a_stock_config(network: Any) -> None:
    space = subnet_space("stock", read_anatomy(network.config), (2, 0, 1))
    for seed in range(12):
        spec = space.build(sample(space.choices, np.random.default_rng(seed)))
        check_expressible(extract(network, spec))
    assert sizes(space.build({"layers": 2, "units": 5})) == [(4, 5), (0, 0), (4, 5)]


def config_for(**options: Any) -> CompressConfig:
    return resolve_space(make_config(CompressConfig, options))


def test_the_search_stays_where_the_export_is_exact() -> None:
    assert config_for().supernet.space == config_for(for_="onnx").supernet.space == "chain"
    assert config_for(for_="hf").supernet.space == config_for(for_="hf", method="standard").supernet.space == "stock"
    assert config_for(for_="hf", method="layer-dropping").supernet.space == "layer"
    assert config_for(for_="hf", preset="paper").supernet.space == "stock"
    assert config_for(for_="onnx-int8").search.objectives == ("validation_error", "int8_bytes")
    own = ("validation_error", "latency_ms")
    assert config_for(for_="onnx-int8", objectives=own).search.objectives == own
    assert target_space("onnx", None, ("chain",), "weight-sharing") is None
    with pytest.raises(BadInput, match="--for hf needs --space stock or layer, got chain"):
        config_for(for_="hf", space="chain")
    with pytest.raises(BadInput, match=r"--for hf needs a method .* got --method magnitude"):
        config_for(for_="hf", method="magnitude")


REFUSED = {
    "a format nobody knows": (["--for", "tflite"], "--for must be one of compact, hf, onnx, onnx-int8"),
    "a rank": (["--for", "hf", "--embedding-rank", "8"], "--embedding-rank makes a network that stock classes"),
    "a width": (["--for", "hf", "--width", "50%"], "--width makes a network that stock classes cannot say"),
}


@pytest.mark.parametrize(("words", "rule"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_the_export(
    words: list[str], rule: str, given: dict[str, Any], tmp_path: Path, capfd: Any
) -> None:
    code, line = refusal(capfd, [*words_of("compress", **given, out=tmp_path / "run"), *words])
    assert code == 2 and rule in line and not (tmp_path / "run").exists()


def test_another_runtime_is_timed_through_its_own_calls(network: Any) -> None:
    whole, calls = read_anatomy(network.config).full, []

    def prepare(ready: Any, inputs: Any) -> Callable[[], Any]:
        assert inputs["input_ids"].shape == (1, 7)
        return lambda: calls.append(sum(tensor.numel() for tensor in ready.parameters()))

    small = subnet_space("stock", read_anatomy(network.config)).build({"layers": 1, "units": 3})
    timings = measure_latency(network, {"a": whole, "b": small}, batch=1, length=7, rounds=3, prepare=prepare)
    assert set(timings.by_name) == {"a", "b"} and len(set(calls)) == 2


def test_a_table_of_shallow_networks_predicts_deep_ones(network: Any) -> None:
    full = read_anatomy(network.config).full_layers
    specs = list(timed_specs(full[:1], (0, 0, 0), 2))
    assert sizes(specs[0]) == [(4, 64)] * 3
    assert max(sum(any(pair) for pair in sizes(spec)) for spec in specs[1:]) == 2

    def timer(model: Any, specs: Any, **how: Any) -> Any:
        """Milliseconds that are exactly 1 + 2 per head + 0.1 per unit."""
        from archwright.objectives.latency import Timing, Timings

        times = {n: 1 + sum(2 * heads + 0.1 * units for heads, units in sizes(spec)) for n, spec in specs.items()}
        return Timings({name: Timing(time, time, time) for name, time in times.items()}, {}, None, 1)

    table = LatencyTable.measure(network, batch=1, length=7, timer=timer, depth=1)
    assert table.predict(read_anatomy(network.config).full) == pytest.approx(1 + 3 * (8 + 6.4), rel=1e-6)


def test_a_run_for_stock_classes(given: dict[str, Any], tmp_path: Path, capfd: Any) -> None:
    run = compressed(tmp_path / "run", **given, for_="hf", trials=5)
    assert run.result["for"] == "hf" and run.result["space"] == "stock"
    assert run.result["export_options"] == "--to hf" and run.result["latency"]["runtime"] == "torch"
    smallest = run.front[0]
    file = tmp_path / "parity.json"
    assert main(words_of("export", run.folder.path, trial=smallest["trial"], to="hf", json=file, quiet=True)) == 0
    assert json.loads(file.read_text())["format"] == "hf"
    capfd.readouterr()
    assert main(words_of("select", run.folder.path, max_loss="100%")) == 0
    assert f"--trial {smallest['trial']} --to hf" in capfd.readouterr().out


@pytest.mark.slow
def test_a_run_for_int8_in_onnxruntime(given: dict[str, Any], tmp_path: Path, capfd: Any) -> None:
    options = {**given, "for_": "onnx-int8", "objectives": ("validation_error", "int8_bytes", "latency_ms")}
    run = compressed(tmp_path / "run", **options, trials=5)
    latency = run.result["latency"]
    assert latency["runtime"] == "onnxruntime int8" and len(latency["predicted_vs_measured"]) == len(run.front)
    for entry in run.front:
        assert entry["int8_file_bytes"] > entry["int8_bytes"] and 0 <= entry["int8_test_error"] <= 1
    run.show(__import__("rich.console").console.Console())
    assert "--to onnx --int8" in capfd.readouterr().out


def test_targets_name_formats_that_exist() -> None:
    from archwright.exporting.formats import find_format

    for target in TARGETS.values():
        words = target.options.split()
        assert words[0] == "--to"
        find_format(words[1], int8="--int8" in words)
    assert replace(TARGETS["hf"], stock=False).spaces == ("stock", "layer")
