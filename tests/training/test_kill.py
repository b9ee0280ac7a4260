"""kill -9 in the middle of a training of any lesson: the same call again ends with the very weights of an undisturbed
one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.training.victim import KILLS, SCHEDULE

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All victims have been killed and raised again."""
    folder = tmp_path_factory.mktemp("victims")
    known = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "tests.training.victim", str(folder)]
    done = subprocess.run(words, env=known, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def log_of(path: Path) -> dict[int, str]:
    """The last line of every step."""
    return {int(line.split(",")[0]): line for line in path.read_text().splitlines()}


@pytest.mark.parametrize("title", KILLS)
def test_a_killed_training_goes_on_bit_by_bit(folder: Path, title: str) -> None:
    undisturbed, disturbed = folder / KILLS[title][0], folder / title
    assert (disturbed / "signal").read_text() == "-9"
    whole, resumed = (torch.load(at / "final.pt") for at in (undisturbed, disturbed))
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())
    assert list(log_of(undisturbed / "log.csv")) == list(range(SCHEDULE.steps))
    assert log_of(disturbed / "log.csv") == log_of(undisturbed / "log.csv")
    assert len((disturbed / "log.csv").read_text().splitlines()) < 2 * SCHEDULE.steps - 2  # it did not begin anew


@pytest.mark.parametrize("title", KILLS)
def test_every_lesson_moved_its_weights(folder: Path, title: str) -> None:
    weights = torch.load(folder / title / "final.pt")
    assert all(torch.isfinite(value).all() for value in weights.values())
    losses = [float(line.split(",")[1]) for line in log_of(folder / title / "log.csv").values()]
    assert len(set(losses)) == len(losses)
