"""A proxy of an installed package is like ours: listed in the help, scored by name, also by other processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = """
from archwright.proxies.proxy import Proxy

def layers(probe):
    return float(len(probe.layers))

MINE = Proxy("foreign", "layers that were recorded", layers, passes=("forward",), revision=3)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With a package on the path that has an entry point of the group archwright.proxies."""
    (tmp_path / "foreign_proxies.py").write_text(PACKAGE)
    info = tmp_path / "foreign_proxies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-proxies\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[archwright.proxies]\nforeign = foreign_proxies:MINE\n")
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}


def run(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "archwright", *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_score_and_its_help_know_it(environment: dict[str, str], data_dir: Path, tmp_path: Path) -> None:
    text, out = data_dir / "wikitext-2" / "valid.txt", tmp_path / "scores"
    options = ["--text", str(text), "--batch-rows", "2", "--length", "8", "--workers", "2", "--out", str(out)]
    words = ["score", "--random", "8", "--proxies", "foreign,depth", *options, "--json", str(tmp_path / "out.json")]
    run(environment, *words)
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert all(row["scores"]["foreign"] == row["scores"]["depth"] for row in rows)
    assert "foreign revision-3" in (out / "scores.jsonl").read_text()
    assert "foreign: layers that were recorded" in " ".join(run(environment, "score", "--help").split())
