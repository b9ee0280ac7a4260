"""Two processes learn what one learns from twice as many rows."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.compression.runs import ROOT
from tests.training.pipeline.runs import QUICK, trained

TWO = [
    sys.executable,
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc-per-node",
    "2",
    "-m",
    "archwright",
]


def losses(folder: Path) -> list[float]:
    with open(folder / "log.csv", newline="") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


@pytest.mark.slow
def test_torchrun(pretrained: Any, text: Path, tmp_path: Path) -> None:
    start = shutil.copytree(pretrained.folder / "model", tmp_path / "start")
    config = json.loads((start / "config.json").read_text())
    (start / "config.json").write_text(json.dumps({**config, "dropout": 0.0}))  # each process drops others
    words = {**QUICK, "steps": 4, "batch_size": 4, "model": str(start), "lesson": "mlm", "corpus": text}
    alone = trained(tmp_path / "alone", **words, accumulate=2).as_json()
    options = [part for name, value in words.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*TWO, "train", *options, "--device", "cpu", "--minutes", "60", "--out", str(tmp_path / "two")],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("training loss") == 1  # one process speaks
    group = json.loads((tmp_path / "two" / "result.json").read_text())
    assert group["processes"] == 2
    assert group["epochs"] == alone["epochs"]
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "alone"), abs=1e-4)
    assert group["validation"]["after"]["loss"] == pytest.approx(alone["validation"]["after"]["loss"], abs=1e-3)
