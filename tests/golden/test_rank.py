"""`rank` and `discover` on 22 rows of a real benchmark."""

from typing import Any

from tests.golden.compare import SCORED, check, without
from tests.golden.conftest import PROXIES

TIMED = ("seconds", "seconds_per_architecture", "peak_memory_mb", "environment", "archwright", "commit", "peak_mb")


def test_the_table_is_the_same(ranked: dict[str, Any]) -> None:
    assert ranked["n"] == 22
    names = ("benchmark", "variant", "target", "targets", "n", "known", "loss", "batch", "noise_ceiling", "rows")
    check("rank", "table", without({name: ranked[name] for name in names}, TIMED), SCORED)


def test_the_scores_are_the_same(ranked: dict[str, Any]) -> None:
    names = PROXIES.split(",")
    found = {one["id"]: [one["trained"], *(one["scores"][name] for name in names)] for one in ranked["architectures"]}
    check("rank", "architectures", found, SCORED)


def test_the_best_formulas_are_the_same(discovered: dict[str, Any]) -> None:
    names = ("n", "networks", "unary", "inputs", "reduction", "formulas_total", "formulas_canonical", "formulas_valid")
    kept = {name: discovered[name] for name in (*names, "folds", "best", "histogram", "front")}
    check("discover", "exhaustive", without(kept, (*TIMED, "latex", "json")), SCORED)


def test_evolution_finds_the_same(evolved: dict[str, Any]) -> None:
    kept = {name: evolved[name] for name in ("best", "evolution", "exhaustive_best")}
    check("discover", "evolution", without(kept, (*TIMED, "latex", "json", "family")), SCORED)
