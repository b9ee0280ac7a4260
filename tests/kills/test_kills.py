"""kill -9 at file-system events of every command: what was there is whole, and the same command ends as if nothing
had happened and leaves nothing behind.

Every event of every command is tried by the slow tests; a sample of events, with a seed, by the others.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.compression.runs import ROOT
from tests.kills.scenarios import SCENARIOS, data_folder

SAMPLED = {"compress-weight-sharing": 3, "recover-again": 3, "export-over-export": 2, "train": 3, "design": 3}
"""Kills in `make test`; the other commands are made of the same parts."""
NEEDS_DATA = ("rank", "discover")


def kill(scenario: str, folder: Path, points: list[int]) -> dict[str, Any]:
    """The report of the harness, which runs in a process of its own: it splits itself again and again."""
    settings = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    words = [sys.executable, "-m", "tests.kills.harness", scenario, str(folder), *map(str, points)]
    settings |= {"TOKENIZERS_PARALLELISM": "false", "ARCHWRIGHT_PROXIES": str(folder / "proxies")}
    done = subprocess.run(words, env=os.environ | settings, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


@pytest.mark.parametrize("scenario", SAMPLED)
def test_killed_at_some_events(scenario: str, tmp_path: Path) -> None:
    rng = random.Random(f"{scenario} 1")
    report = kill(scenario, tmp_path / "kills", [rng.randrange(10_000) for _ in range(SAMPLED[scenario])])
    assert report["faults"] == {} and report["tried"] == SAMPLED[scenario] and report["events"] > 10


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_killed_at_every_event(scenario: str, tmp_path: Path) -> None:
    if scenario in NEEDS_DATA and not data_folder().is_dir():
        pytest.skip("no test data: set ARCHWRIGHT_DATA to the folder that holds nas-bert/")
    report = kill(scenario, tmp_path / "kills", [])
    assert report["faults"] == {} and report["tried"] == report["events"] > 10
