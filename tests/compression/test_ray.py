"""A search on a real Ray cluster of two nodes, one of which dies on the way: the same trials as without Ray."""

import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from archwright.compression.methods import candidates, load_evaluator
from archwright.compression.ray_search import RayNodes
from archwright.errors import BadInput
from archwright.parallel.ray_cluster import check_ray
from archwright.search import EPOCHS
from archwright.store import RunFolder
from archwright.subnet import importance
from tests.compression.runs import QUICK, compressed, errors_of, front_of, refusal, study_of, tried, words_of
from tests.compression.test_processes import split

OPTIONS: dict[str, Any] = {
    "method": "standard",
    "sampler": "mo-asha",
    "epochs": 3.0,
    "order": "none",
    "learning_rate": 3e-3,
    "trials": 10,
}


pytestmark = pytest.mark.timeout(900)


@contextmanager
def no_other_cluster() -> Iterator[None]:
    """Every process of the machine finds every cluster on it: those of tests that run at the same time take turns."""
    with open(Path(gettempdir()) / f"archwright-ray-{os.getuid()}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes with one CPU each."""
    for name, value in PATIENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("archwright.parallel.ray_cluster.ANSWER_SECONDS", 200.0)
    utils = pytest.importorskip("ray.cluster_utils")
    small = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    with no_other_cluster():
        found = utils.Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
        found.victim = found.add_node(**small)
        yield found
        found.shutdown()


PATIENT = {
    "RAY_worker_niceness": "0",  # by default they wait for everything else on the machine
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_timeout_ms": "100000",  # a slow node is not a dead one
    "RAY_worker_register_timeout_seconds": "300",
}


@pytest.mark.server
def test_a_node_dies_and_nothing_is_lost(
    cluster: Any, tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    told: list[int] = []
    monkeypatch.setattr("archwright.compression.search.TrialCounter.update", dying(cluster, told))
    far = compressed(tmp_path / "far", **given, **OPTIONS, ray=cluster.address)
    assert len(told) > 3 and cluster.victim is None
    monkeypatch.undo()
    near = compressed(tmp_path / "near", **given, **OPTIONS)
    choices = load_evaluator(RunFolder(tmp_path / "far")).space.choices
    configs = tried(study_of(tmp_path / "far"), choices)
    assert len(configs) == 10 and {config[EPOCHS] for config in configs} == {1.0, 3.0}
    errors, alone = (errors_of(tmp_path / name, choices) for name in ("far", "near"))
    shared = errors.keys() & alone.keys()
    assert len(shared) >= 4 and {key: errors[key] for key in shared} == {key: alone[key] for key in shared}
    networks = list((tmp_path / "far" / "networks").iterdir())
    assert len(networks) == len(far.result["front"]) and all((n / "model.safetensors").exists() for n in networks)
    assert front_of(far.result) and front_of(near.result)
    assert capfd.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.server
def test_sub_networks_are_evaluated_on_a_cluster_that_loses_a_node(
    cluster: Any, tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    options = {"sampler": "random", "trials": 24, "learning_rate": 3e-3}
    told: list[int] = []
    here: list[str] = []
    spy_on(monkeypatch, here)
    monkeypatch.setattr("archwright.compression.search.TrialCounter.update", dying(cluster, told))
    far = compressed(tmp_path / "far", **given, **options, ray=cluster.address)
    assert len(told) > 3 and cluster.victim is None
    assert set(here) == {"_do"} and len(here) > 10  # nothing but asking nodes
    monkeypatch.undo()
    here.clear()
    spy_on(monkeypatch, here)
    near = compressed(tmp_path / "near", **given, **options)
    assert set(here) == {"total", "repair_here"}
    assert RunFolder(tmp_path / "far").note("order") == RunFolder(tmp_path / "near").note("order")
    choices = load_evaluator(RunFolder(tmp_path / "far")).space.choices
    assert len(tried(study_of(tmp_path / "far"), choices)) == 24
    assert errors_of(tmp_path / "far", choices) == errors_of(tmp_path / "near", choices)
    assert front_of(far.result) == front_of(near.result) != []
    assert capfd.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.server
def test_two_processes_train_and_a_cluster_searches(cluster: Any, tmp_path: Path, given: dict[str, Any]) -> None:
    options = {**QUICK, "sampler": "random", "trials": 8, "learning_rate": 3e-3}
    far, near = (words_of("compress", **given, **options, out=tmp_path / name) for name in ("far", "near"))
    running = split(tmp_path / "log", [[*far, "--ray", cluster.address], near])
    assert running.wait(timeout=600) == 0, (tmp_path / "log" / "0.err").read_text()
    assert [(tmp_path / "log" / f"{rank}.code").read_text() for rank in range(2)] == ["0 0"] * 2
    choices = load_evaluator(RunFolder(tmp_path / "far")).space.choices
    assert len(tried(study_of(tmp_path / "far"), choices)) == 8
    assert errors_of(tmp_path / "far", choices) == errors_of(tmp_path / "near", choices)
    results = [RunFolder(tmp_path / name).note("result") for name in ("far", "near")]
    assert front_of(results[0]) == front_of(results[1]) != []


def spy_on(monkeypatch: pytest.MonkeyPatch, done: list[str]) -> None:
    """Notes what this process measures and repairs itself, and what it asks nodes to evaluate."""
    for owner, name in ((importance.LocalRunner, "total"), (candidates, "repair_here"), (RayNodes, "_do")):
        real = getattr(owner, name)

        def spy(*args: Any, _name: str = name, _real: Any = real, **words: Any) -> Any:
            done.append(_name)
            return _real(*args, **words)

        monkeypatch.setattr(owner, name, spy)


def dying(cluster: Any, told: list[int]) -> Callable[[Any, Any], None]:
    """Counts told trials and kills the second node, busy with another, when the third is told."""

    def count(counter: Any, trial: Any) -> None:
        told.append(0 if trial is None else trial.number)
        if len(told) == 4:
            cluster.remove_node(cluster.victim, allow_graceful=False)
            cluster.victim = None

    return count


def test_ray_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archwright.parallel.ray_cluster.find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"archwright\[ray\]"):
        check_ray("local")


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "auto", "nonsense", "host:port"])
def test_nothing_answers(address: str, tmp_path: Path, given: dict[str, Any], capfd: Any) -> None:
    where = address.format(port=closed_port())
    words = words_of("compress", **given, method="standard", ray=where, out=tmp_path / "run")
    with no_other_cluster():
        code, line = refusal(capfd, words)
    assert code == 2 and repr(where) in line and "ray start" in line
    assert not (tmp_path / "run").exists()
