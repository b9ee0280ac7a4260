"""`design`: every sampler finds the same designs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.golden.compare import SCORED, TRAINED, check, without
from tests.golden.conftest import SEARCHES

TIMED = ("seconds", "latency_ms", "core_seconds", "training_seconds", "environment", "archwright")


@pytest.mark.parametrize("name", SEARCHES)
def test_the_found_design_is_the_same(name: str, designed: Callable[[str], dict[str, Any]]) -> None:
    check("design", name, without(designed(name), TIMED), TRAINED if name == "spos" else SCORED)


def test_the_file_holds_what_the_command_tells(designed: Callable[[str], dict[str, Any]], place: Path) -> None:
    document = json.loads((place / "design-genetic" / "design.json").read_text())
    assert document == designed("genetic")
