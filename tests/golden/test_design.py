"""`design`: every sampler finds the same designs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cli import run_cli
from tests.golden.compare import SCORED, TRAINED, check, without
from tests.golden.conftest import LOOK, made_once

pytestmark = pytest.mark.usefixtures("vocabulary")
TIMED = ("seconds", "latency_ms", "core_seconds", "environment", "archwright")
SMALL = ["--population", 4, "--generations", 3]
WORDS: dict[str, list[Any]] = {
    "genetic": ["--space", "nlu-tiny", "--against", "random,local", "--scale-up", 2, *SMALL],
    "nsga2": ["--space", "nlu-tiny", "--sampler", "nsga2", "--proxy", "v_pca,softmax_confidence", *SMALL],
    "flexibert": ["--space", "flexibert", "--proxy", "snip", "--max-parameters", "6M", "--population", 2]
    + ["--generations", 2, "--distinct"],
    "spos": ["--space", "nlu-tiny", "--method", "spos", "--steps", 2, "--batch-size", 2, "--validation-rows", 8]
    + ["--population", 2, "--generations", 2],
}


@pytest.fixture(scope="session")
def designed(place: Path, text: Path) -> Callable[[str], dict[str, Any]]:
    def make(name: str) -> dict[str, Any]:
        out = ["--out", place / f"design-{name}", "--text", text]
        look = ["--length", 8] if name == "spos" else LOOK
        return run_cli(["design", *WORDS[name], *out, *look])

    return made_once(make)


@pytest.mark.parametrize("name", WORDS)
def test_the_found_design_is_the_same(name: str, designed: Callable[[str], dict[str, Any]]) -> None:
    check("design", name, without(designed(name), TIMED), TRAINED if name == "spos" else SCORED)


def test_the_file_holds_what_the_command_tells(designed: Callable[[str], dict[str, Any]], place: Path) -> None:
    document = json.loads((place / "design-genetic" / "design.json").read_text())
    assert document == designed("genetic")
