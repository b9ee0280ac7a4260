"""`score`: random networks of every space, and what every proxy says about one network of each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cli import run_cli
from tests.golden.compare import SCORED, check, without
from tests.golden.conftest import LOOK

pytestmark = pytest.mark.usefixtures("vocabulary")
SPACES = ("flexibert", "gpt2", "nlu-tiny", "nlu-small", "nlu-large", "rnn")
FIXED = ("flexibert", "gpt2", "nlu-tiny", "rnn")


def pick_lasting(document: dict[str, Any]) -> dict[str, Any]:
    kept = {name: document[name] for name in ("space", "variant", "n", "seed", "size")}
    rows = [{**row, "missing": sorted(row["missing"])} for row in document["rows"]]
    return {**kept, "rows": without(rows, ("seconds", "id"))}


@pytest.mark.parametrize("space", SPACES)
def test_random_networks_are_the_same(space: str, scored: Callable[[str], dict[str, Any]]) -> None:
    check("score", space, pick_lasting(scored(space)), SCORED)


@pytest.mark.parametrize("name", [*(f"{space} fixed" for space in FIXED), "flexibert described", "flexibert published"])
def test_all_proxies_say_the_same(name: str, scored: Callable[[str], dict[str, Any]]) -> None:
    document = pick_lasting(scored(name))
    (row,) = document["rows"]
    assert len(row["scores"]) > 90
    if not name.endswith("fixed"):
        row["scores"] = {proxy: score for proxy, score in row["scores"].items() if not proxy.endswith("_normalised")}
        row["missing"] = [proxy for proxy in row["missing"] if not proxy.endswith("_normalised")]
    check("score", name, document, SCORED)


def test_large_networks_are_scored_the_same(place: Path, text: Path) -> None:
    words = ["score", "--space", "nlu-large", "--text", text, "--out", place / "scores", *LOOK, "--random", 1]
    document = run_cli([*words, "--proxies", "w_pca,v_pca,softmax_confidence", "--seed", 1, "--initial", "glorot"])
    check("score", "nlu-large, some proxies", pick_lasting(document), SCORED)


def test_means_over_seeds_and_batches_are_the_same(place: Path, text: Path, designs: dict[str, Path]) -> None:
    words = ["score", "--space", "flexibert", "--text", text, "--out", place / "scores", *LOOK]
    more = ["--config", designs["flexibert"], "--proxies", "w_pca,snip,synflow", "--seeds", 2, "--batches", 2]
    check("score", "flexibert, seeds and batches", pick_lasting(run_cli([*words, *more, "--loss", "mlm"])), SCORED)
