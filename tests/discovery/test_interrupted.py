"""kill -9 while statistics are taken and while formulas are ranked; several processes and Ray rank as one does."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archwright.discovery import exhaustive
from archwright.discovery.exhaustive import make_pairs, rank_pairs
from archwright.parallel.pool import worker_pool
from archwright.spaces.formulas import FACTORS, FormulaSpace
from tests.compression.runs import ROOT, words_of
from tests.compression.test_ray import cluster
from tests.discovery import toys

__all__ = ["cluster"]

SPACE = FormulaSpace(1, toys.INPUTS)


def killed_when(process: "subprocess.Popen[bytes]", ready: Callable[[], bool]) -> None:
    """kill -9 of it and whatever it started, as soon as there is enough to lose."""
    while process.poll() is None and not ready():
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def times(folder: Path, ending: str) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in folder.glob(f"*{ending}")}


def test_killed_while_statistics_are_taken(options: dict[str, Any], tmp_path: Path) -> None:
    file, out = tmp_path / "out.json", tmp_path / "killed"
    given = {**options, "published": "none", "out": out, "json": file}
    benchmark = given.pop("benchmark")
    words = [sys.executable, "-m", "archwright", *words_of("discover", benchmark, **given, exhaustive=True)]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(words, start_new_session=True, **quiet)
    killed_when(process, lambda: len(times(out / "statistics", ".npy")) >= 3)
    kept = times(out / "statistics", ".npy")
    subprocess.run(words, check=True, capture_output=True)
    after = times(out / "statistics", ".npy")
    document = json.loads(file.read_text())
    assert 3 <= len(kept) < len(after) == document["networks"]
    assert kept.items() <= after.items()  # not taken again
    assert document["best"] and document["seconds"].keys() >= {"statistics", "search", "judging", "total"}


RANKING = """
import sys, time
from pathlib import Path
from archwright.discovery.exhaustive import rank_pairs
from archwright.discovery.pair_ranking import Pair
from archwright.spaces.formulas import FormulaSpace
from tests.discovery import toys

usual = Pair.__call__
Pair.__call__ = lambda self: (time.sleep(0.3), usual(self))[1]
space = FormulaSpace(1, toys.INPUTS)
rank_pairs(space, toys.toy_table(space), toys.toy_rows(), Path(sys.argv[1]), toys.POOL)
"""


def test_killed_while_formulas_are_ranked(tmp_path: Path) -> None:
    table, folded, folder = toys.toy_table(SPACE), toys.toy_rows(), tmp_path / "killed"
    settings = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    process = subprocess.Popen(
        [sys.executable, "-c", RANKING, str(folder)], start_new_session=True, env=settings, cwd=ROOT
    )
    killed_when(process, lambda: len(times(folder / "discover", ".json")) >= 2)
    kept = times(folder / "discover", ".json")
    again = rank_pairs(SPACE, table, folded, folder, toys.POOL)
    after = times(folder / "discover", ".json")
    assert 2 <= len(kept) < len(after) == len(make_pairs(SPACE, table, folded)) and kept.items() <= after.items()
    assert again == rank_pairs(SPACE, table, folded, tmp_path / "quiet", toys.POOL)


def test_two_processes_rank_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = FormulaSpace(1, toys.INPUTS, ("largest",), FACTORS[:3])
    table, folded = toys.with_counts(space), toys.toy_rows()
    monkeypatch.setattr(exhaustive, "WORTH_PROCESSES", 0)
    monkeypatch.setattr("archwright.parallel.pool.WORTH_A_PROCESS", 0)
    with worker_pool(2, None) as two:
        far = rank_pairs(space, table, folded, tmp_path / "two", two)
    assert far == rank_pairs(space, table, folded, tmp_path / "one", toys.POOL)


@pytest.mark.server
def test_ray_ranks_as_one_process(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, folded = toys.toy_table(SPACE), toys.toy_rows()
    monkeypatch.setattr(exhaustive, "WORTH_PROCESSES", 0)
    with worker_pool(0, cluster.address) as nodes:
        far = rank_pairs(SPACE, table, folded, tmp_path / "far", nodes)
    assert far == rank_pairs(SPACE, table, folded, tmp_path / "near", toys.POOL)
