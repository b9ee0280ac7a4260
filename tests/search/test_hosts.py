"""Two hosts that share a store but neither clock nor process ids nor host name: nobody alive is taken for dead."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
import pytest
from designs import MIXED, journal, open_storage, open_study
from optuna.trial import TrialState

from archwright.search.heartbeat import HEARTBEAT, WORKER

SCRIPT = Path(__file__).with_name("worker.py")
SOURCE = Path(__file__).parents[2] / "src"
BEAT, STALE, TRIAL = 1.0, 20.0, 30.0
"""Seconds. A trial lasts longer than a silence that counts as death, as trials of hours do in a search."""


def can_unshare() -> bool:
    command = ["unshare", "--pid", "--uts", "--net", "--fork", "hostname", "elsewhere"]
    return shutil.which("unshare") is not None and not subprocess.run(command, capture_output=True).returncode


@contextmanager
def host(folder: Path, address: str, *, name: str, clock: str | None, trials: int) -> Iterator["subprocess.Popen[str]"]:
    """A worker that is process 1 of a machine of this name; with its own folder for temporary files and clock."""
    (folder / "tmp").mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(folder / "tmp")}
    if clock is not None:
        library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
        if library is None:
            pytest.skip("libfaketime is not installed")
        environment |= {"LD_PRELOAD": str(library), "FAKETIME": clock, "DONT_FAKE_MONOTONIC": "1"}
    work = [sys.executable, str(SCRIPT), address, "mixed", "random", str(trials), str(TRIAL), str(BEAT), str(STALE)]
    named = ["sh", "-c", 'hostname "$0" && exec "$@"', name, *work]
    worker = subprocess.Popen(
        ["unshare", "--pid", "--uts", "--net", "--fork", "--kill-child", *named],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


def begin(worker: "subprocess.Popen[str]") -> None:
    assert worker.stdout and worker.stdin and worker.stdout.readline() == "ready\n"
    worker.stdin.write("go\n")
    worker.stdin.flush()


def working(study: optuna.Study) -> set[str]:
    """The ids of workers in the middle of a trial."""
    trials = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return {trial.user_attrs[WORKER]["id"] for trial in trials if WORKER in trial.user_attrs}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not can_unshare(), reason="needs root and unshare")
@pytest.mark.parametrize(
    ("names", "clock", "killed"),
    [
        (("left", "right"), None, True),
        (("same", "same"), None, False),
        (("left", "right"), "+700s", False),
        (("left", "right"), "-3600s", True),
    ],
    ids=["two hosts, one dies", "one host name", "a clock ahead", "a clock behind, one dies"],
)
def test_started_are_the_wanted_and_those_of_the_killed(
    tmp_path: Path, names: tuple[str, str], clock: str | None, killed: bool
) -> None:
    address = journal(tmp_path)
    study = open_study(open_storage(address), MIXED)
    with (
        host(tmp_path / "left", address, name=names[0], clock=None, trials=4) as left,
        host(tmp_path / "right", address, name=names[1], clock=clock, trials=4) as right,
    ):
        begin(left)
        begin(right)
        while len(working(study)) < 2:
            time.sleep(0.1)
        if killed:
            right.kill()
        assert left.wait(timeout=600) == 0
        assert killed or right.wait(timeout=600) == 0
    study = open_study(open_storage(address), MIXED)
    states = [trial.state for trial in study.trials]
    assert (len(states), states.count(TrialState.COMPLETE)) == (4 + killed, 4)
    assert [trial for trial in study.trials if HEARTBEAT in trial.user_attrs]
