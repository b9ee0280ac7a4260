"""`archwright rank`: the report has every column, scores are kept by content, and bad input is told in one line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import archwright as aw
from archwright.errors import BadInput
from tests.compression.runs import refusal, words_of
from tests.scoring.conftest import ROWS

COLUMNS = [
    "proxy",
    "origin",
    "gradient_free",
    "n",
    "missing",
    "spearman",
    "kendall_b",
    "kendall_a",
    "weighted_tau",
    "within_cells",
    "partial_given_parameters",
    "correlation_with_parameters",
    "precision_at_10pct",
    "regret_at_10",
    "top10_spearman",
    "icc_seeds",
    "icc_batches",
    "minus_parameters",
    "minus_depth_width",
    "seconds_per_architecture",
    "peak_memory_mb",
    "verdict",
]
BOUNDED = [
    "spearman",
    "kendall_b",
    "kendall_a",
    "weighted_tau",
    "within_cells",
    "minus_parameters",
    "minus_depth_width",
]


def row_of(ranked: Any, proxy: str) -> dict[str, Any]:
    return next(row for row in ranked.rows if row["proxy"] == proxy)


def test_every_column_is_there_and_agrees_with_scipy(options: dict[str, Any]) -> None:
    ranked = aw.rank(**options)
    document = ranked.as_json()
    assert {"schema", "benchmark", "n", "variant", "noise_ceiling", "rows"} <= document.keys()
    assert (document["benchmark"], document["n"], document["variant"]) == ("nas-bert", ROWS, "trained")
    names = {row["proxy"] for row in ranked.rows}
    assert names == {
        "w_pca", "v_pca", "snip", "parameters", "nonembedding", "flops", "depth", "depth_width", "random",
        "linear_10_labels",
    }  # fmt: skip
    for row in ranked.rows:
        assert set(COLUMNS) <= row.keys() and {f"{name}_low" for name in BOUNDED} <= row.keys()
    trained = [one["trained"] for one in document["architectures"]]
    scores = [one["scores"]["w_pca"] for one in document["architectures"]]
    row = row_of(ranked, "w_pca")
    assert row["spearman"] == pytest.approx(stats.spearmanr(scores, trained).statistic)
    assert row["kendall_b"] == pytest.approx(stats.kendalltau(scores, trained).statistic)
    assert row["spearman_low"] < row["spearman"] < row["spearman_high"]
    assert row["gradient_free"] and not row_of(ranked, "snip")["gradient_free"]
    assert row["seconds_per_architecture"] > 0
    assert json.loads(json.dumps(document)) == document
    page = (options["out"] / "nas-bert-trained.html").read_text()
    assert "w_pca" in page


def test_twins_have_one_score_and_what_is_known_is_not_looked_at_again(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = aw.rank(**options)
    by_network: dict[str, set[float]] = {}
    for one in first.document["architectures"]:
        by_network.setdefault(one["network"], set()).add(one["scores"]["w_pca"])
    assert len(by_network) < ROWS and all(len(scores) == 1 for scores in by_network.values())

    def refuse(pool: Any, tasks: Any, *, keys: Any = None) -> Any:
        assert not tasks, "nothing is left to score"
        return iter(())

    monkeypatch.setattr("archwright.parallel.pool.LocalPool.map_unordered", refuse)
    again = aw.rank(**options)
    assert again.rows == first.rows


def test_another_seed_looks_again_and_gives_other_scores(options: dict[str, Any]) -> None:
    scores = [
        [one["scores"]["snip"] for one in aw.rank(**options, seed=seed).document["architectures"]] for seed in (0, 1)
    ]
    assert not np.isclose(*scores).any()


def test_repeats_give_agreement_and_means(options: dict[str, Any]) -> None:
    few = {**options, "proxies": ("v_pca", "random"), "ablation": True}
    ranked = aw.rank(**few)
    assert row_of(ranked, "v_pca")["icc_seeds"] > 0.9
    assert len(ranked.document["ablation"]["ids"]) == 10
    assert np.shape(ranked.document["ablation"]["seeds"]["v_pca"]) == (10, 10)
    one = aw.rank(**{**few, "ablation": False, "proxies": ("snip",)}, seeds=2, batches=2)
    values = [entry["scores"]["snip"] for entry in one.document["architectures"]]
    assert len(set(values)) > 1 and np.isfinite(values).all()


def test_a_proxy_of_the_user(options: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def twice(probe):\n    return 2.0 * probe.counts.parameters\n")
    ranked = aw.rank(**options, proxy=(f"{file}:twice",))
    mine, parameters = row_of(ranked, "twice"), row_of(ranked, "parameters")
    assert mine["origin"] == "own" and mine["spearman"] == parameters["spearman"]
    file.write_text("def twice(probe):\n    return -2.0 * probe.counts.parameters\n")
    assert row_of(aw.rank(**options, proxy=(f"{file}:twice",)), "twice")["spearman"] == -mine["spearman"]


@pytest.mark.parametrize(
    ("body", "reason"),
    {
        "raises": ("raise KeyError('nothing')", "KeyError"),
        "nan": ("return float('nan')", "nan"),
        "no number": ("return 'high'", "number"),
        "exit": ("raise SystemExit(0)", "SystemExit"),
    }.values(),
)
def test_a_proxy_that_fails_is_missing_and_the_others_are_there(
    body: str, reason: str, options: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"def mine(probe):\n    {body}\n")
    ranked = aw.rank(**options, proxy=(f"{file}:mine",))
    row = row_of(ranked, "mine")
    assert row["missing"]["count"] == ROWS and reason in row["missing"]["reason"] and row["spearman"] is None
    assert row_of(ranked, "w_pca")["n"] == ROWS


BAD = {
    "unknown proxy": ({"proxies": "w_pcb"}, "w_pca"),
    "unknown benchmark": ({"benchmark": "nas-bart"}, "nas-bert"),
    "unknown variant": ({"variant": "imagined"}, "trained, described, published"),
    "unknown target": ({"target": "snli"}, "glue"),
    "unknown loss": ({"loss": "lm"}, "electra"),
    "no proxy file": ({"proxy": "nowhere.py:mine"}, "nowhere.py"),
    "no data": ({"data": "nowhere"}, "nowhere"),
    "no text": ({"text": "nowhere.txt"}, "nowhere.txt"),
    "one token": ({"length": 1}, "at least 2"),
    "no seeds": ({"seeds": 0}, "at least 1"),
    "no batches": ({"batches": -1}, "at least 1"),
    "no workers": ({"workers": -2}, "must not be negative"),
    "no seed": ({"seed": -1}, "must not be negative"),
    "no samples": ({"samples": 0}, "at least 10"),
    "a folder for the page": ({"html": "."}, "must be a file"),
}


@pytest.mark.parametrize(("change", "way_out"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line(change: dict[str, Any], way_out: str, options: dict[str, Any], capfd: Any) -> None:
    given = {**options, "proxies": "w_pca", "ablation": None, **change}
    benchmark = given.pop("benchmark")
    words = words_of("rank", **{name: value for name, value in given.items() if value is not None})
    code, line = refusal(capfd, [words[0], benchmark, *words[1:]])
    assert code == 2 and way_out in line


def test_malformed_rows_are_missing_and_malformed_files_are_told(options: dict[str, Any], tmp_path: Path) -> None:
    entries = json.loads((options["data"] / "BERT_benchmark.json").read_text())
    entries[3]["scores"]["glue"] = float("nan")
    spoilt = tmp_path / "spoilt"
    spoilt.mkdir()
    (spoilt / "BERT_benchmark.json").write_text(json.dumps(entries))
    ranked = aw.rank(**{**options, "data": spoilt, "proxies": ("depth",)})
    assert ranked.document["n"] == ROWS - 1
    (spoilt / "BERT_benchmark.json").write_text("[{")
    with pytest.raises(BadInput, match="BERT_benchmark"):
        aw.rank(**{**options, "data": spoilt, "proxies": ("depth",)})


@pytest.mark.parametrize("variant", ["described", "published"])
def test_other_variants_know_the_same_twins(variant: str, options: dict[str, Any]) -> None:
    few = {**options, "proxies": ("depth",)}
    trained, other = (aw.rank(**few, variant=name).document for name in ("trained", variant))
    assert [one["network"] for one in other["architectures"]] == [one["network"] for one in trained["architectures"]]
    assert other["variant"] == variant and other["noise_ceiling"] == trained["noise_ceiling"]


def test_recurrent_cells_of_one_network_may_differ_in_size(options: dict[str, Any], data_dir: Path) -> None:
    few = {**options, "benchmark": "nas-bench-nlp", "data": data_dir / "nas-bench-nlp", "proxies": ("parameters",)}
    document = aw.rank(**few).document
    assert document["n"] == 198 and document["known"] == "size" and len(document["xray"]) > 8
    assert all(row["minus_depth_width"] is None for row in document["rows"])
