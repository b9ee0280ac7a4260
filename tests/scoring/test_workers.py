"""Scoring survives what happens to those who do it: a killed worker, a killed command, a dead Ray node."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import archwright as aw
from tests.compression.runs import words_of
from tests.compression.test_ray import cluster

__all__ = ["cluster"]


@pytest.fixture
def scored(text: Path, tmp_path: Path) -> dict[str, Any]:
    return {
        "space": "flexibert", "random": 12, "proxies": ("w_pca", "snip", "jacobian_covariance"), "text": text,
        "batch_rows": 2, "length": 16,
    }  # fmt: skip


def scores_of(result: Any) -> list[dict[str, float]]:
    return [row["scores"] for row in result.rows]


def test_two_workers_give_the_scores_of_one(scored: dict[str, Any], tmp_path: Path) -> None:
    alone, two = (scores_of(aw.score(**scored, workers=n, out=tmp_path / str(n))) for n in (1, 2))
    assert alone == two


KILLS = """
import os
from pathlib import Path
def kills(probe):
    marker = Path({marker!r})
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), 9)
    return 1.0
"""


def test_a_worker_that_is_killed_is_replaced(scored: dict[str, Any], tmp_path: Path) -> None:
    proxy, marker = tmp_path / "kills.py", tmp_path / "killed"
    proxy.write_text(KILLS.format(marker=str(marker)))
    killed = aw.score(**scored, proxy=(f"{proxy}:kills",), workers=2, out=tmp_path / "killed-scores")
    assert marker.exists()
    undisturbed = scores_of(aw.score(**scored, workers=1, out=tmp_path / "quiet"))
    assert scores_of(killed) == [{**scores, "kills": 1.0} for scores in undisturbed]


HANGING = """
import sys, time
from archwright.cli.main import main
from archwright.store import ScoreStore

usual, added = ScoreStore.add, []

def add(self, key, seen):
    usual(self, key, seen)
    added.append(key)
    time.sleep(3600 if len(added) == 8 else 0)

ScoreStore.add = add
main(sys.argv[1:])
"""


def test_a_killed_command_goes_on_where_it_was(scored: dict[str, Any], tmp_path: Path) -> None:
    out, json_file = tmp_path / "scores", tmp_path / "out.json"
    given = {**scored, "proxies": ",".join(scored["proxies"]), "workers": 1, "out": out, "json": json_file}
    words = words_of("score", **given)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-c", HANGING, *words], start_new_session=True, **quiet)
    lines = out / "scores.jsonl"
    while process.poll() is None and (not lines.exists() or len(lines.read_bytes().splitlines()) < 4):
        time.sleep(0.01)
    assert process.poll() is None, "the command ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = lines.read_bytes()
    assert 4 <= len(kept.splitlines()) < scored["random"]
    lines.write_bytes(kept + b'{"key": "half a li')
    subprocess.run([sys.executable, "-m", "archwright", *words], check=True, capture_output=True)
    assert lines.read_bytes().startswith(kept)
    assert len([line for line in lines.read_bytes().splitlines() if line.endswith(b"}")]) == scored["random"]
    undisturbed = aw.score(**scored, workers=1, out=tmp_path / "quiet")
    assert [row["scores"] for row in json.loads(json_file.read_text())["rows"]] == scores_of(undisturbed)


@pytest.mark.server
def test_a_ray_node_dies_and_nothing_is_lost(
    cluster: Any, scored: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archwright.store import ScoreStore

    usual, added = ScoreStore.add, []

    def dying(self: Any, key: str, seen: Any) -> None:
        added.append(key)
        if len(added) == 3:
            cluster.remove_node(cluster.victim, allow_graceful=False)
            cluster.victim = None
        usual(self, key, seen)

    monkeypatch.setattr(ScoreStore, "add", dying)
    far = scores_of(aw.score(**scored, ray=cluster.address, out=tmp_path / "far"))
    assert cluster.victim is None and len(added) == scored["random"]
    monkeypatch.undo()
    assert far == scores_of(aw.score(**scored, workers=1, out=tmp_path / "near"))


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_no_process_outlives_the_command(scored: dict[str, Any], tmp_path: Path, number: signal.Signals) -> None:
    """A caller that reads its stderr sees the end of it, which comes when the last process is gone."""
    proxy, marker = tmp_path / "hanging.py", tmp_path / "hanging"
    proxy.write_text(ENDLESS.format(marker=str(marker)))
    words = words_of("score", **scored, proxy=f"{proxy}:endless", workers=2, out=tmp_path / "scores", quiet=True)
    command = subprocess.Popen([sys.executable, "-m", "archwright", *words], stderr=subprocess.PIPE, text=True)
    while not marker.exists() and command.poll() is None:
        time.sleep(0.1)
    command.send_signal(number)
    _, err = command.communicate(timeout=100)
    assert command.returncode == (130 if number == signal.SIGTERM else -number)
    if number == signal.SIGTERM:  # after a kill Python itself has something to say
        assert err.startswith("archwright: interrupted") and err.count("\n") == 1


ENDLESS = """
from pathlib import Path
def endless(probe):
    Path({marker!r}).touch()
    while True:
        pass
"""
