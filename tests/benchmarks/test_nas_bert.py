"""The nas-bert benchmark: golden numbers on the public rows, and files with something wrong in them."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.stats import spearmanr
from transformers.initialization import no_init_weights

from archwright.benchmarks import BENCHMARKS, BenchmarkTable, Row
from archwright.benchmarks.nas_bert import (
    ABLATIONS,
    METRICS,
    TABLE,
    TARGETS,
    load_nas_bert,
    read_ablation,
    twin_reliabilities,
    with_robust_target,
)
from archwright.errors import BadInput
from archwright.networks.flexibert.network import FlexiBertModel
from archwright.networks.roles import Roles

Entries = list[dict[str, Any]]


@pytest.fixture(scope="module")
def folder(data_folder: Path) -> Path:
    return data_folder / "nas-bert"


@pytest.fixture(scope="module")
def trained(folder: Path) -> BenchmarkTable:
    return load_nas_bert(folder, "trained")


def glue(benchmark: BenchmarkTable) -> list[float]:
    return [row.trained["glue"] for row in benchmark.rows]


def test_the_rows(trained: BenchmarkTable) -> None:
    assert len(trained.rows) == len({row.id for row in trained.rows}) == 300
    assert trained.missing == ()
    assert (trained.licence, trained.target, len(trained.targets)) == ("CC-BY-4.0", "glue", 10)
    assert Counter(row.cell for row in trained.rows) == {"4x256": 85, "2x128": 80, "2x256": 70, "4x128": 65}


def test_failed_runs_are_named(trained: BenchmarkTable) -> None:
    failed = {task: {row.id for row in trained.rows if task in row.failed} for task in trained.targets}
    assert {task: len(ids) for task, ids in failed.items() if ids} == {"qnli": 5, "rte": 1, "sts": 7}
    assert failed["rte"] == {row.id for row in trained.rows if row.trained["rte"] == 0}


def test_the_robust_target_weighs_tasks_by_twins_alone(trained: BenchmarkTable) -> None:
    weights = twin_reliabilities(
        {task: [row.trained[task] for row in trained.rows] for task in trained.targets[1:-1]}, list(trained.rows)
    )
    assert weights is not None and min(weights, key=weights.__getitem__) == "rte" and weights["rte"] < 0.2
    assert trained.derived == ("robust",) and trained.targets[-1] == "robust"
    robust = np.array([row.trained["robust"] for row in trained.rows])
    ranks = {task: stats.rankdata([row.trained[task] for row in trained.rows]) / 300 for task in weights}
    by_hand = sum(weights[task] * ranks[task] for task in weights) / sum(weights.values())
    np.testing.assert_allclose(robust, by_hand)


def test_without_twins_there_is_no_robust_target(trained: BenchmarkTable) -> None:
    alone = list({row.network: row for row in trained.rows}.values())
    bare = [replace(row, trained={n: v for n, v in row.trained.items() if n != "robust"}) for row in alone]
    assert "robust" not in with_robust_target(bare)[0].trained


def test_glue_is_the_mean_of_the_tasks_and_stands_in_the_published_file_too(trained: BenchmarkTable) -> None:
    for row in trained.rows:
        assert row.trained["glue"] == pytest.approx(sum(row.trained[name] for name in TARGETS[1:]) / 8, abs=0.01)
        assert row.trained["glue"] == pytest.approx(row.published["GLUE Score"], abs=0.01)


def test_parameters_are_the_published_ones_in_every_row(folder: Path) -> None:
    benchmark = load_nas_bert(folder, "published")
    ours = {row.id: benchmark.space.counts(row.config).parameters for row in benchmark.rows}
    assert ours == {row.id: int(row.published["Number of Parameters"]) for row in benchmark.rows}


def test_depth_and_width_nearly_solve_it(trained: BenchmarkTable) -> None:
    depth = [row.config["layers"] for row in trained.rows]
    depth_width = [1000 * row.config["layers"] + row.config["hidden"] for row in trained.rows]
    assert spearmanr(depth, glue(trained)).statistic == pytest.approx(0.839, abs=5e-4)
    assert spearmanr(depth_width, glue(trained)).statistic == pytest.approx(0.931, abs=5e-4)


@pytest.mark.parametrize(("variant", "networks"), [("trained", 199), ("described", 297), ("published", 283)])
def test_how_many_different_networks_the_rows_are(folder: Path, variant: str, networks: int) -> None:
    benchmark = load_nas_bert(folder, variant)
    assert len({tuple(benchmark.space.canonical(row.config).items()) for row in benchmark.rows}) == networks


def operations(row: Row) -> list[str]:
    return [row.config[f"operation.{place}"] for place in range(row.config["layers"])]


def roles(benchmark: BenchmarkTable, row: Row) -> Roles:
    with torch.device("meta"), no_init_weights():
        return FlexiBertModel(benchmark.space.plan(row.config)).roles()  # type: ignore[attr-defined]


@pytest.mark.parametrize("variant", ["described", "published"])
def test_rows_without_self_attention_and_without_any_softmax_or_query(folder: Path, variant: str) -> None:
    benchmark = load_nas_bert(folder, variant)
    layers = [roles(benchmark, row).layers for row in benchmark.rows]
    silent = [all(layer.probabilities is None for layer in found) for found in layers]
    assert sum(not any(name.startswith("SA") for name in operations(row)) for row in benchmark.rows) == 91
    assert sum(silent) == 27
    assert silent == [all(name.startswith("LT") for name in operations(row)) for row in benchmark.rows]


@pytest.mark.parametrize(
    ("column", "role"),
    [("Synaptic Diversity", "attention"), ("Synaptic Saliency", "ffn"), ("Head Confidence", "projections")],
)
def test_as_many_modules_have_a_role_as_the_published_metrics_were_divided_by(
    folder: Path, column: str, role: str
) -> None:
    benchmark = load_nas_bert(folder, "published")
    for row in benchmark.rows:
        divisor = row.published[column] / row.published[f"{column} Normalized"]
        assert sum(len(getattr(layer, role)) for layer in roles(benchmark, row).layers) == pytest.approx(divisor)


def test_the_list_of_benchmarks_leads_here(folder: Path) -> None:
    source = BENCHMARKS["nas-bert"]
    assert [source.load(folder, variant).variant for variant in source.variants] == list(source.variants)


@pytest.mark.parametrize(("name", "rows"), [("initialization", 100), ("batch", 100), ("train", 210)])
def test_ablations(folder: Path, name: str, rows: int) -> None:
    found = read_ablation(folder, name)
    assert len(found) == rows
    assert len({row.get("ID", row.get("id")) for row in found}) == 10


def altered(folder: Path, target: Path, change: Callable[[Entries], object]) -> Path:
    entries = json.loads((folder / TABLE).read_text())[:5]
    changed = change(entries)
    (target / TABLE).write_text(json.dumps(entries if changed is None else changed))
    return target


def layer(entry: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = entry["hparams"]["model_hparam_overrides"]["nas_config"]["encoder_layers"][0]
    return found


ONE_BAD: dict[str, tuple[Callable[[Entries], object], str]] = {
    "no scores": (lambda entries: entries[2].pop("scores") and None, "'scores'"),
    "a task is missing": (lambda entries: entries[2]["scores"].pop("rte") and None, "'rte'"),
    "a score is NaN": (lambda entries: entries[2]["scores"].update(glue=float("nan")), "glue"),
    "a score is a word": (lambda entries: entries[2]["scores"].update(cola="good"), "cola"),
    "a score is null": (lambda entries: entries[2]["scores"].update(cola=None), "cola"),
    "an unknown operator": (lambda entries: layer(entries[2]).update(operation_parameter="XXX"), "operation.0"),
    "no heads": (lambda entries: layer(entries[2]).pop("num_operation_heads") and None, "num_operation_heads"),
    "layers are no list": (
        lambda entries: entries[2]["hparams"]["model_hparam_overrides"]["nas_config"].update(encoder_layers=7),
        "laid out",
    ),
    "three layers": (
        lambda entries: entries[2]["hparams"]["model_hparam_overrides"]["nas_config"].update(
            encoder_layers=[layer(entries[2])] * 3
        ),
        "layers must be one of",
    ),
    "nine layers": (
        lambda entries: entries[2]["hparams"]["model_hparam_overrides"]["nas_config"].update(
            encoder_layers=[layer(entries[2])] * 9
        ),
        "no",
    ),
    "a null": (lambda entries: entries.__setitem__(2, None), "laid out"),  # type: ignore[call-overload]
    "a number": (lambda entries: entries.__setitem__(2, 7), "laid out"),  # type: ignore[call-overload]
    "no id": (lambda entries: entries[2].pop("id") and None, "'id'"),
    "an id that is a list": (lambda entries: entries[2].update(id=[1]), "id"),
}


@pytest.mark.parametrize(("change", "named"), ONE_BAD.values(), ids=ONE_BAD)
def test_a_bad_entry_is_missing_and_the_others_are_there(
    folder: Path, tmp_path: Path, change: Callable[[Entries], object], named: str
) -> None:
    benchmark = load_nas_bert(altered(folder, tmp_path, change))
    assert len(benchmark.rows) == 4
    (missing,) = benchmark.missing
    assert named in missing.reason
    assert "\n" not in missing.reason


ALL_BAD: dict[str, tuple[Callable[[Entries], object], str]] = {
    "not a list": (lambda entries: {"rows": entries}, "list of architectures"),
    "empty": (lambda entries: [], "no usable architecture"),
    "nothing usable": (lambda entries: [1, 2, 3], "entry 0"),
    "an id twice": (lambda entries: entries + entries[:1], "2 times"),
}


@pytest.mark.parametrize(("change", "named"), ALL_BAD.values(), ids=ALL_BAD)
def test_a_bad_file_is_refused_in_one_line(
    folder: Path, tmp_path: Path, change: Callable[[Entries], object], named: str
) -> None:
    with pytest.raises(BadInput) as error:
        load_nas_bert(altered(folder, tmp_path, change))
    assert named in str(error.value)
    assert TABLE in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", [b"", b"[{", b"\xff\xfe\x00", b"[" * 100_000])
def test_no_json(tmp_path: Path, text: bytes) -> None:
    (tmp_path / TABLE).write_bytes(text)
    with pytest.raises(BadInput, match=TABLE):
        load_nas_bert(tmp_path)


def test_no_folder_and_an_empty_one(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(BadInput, match="https://github"):
            load_nas_bert(place)


def test_published_metrics_may_be_missing_or_have_their_original_name(folder: Path, tmp_path: Path) -> None:
    place = altered(folder, tmp_path, lambda entries: None)
    assert all(row.published == {} for row in load_nas_bert(place).rows)
    shutil.copyfile(folder / METRICS[0], place / METRICS[1])
    assert all(row.published["Number of Parameters"] > 0 for row in load_nas_bert(place).rows)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("A,B\n1,2\n", "column ID"),
        ("ID,A\n1,2\n1,3\n", "id 1 twice"),
        ("ID,A\n1,2,3\n", "line 2"),
        ("ID,A\n1\n", "line 2"),
    ],
)
def test_damaged_metrics_are_refused(folder: Path, tmp_path: Path, text: str, named: str) -> None:
    place = altered(folder, tmp_path, lambda entries: None)
    (place / METRICS[0]).write_text(text)
    with pytest.raises(BadInput, match=named):
        load_nas_bert(place)


def test_unknown_ablations_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=", ".join(ABLATIONS)):
        read_ablation(tmp_path, "seeds")
    with pytest.raises(BadInput, match=ABLATIONS["batch"]):
        read_ablation(tmp_path, "batch")
