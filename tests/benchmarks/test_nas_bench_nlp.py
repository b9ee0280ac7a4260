"""The benchmark nas-bench-nlp: golden numbers on the public files, and what happens with damaged ones."""

import json
import shutil
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import kendalltau

from archwright.benchmarks import BENCHMARKS, BenchmarkTable
from archwright.benchmarks.nas_bench_nlp import load_nas_bench_nlp, read_ablation
from archwright.errors import BadInput

LAYER_1 = "Layer 1 Hidden Covariance"
PLAIN = {
    "node_0": {"op": "linear", "input": ["x", "h_prev_0"]},
    "h_new_0": {"op": "activation_tanh", "input": ["node_0"]},
}
LOG = {
    "recepie_id": 7,
    "recepie": json.dumps(PLAIN),
    "test_losses": [6.0, 5.0],
    "num_params": 14786478,
    "experiment_id": 1,
}
HEADER = "\ufefflog name,loss,perplexity,Hidden Synflow Saliency, Layer 1 Hidden Covariance\r\n"


@pytest.fixture(scope="module")
def folder(data_folder: Path) -> Path:
    return data_folder / "nas-bench-nlp"


@pytest.fixture(scope="module")
def benchmark(folder: Path) -> BenchmarkTable:
    return BENCHMARKS["nas-bench-nlp"].load(folder, "trained")


def logs_of(folder: Path) -> list[dict[str, Any]]:
    with zipfile.ZipFile(folder / "train_logs_wikitext-2" / "logs.zip") as archive:
        return [json.loads(archive.read(name)) for name in archive.namelist()]


def test_every_log_is_a_row_or_missing(benchmark: BenchmarkTable) -> None:
    assert len(benchmark.rows) + len(benchmark.missing) == 200
    assert [missing.reason for missing in benchmark.missing] == ["the test loss of the last epoch is nan"] * 2
    assert len({row.id for row in benchmark.rows}) == len(benchmark.rows)


def test_parameters_of_every_log_are_exact(folder: Path, benchmark: BenchmarkTable) -> None:
    space = benchmark.space
    for log in logs_of(folder):
        assert space.counts({"recipe": json.loads(log["recepie"])}).parameters == log["num_params"]


def test_published_hidden_covariance_ranks_as_published(benchmark: BenchmarkTable) -> None:
    both = [row for row in benchmark.rows if "ptb_loss" in row.trained]
    assert len(both) == 156
    scores = [row.published[LAYER_1] for row in both]
    taus = {t: kendalltau(scores, [row.trained[t] for row in both]).statistic for t in benchmark.targets}
    assert {name: round(float(tau), 3) for name, tau in taus.items()} == {"wikitext2_loss": 0.193, "ptb_loss": 0.163}


def test_published_values_are_metrics_only(benchmark: BenchmarkTable) -> None:
    row = next(row for row in benchmark.rows if row.id.startswith("1009210-"))
    assert row.published[LAYER_1] == -717541.9561
    assert row.trained["ptb_loss"] == -6.565621089
    assert not {"loss", "perplexity", "bits per word"} & set(row.published)


def test_cells_are_fifths_by_size(benchmark: BenchmarkTable) -> None:
    sizes = Counter(row.cell for row in benchmark.rows)
    assert len(sizes) == 5
    assert max(sizes.values()) <= 60


@pytest.mark.parametrize("kind", ["initialization", "batch"])
def test_ablations_have_ten_values_of_ten_recipes(folder: Path, kind: str) -> None:
    found = read_ablation(folder, kind)
    assert [len(values) for values in found.values()] == [10] * 10
    assert {"Hidden Synaptic Saliency", LAYER_1} <= set(found[1009532][0])


def plant(folder: Path, logs: dict[str, bytes], table: str = "") -> Path:
    place = folder / "train_logs_wikitext-2"
    place.mkdir()
    with zipfile.ZipFile(place / "logs.zip", "w") as archive:
        for name, content in logs.items():
            archive.writestr(name, content)
    (folder / "published_ptb_metrics.csv").write_text(table or HEADER, encoding="utf-8")
    return folder


def as_bytes(**changes: Any) -> bytes:
    return json.dumps(LOG | changes).encode()


