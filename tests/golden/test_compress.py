"""`compress`: the front of every method, what it was found by, and the weights behind it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.golden.compare import check, without
from tests.golden.weights import digest_folder

Compressed = Callable[[str], dict[str, Any]]
RUNS = (
    "chain",
    "distilled",
    "weight-sharing",
    "standard",
    "standard-mo-asha",
    "head-pruning",
    "retraining-free",
    "layer-dropping",
    "magnitude",
    "random",
    "lm",
    "medium",
    "large",
)
TOLD = ("family", "pooling", "task_note", "rows", "metric", "space", "strategy", "order", "order_note", "sampler")
SIZES = ("seed", "objectives", "layers", "heads", "units")
TIMED = ("latency_ms", "generation_ms", "latency_rank", "seconds")


def pick_lasting(document: dict[str, Any]) -> dict[str, Any]:
    """Everything that does not depend on the clock or the place."""
    kept = {name: document[name] for name in ("original", "front", "trials", "hypervolume")}
    kept["trials"] = [[one["trial"], *one["values"]] for one in document["trials"]]
    told = {name: document[name] for name in (*TOLD, *SIZES) if name in document}
    kept["hypervolume_over_time"] = document["hypervolume_over_time"]
    return {**told, **without(kept, TIMED)}


@pytest.mark.parametrize("name", RUNS)
def test_the_front_is_the_same(name: str, compressed: Compressed) -> None:
    document = compressed(name)
    kept = pick_lasting(document)
    if document.get("supernet"):
        kept["supernet"] = without(document["supernet"], TIMED)
    check("compress", name, kept)


def test_runs_are_worth_recording(compressed: Compressed) -> None:
    """A front of one network that guesses would hide most changes."""
    document = compressed("weight-sharing")
    assert len(document["front"]) > 1 and document["original"]["validation_error"] < 0.4
    assert len(compressed("lm")["front"]) > 1


@pytest.mark.parametrize("name", ["chain", "distilled", "weight-sharing", "standard", "lm", "large"])
def test_the_weights_in_the_run_folder_are_the_same(name: str, compressed: Compressed, place: Path) -> None:
    compressed(name)
    weights = digest_folder(place / name)  # a test before this one may have trained a pick further
    check("compress_weights", name, {file: value for file, value in weights.items() if "recovered/" not in file})


def test_honesty_is_the_same(compressed: Compressed) -> None:
    check("compress", "honesty", without(compressed("weight-sharing")["honesty"], TIMED))


def test_the_comparison_is_the_same(compressed: Compressed) -> None:
    document = compressed("compare")
    methods = {name: pick_lasting(one | {"original": None}) for name, one in document["methods"].items()}
    kept = {"original": without(document["original"], TIMED), "methods": methods}
    check("compress", "compare", kept)


def test_selection_and_recovery_are_the_same(selected: dict[str, Any], place: Path) -> None:
    kept = {name: selected[name] for name in ("original", "selected", "neighbours", "recovery")}
    check("compress", "selected", without(kept, TIMED))
    check("compress_weights", "selected", digest_folder(place / "export" / "selected"))
