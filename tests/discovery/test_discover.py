"""`archwright discover`: the report has every number, nothing is looked at twice, and bad input is told in one line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archwright.commands import COMMANDS, call
from archwright.discovery import statistics
from archwright.errors import BadInput, Failed
from archwright.proxies import PROXIES
from archwright.proxies.formulas.discovered import as_proxy, load_discovered_proxies, read_proxy_file
from archwright.proxies.formulas.formula import parse
from archwright.scoring.scorer import cache_name

KEYS = {
    "schema", "formulas_total", "formulas_canonical", "formulas_valid", "folds", "best", "histogram", "published",
    "notes", "environment", "commit", "data", "seconds", "peak_mb", "transfer",
}  # fmt: skip


OURS = "evolution, no formula twice"


def discover(**options: Any) -> Any:
    return call(COMMANDS["discover"], options)


def test_exhaustive_then_evolution_then_again(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found = discover(**options, exhaustive=True, save="mine")
    document = found.as_json()
    assert document.keys() >= KEYS and document["schema"] == "archwright/discover/1"
    assert (document["formulas_total"], document["formulas_canonical"]) == (26_460, 13_546)
    assert 0 < document["formulas_valid"] <= 13_546
    assert sum(document["histogram"]["counts"]) == document["formulas_valid"]
    assert document["folds"]["count"] == 5 and sum(document["folds"]["rows"]) == document["n"]
    marked = {one["proxy"]: one for one in document["published"]}
    assert {"snip", "parameters", "lpzero_flexibert"} <= marked.keys() and "grasp" not in marked
    assert all(0 <= one["percentile"] <= 100 for one in marked.values())
    assert document["seconds"]["total"] >= document["seconds"]["statistics"] > 0 and document["peak_mb"] > 50
    for one in document["best"]:
        assert {"formula", "train", "held_out", "within_cells", "size"} <= one.keys()
        assert one["held_out"].keys() == {"value", "low", "high"}
        assert parse(one["formula"]).size == one["size"]
    assert document["best"][0]["train"]["spearman"] == pytest.approx(document["best"][0]["fitness"])
    assert document["folds"]["seeds"] == 10 == len(document["best"][0]["splits"]["spearman"])
    assert len(document["best"][0]["formulas_of_folds"]) == 50
    assert document["simplest"]["size"] <= document["best"][0]["size"]
    assert document["simplest"]["held_out"]["low"] is not None
    told = {one["statistic"]: one for one in document["counts"]["statistics"]}
    assert told and all(one["layers"] > 0 for one in told.values())
    assert any(name in note for name in told for note in document["notes"])
    assert json.loads(json.dumps(document)) == document
    assert document["best"][0]["formula"] in found.page.read_text().replace("\\u003e", ">").replace("\\u003c", "<")

    saved = read_proxy_file(found.saved)
    assert saved["provenance"]["data"] == document["data"] and saved["held_out"] == document["best"][0]["held_out"]
    proxy = load_discovered_proxies()["mine"]
    assert (proxy.origin, proxy.content) == ("discovered", document["best"][0]["formula"])

    monkeypatch.setattr(statistics.StatisticsRequest, "__call__", lambda self: pytest.fail("looked at again"))
    again = discover(**options, exhaustive=True).as_json()
    assert again["best"] == document["best"]

    evolved = discover(**options, evolve=True, generations=40, population=10, seeds=2, sample=0).as_json()
    assert evolved.keys() >= KEYS
    lines = evolved["evolution"]
    assert set(lines) == {*(f"evolution {how} PPS" for how in ("with", "without")), "random search", OURS}
    assert all(len(run["curve"]) == 41 for runs in lines.values() for run in runs)
    assert evolved["exhaustive_best"]["fitness"] == pytest.approx(document["best"][0]["fitness"])
    most = max(run["curve"][-1] for runs in lines.values() for run in runs)
    assert most <= evolved["exhaustive_best"]["fitness"] + 1e-9

    file = next((options["out"] / "statistics").glob("*.npy"))
    file.write_bytes(b"half")
    with pytest.raises(Failed, match=r"is damaged .* delete it"):
        discover(**options, exhaustive=True)


def test_a_saved_formula_is_the_formula() -> None:
    formula = parse("sum(frobenius(A) * sqrt(S))")
    proxy = as_proxy({"name": "x", "json": formula.as_json()})
    assert proxy.passes == formula.passes and proxy.roles == formula.roles


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "give either --exhaustive or --evolve"),
        ({"exhaustive": True, "evolve": True}, "give either --exhaustive or --evolve"),
        ({"exhaustive": True, "unary": 3}, "--exhaustive ranks up to --unary 2"),
        ({"exhaustive": True, "fitness": "pareto"}, "--fitness pareto is a way to evolve"),
        ({"evolve": True, "mutation": 1.5}, "--mutation must be between 0 and 1"),
        ({"exhaustive": True, "unary": 0}, "--unary must be between 1 and 5"),
        ({"evolve": True, "unary": 6}, "--unary must be between 1 and 5"),
        ({"exhaustive": True, "save": "No Name"}, "--save must be a name of small letters"),
        ({"exhaustive": True, "save": "w_pca"}, "'w_pca' is a listed proxy"),
        ({"exhaustive": True, "benchmark": "nas-bart"}, "benchmark must be one of"),
        ({"exhaustive": True, "fitness": "kendall"}, "fitness must be one of"),
        ({"exhaustive": True, "samples": 0}, "--samples must be at least 1"),
        ({"exhaustive": True, "target": "speed"}, "--target must be one of"),
        ({"evolve": True, "parents": "200%"}, "--parents must be a share"),
        ({"evolve": True, "population": 1}, "--population must be at least 2"),
        (
            {"exhaustive": True, "generations": 7, "ablate": True},
            "--ablate, --generations have no effect without --evolve",
        ),
    ],
)
def test_bad_input_is_told_before_any_network_is_looked_at(
    options: dict[str, Any], changes: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics.StatisticsRequest, "__call__", lambda self: pytest.fail("looked at networks"))
    with pytest.raises(BadInput, match=words):
        discover(**{**options, **changes})


def test_a_damaged_proxy_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHWRIGHT_PROXIES", str(tmp_path))
    (tmp_path / "broken.json").write_text('{"schema": "archwright/proxy/1", "name": "broken"}')
    with pytest.raises(BadInput, match="must hold a proxy that `archwright discover --save` wrote"):
        load_discovered_proxies()


def test_useless_statistics_are_told(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = np.zeros((6, 17, 2))
    monkeypatch.setattr(statistics.StatisticsRequest, "__call__", lambda self: zeros)
    with pytest.raises(Failed, match="no formula is finite"):
        discover(**options, exhaustive=True)


def test_a_score_is_kept_by_formula_not_by_name_alone() -> None:
    proxies = [as_proxy({"name": "mine", "json": parse(text).as_json()}) for text in ("sum(A + J)", "sum(A - J)")]
    assert len({cache_name(proxy) for proxy in proxies}) == 2 and cache_name(PROXIES["snip"]) == "snip"