def test_an_unpacked_folder_is_the_same(tmp_path: Path) -> None:
    planted = plant(tmp_path, {"log_stats_model_7_a_1.json": as_bytes()})
    before = load_nas_bench_nlp(planted)
    shutil.unpack_archive(planted / "train_logs_wikitext-2" / "logs.zip", planted / "train_logs_wikitext-2" / "logs")
    (planted / "train_logs_wikitext-2" / "logs.zip").unlink()
    assert load_nas_bench_nlp(planted) == before


def test_lists_may_be_text_and_lines_may_be_glued(tmp_path: Path) -> None:
    lines = "log_stats_model_7_a_1.json,4.5,90,1,-2log_stats_model_8_a_2.json,4.6,91,3,nan\r\n"
    logs = {
        "log_stats_model_7_b_1.json": as_bytes(test_losses="[6.0, 5.5]"),
        "log_stats_model_8_b_2.json": as_bytes(recepie=PLAIN, recepie_id=8, experiment_id=2),
    }
    first, second = load_nas_bench_nlp(plant(tmp_path, logs, HEADER + lines)).rows
    assert first.trained == {"wikitext2_loss": -5.5, "ptb_loss": -4.5}
    assert first.published == {"Hidden Synaptic Saliency": 1.0, LAYER_1: -2.0}
    assert second.published == {"Hidden Synaptic Saliency": 3.0}


BAD_LOGS = {
    "must be JSON": b"{",
    "must be JSON: 'utf-8'": b'{"a": "\xff"}',
    "must be a JSON object": b"[]",
    "the test loss of the last epoch is nan": as_bytes(test_losses=[5.0, float("nan")]),
    "test_losses must be a list of numbers": as_bytes(test_losses=[]),
    "test_losses must be": as_bytes(test_losses={"a": 1}),
    "recepie_id must be a number": as_bytes(recepie_id=None),
    "num_params must be a number": as_bytes(num_params="many"),
    "nhid must be 600": as_bytes(nhid=500),
    "recepie: a recipe must name its nodes": as_bytes(recepie=None),
    "recepie: Expecting": as_bytes(recepie="{"),
    "recepie: node h_new_0 has the op 'conv'": as_bytes(recepie={"h_new_0": {"op": "conv", "input": []}}),
}


@pytest.mark.parametrize(("reason", "content"), BAD_LOGS.items(), ids=BAD_LOGS)
def test_a_bad_log_is_a_missing_row_and_the_others_stay(tmp_path: Path, reason: str, content: bytes) -> None:
    planted = plant(tmp_path, {"log_stats_model_9.json": content, "log_stats_model_7.json": as_bytes()})
    found = load_nas_bench_nlp(planted)
    assert [row.id for row in found.rows] == ["7-1"]
    (missing,) = found.missing
    assert missing.id == "log_stats_model_9"
    assert reason in missing.reason


def test_damaged_bytes_inside_the_zip_are_a_missing_row(tmp_path: Path) -> None:
    planted = plant(tmp_path, {"log_stats_model_7.json": as_bytes(), "log_stats_model_9.json": as_bytes(recepie_id=9)})
    path = planted / "train_logs_wikitext-2" / "logs.zip"
    content = bytearray(path.read_bytes())
    content[content.rindex(b'"recepie_id": 9') + 3] ^= 0xFF
    path.write_bytes(bytes(content))
    assert [missing.id for missing in load_nas_bench_nlp(planted).missing] == ["log_stats_model_9"]


def test_what_cannot_be_read_at_all_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"download it from https://github\.com/fmsnew"):
        load_nas_bench_nlp(tmp_path)
    planted = plant(tmp_path, {})
    with pytest.raises(BadInput, match="no usable one"):
        load_nas_bench_nlp(planted)
    with pytest.raises(BadInput, match="variant"):
        BENCHMARKS["nas-bench-nlp"].load(planted, "described")
    (planted / "published_ptb_metrics.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match="'log name'"):
        load_nas_bench_nlp(planted)
    (planted / "published_ptb_metrics.csv").unlink()
    (planted / "train_logs_wikitext-2" / "logs.zip").write_bytes(b"PK no")
    with pytest.raises(BadInput, match="must be a zip file"):
        load_nas_bench_nlp(planted)
    with pytest.raises(BadInput, match="must be one of initialization, batch"):
        read_ablation(planted, "seeds")
