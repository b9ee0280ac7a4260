"""`rank` and `discover` on twenty rows of a real benchmark."""

from pathlib import Path
from typing import Any

import pytest

from tests.golden.cli import run_cli
from tests.golden.compare import SCORED, check, without
from tests.golden.conftest import LOOK

pytestmark = pytest.mark.usefixtures("vocabulary")
TIMED = ("seconds", "seconds_per_architecture", "peak_memory_mb", "environment", "archwright", "commit", "peak_mb")
PROXIES = "w_pca,v_pca,synflow,snip,softmax_confidence"


@pytest.fixture(scope="session")
def ranked(place: Path, small_table: Path, text: Path) -> dict[str, Any]:
    words = ["rank", "nas-bert", "--data", small_table, "--text", text, "--out", place / "scores", *LOOK]
    return run_cli([*words, "--proxies", PROXIES, "--samples", 50, "--no-ablation"])


@pytest.fixture(scope="session")
def discovered(place: Path, small_table: Path, text: Path) -> dict[str, Any]:
    words = ["discover", "nas-bert", "--data", small_table, "--text", text, "--out", place / "scores", *LOOK]
    return run_cli([*words, "--exhaustive", "--unary", 1, "--samples", 50, "--published", "none"])


@pytest.fixture(scope="session")
def evolved(place: Path, small_table: Path, text: Path, discovered: dict[str, Any]) -> dict[str, Any]:
    words = ["discover", "nas-bert", "--data", small_table, "--text", text, "--out", place / "scores", *LOOK]
    more = ["--evolve", "--generations", 20, "--population", 8, "--seeds", 1, "--sample", 0, "--samples", 50]
    return run_cli([*words, *more, "--published", "none"])


def test_the_table_is_the_same(ranked: dict[str, Any]) -> None:
    assert ranked["n"] == 20
    names = ("benchmark", "variant", "target", "targets", "n", "known", "loss", "batch", "noise_ceiling", "rows")
    check("rank", "table", without({name: ranked[name] for name in names}, TIMED), SCORED)


def test_the_scores_are_the_same(ranked: dict[str, Any]) -> None:
    found = {one["id"]: {**one["scores"], "trained": one["trained"]} for one in ranked["architectures"]}
    check("rank", "architectures", found, SCORED)


def test_the_best_formulas_are_the_same(discovered: dict[str, Any]) -> None:
    names = ("n", "networks", "unary", "inputs", "reduction", "formulas_total", "formulas_canonical", "formulas_valid")
    kept = {name: discovered[name] for name in (*names, "folds", "best", "histogram", "front")}
    check("discover", "exhaustive", without(kept, (*TIMED, "latex", "json")), SCORED)


def test_evolution_finds_the_same(evolved: dict[str, Any]) -> None:
    kept = {name: evolved[name] for name in ("best", "evolution", "exhaustive_best")}
    check("discover", "evolution", without(kept, (*TIMED, "latex", "json", "family")), SCORED)
