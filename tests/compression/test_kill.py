"""kill -9 at any moment, then the same command again: the run ends as if nothing had happened."""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archwright.compression.methods import load_evaluator
from archwright.store import RunFolder
from tests.compression.runs import QUICK, compressed, front_of, left_over, process, study_of, tried, wait_for, words_of

OPTIONS: dict[str, Any] = {
    **QUICK,
    "space": "medium",
    "batch_size": 4,
    "original_epochs": 3.0,
    "epochs": 3.0,
    "learning_rate": 2e-3,
    "trials": 60,
    "checkpoint_seconds": 0.0,
}
"""A checkpoint after every step, so that every moment of a training can be the last."""


LOCKS = Path("/proc/locks")


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def exists(name: str) -> Callable[[Path, random.Random], Callable[[], bool]]:
    return lambda run, rng: (run / name).exists


def many_lines(run: Path, rng: random.Random) -> Callable[[], bool]:
    least = rng.randrange(5, 250)
    return lambda: lines(run / "study.journal") > least


def searched(run: Path, rng: random.Random) -> Callable[[], bool]:
    noted = run / "seconds.json"
    return lambda: noted.exists() and "search" in noted.read_text()


MOMENTS: dict[str, Callable[[Path, random.Random], Callable[[], bool]]] = {
    "beginning": exists("run.json"),
    "original": exists("checkpoint-original.safetensors"),
    "order": exists("original"),
    "supernet": exists("checkpoint-supernet.safetensors"),
    "search": many_lines,
    "measure": searched,
}
"""Signs that a phase is under way."""


def works(pid: int) -> bool:
    """Whether the command has come so far that it holds the lock of its folder; the imports before take seconds."""
    return any(line.split()[1] == "FLOCK" and line.split()[4] == str(pid) for line in LOCKS.read_text().splitlines())


def killed(words: list[str], sign: Callable[[], bool], pause: float) -> bool:
    """Whether the command was still at work when it was killed, so long after the sign."""
    command = process(words, stdout=None, stderr=None)
    wait_for(lambda: (works(command.pid) and sign()) or command.poll() is not None)
    time.sleep(pause)
    alive = command.poll() is None
    command.send_signal(signal.SIGKILL)
    command.wait()
    return alive


def configs(run: Path) -> list[dict[str, Any]]:
    return tried(study_of(run), load_evaluator(RunFolder(run)).space.choices)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, given: dict[str, Any]) -> Path:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    compressed(out, **given, **{name: value for name, value in OPTIONS.items() if name != "checkpoint_seconds"})
    return out


def check_same(run: Path, whole: Path, given: dict[str, Any]) -> None:
    """The resumed run, finished here, against the undisturbed one."""
    again, expected = (compressed(folder, **given, **OPTIONS).result for folder in (run, whole))
    assert front_of(again) == front_of(expected)
    assert again["hypervolume"] == expected["hypervolume"]
    assert again["hypervolume_over_time"] == expected["hypervolume_over_time"]
    assert again["original"]["test_error"] == expected["original"]["test_error"]
    assert len({row["trial"] for row in again["trials"]}) == len(again["trials"]) == OPTIONS["trials"]
    assert configs(run) == configs(whole)
    assert left_over(run) == []
    for part in ("original", "supernet"):
        assert (run / part / "model.safetensors").read_bytes() == (whole / part / "model.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_in_every_training_and_in_the_search(tmp_path: Path, given: dict[str, Any], undisturbed: Path) -> None:
    rng, run = random.Random(3), tmp_path / "run"
    words = words_of("compress", **given, **OPTIONS, out=run, quiet=True)
    hits = [
        killed(words, MOMENTS[phase](run, rng), rng.uniform(0.0, 0.15)) for phase in ("original", "supernet", "search")
    ]
    assert sum(hits) >= 2  # on a fast machine a phase may be over before the blow falls
    check_same(run, undisturbed, given)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3))
def test_killed_again_and_again(seed: int, tmp_path: Path, given: dict[str, Any], undisturbed: Path) -> None:
    rng, run = random.Random(seed), tmp_path / "run"
    words = words_of("compress", **given, **OPTIONS, out=run, quiet=True)
    for phase in sorted([*MOMENTS, *rng.choices(list(MOMENTS), k=6)], key=list(MOMENTS).index):
        killed(words, MOMENTS[phase](run, rng), rng.choice((0.0, rng.uniform(0, 0.1), rng.uniform(0, 1.0))))
    check_same(run, undisturbed, given)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("sampler", ["ehvi", "local"])
def test_other_samplers_and_spaces(sampler: str, tmp_path: Path, given: dict[str, Any]) -> None:
    rng = random.Random(sampler)
    changes = {**OPTIONS, "sampler": sampler, "space": "layer" if sampler == "ehvi" else "large", "trials": 25}
    whole = compressed(tmp_path / "whole", **given, **changes).result
    run = tmp_path / "run"
    for _ in range(4):
        sign = MOMENTS["search"](run, rng)
        killed(words_of("compress", **given, **changes, out=run, quiet=True), sign, rng.uniform(0, 0.3))
    again = compressed(run, **given, **changes).result
    assert front_of(again) == front_of(whole)
    assert len(again["trials"]) == 25
    assert left_over(run) == []


@pytest.mark.timeout(600)
def test_interrupted_by_hand(tmp_path: Path, given: dict[str, Any]) -> None:
    """Ctrl-C: one line, exit code 130, and the same command goes on."""
    run = tmp_path / "run"
    options = {**OPTIONS, "trials": 400}
    command = process(words_of("compress", **given, **options, out=run, quiet=True))
    wait_for(lambda: lines(run / "study.journal") > 20 or command.poll() is not None)
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=200)
    assert command.returncode == 130
    assert err.splitlines() == ["archwright: interrupted; the same command again goes on from here."]
    assert left_over(run) == []
    assert len(compressed(run, **given, **{**options, "trials": 30}).result["trials"]) >= 30
