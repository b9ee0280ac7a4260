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

SAMPLED = {
    "compress-weight-sharing": 4,
    "compress-chain": 2,
    "recover-again": 2,
    "export-over-export": 2,
    "train": 4,
    "design": 2,
}
"""Kills in `make test`, by seed; the other commands are made of the same parts."""
NEEDS_DATA = ("rank", "discover")


def kill(folder: Path, *scenarios: str) -> dict[str, Any]:
    """The reports of the harness, which runs in a process of its own: it splits itself again and again."""
    settings = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    settings |= {"TOKENIZERS_PARALLELISM": "false", "ARCHWRIGHT_PROXIES": str(folder / "proxies")}
    words = [sys.executable, "-m", "tests.kills.harness", str(folder), *scenarios]
    done = subprocess.run(words, env=os.environ | settings, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    reports: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return reports


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    words = []
    for scenario, kills in SAMPLED.items():
        rng = random.Random(f"{scenario} 1")
        words.append(f"{scenario}={','.join(str(rng.randrange(10_000)) for _ in range(kills))}")
    return kill(tmp_path_factory.mktemp("kills"), *words)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scenario", SAMPLED)
def test_killed_at_some_events(scenario: str, sampled: dict[str, Any]) -> None:
    report = sampled[scenario]
    assert report["faults"] == {} and report["tried"] == SAMPLED[scenario] and report["events"] > 10


@pytest.mark.slow
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_killed_at_every_event(scenario: str, tmp_path: Path) -> None:
    if scenario in NEEDS_DATA and not data_folder().is_dir():
        pytest.skip("no test data: set ARCHWRIGHT_DATA to the folder that holds nas-bert/")
    report = kill(tmp_path, scenario)[scenario]
    assert report["faults"] == {} and report["tried"] == report["events"] > 10
