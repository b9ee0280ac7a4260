"""Two processes are one process with twice the rows: their gradients, their weights, their checkpoints."""

import os
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup, buckets, join_process_group
from tests.training.cases import CASES, DEALT, Rows, both, gradients
from tests.training.pair import trained

ROOT = Path(__file__).parents[2]
Pair = tuple[dict[str, Any], dict[str, Any]]
CLOSE = 1e-6


LAUNCHERS = {
    "torchrun": ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"],
    "accelerate": ["accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "-m"],
}


def run(folder: Path, launcher: list[str]) -> Path:
    """Two gloo processes have been here."""
    words = ["-m", *launcher, "tests.training.pair", str(folder)]
    known = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *words], env=known, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("pair"), [])


@pytest.fixture(scope="module")
def pair(folder: Path) -> Pair:
    first, second = (torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(2))
    return first, second


def close(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    """Relative to each tensor; those that are nothing but rounding are measured by the size of all."""
    assert found.keys() == expected.keys()
    size = float(torch.stack([value.norm() for value in expected.values()]).norm())
    for name, value in expected.items():
        assert float((found[name] - value).norm()) <= CLOSE * max(float(value.norm()), CLOSE * size), name


def test_accelerate_tells_the_processes_their_places(pair: Pair) -> None:
    assert [(one["processes"], one["rank"], one["device"]) for one in pair] == [(2, 0, "cpu"), (2, 1, "cpu")]


@pytest.mark.parametrize("name", DEALT)
def test_gradients_are_those_of_the_double_batch(pair: Pair, name: str) -> None:
    case = CASES[name](SINGLE_PROCESS)
    expected = gradients(case, [both(*case.batches[:2])])
    for one in pair:
        close(one[name], expected)
    own = gradients(case, case.batches[:1])
    assert any(float((own[key] - value).norm()) > 1e-3 * float(value.norm()) for key, value in expected.items())


@pytest.mark.parametrize("name", DEALT)
def test_accumulated_on_two_processes_they_are_those_of_four_batches(pair: Pair, name: str) -> None:
    case = CASES[name](SINGLE_PROCESS)
    everything = both(both(*case.batches[:2]), both(*case.batches[2:]))
    expected = gradients(case, [everything])
    for one in pair:
        close(one[f"{name} twice"], expected)
    close(gradients(case, case.batches), expected)  # four batches of one process


def doubled(batches: list[Rows]) -> list[Rows]:
    return [both(*batches[place : place + 2]) for place in range(0, len(batches), 2)]


def test_a_training_of_two_arrives_where_one_does(pair: Pair) -> None:
    case, records = CASES["masked"](SINGLE_PROCESS), []
    expected = trained(replace(case, batches=doubled(case.batches)), SINGLE_PROCESS, records)
    for one in pair:
        close(one["weights"], expected)
    assert all(torch.equal(value, pair[1]["weights"][name]) for name, value in pair[0]["weights"].items())
    assert pair[1]["records"] == []  # the first one alone logs
    found = [(record.step, record.learning_rate, record.tokens) for record in pair[0]["records"]]
    assert found == [(record.step, record.learning_rate, record.tokens) for record in records]
    assert [r.loss for r in pair[0]["records"]] == pytest.approx([r.loss for r in records], rel=1e-5)


def test_two_go_on_bit_by_bit_from_the_checkpoint_of_the_first(pair: Pair, folder: Path) -> None:
    for one in pair:
        assert all(torch.equal(value, one["resumed"][name]) for name, value in one["whole"].items())
        whole, resumed = one["reading"]
        assert whole["rows"] == resumed["rows"] != []
        assert all(torch.equal(whole[key], resumed[key]) for key in whole if key != "rows")
    assert not torch.equal(pair[0]["reading"][0]["0.0"], pair[1]["reading"][0]["0.0"])  # each its own text
    assert (folder / "saved-by-0").read_text().split() == ["2", "3", "4"]
    assert not (folder / "saved-by-1").exists()


def test_a_process_alone_is_alone() -> None:
    group = join_process_group(cpu=True)
    assert (group.processes, group.rank, group.first, group.device.type) == (1, 0, True, "cpu")
    assert group.gather({"a": 1}) == [{"a": 1}]
    assert int(group.count(torch.tensor(5), lambda batch: 7)) == 5


def test_counts_of_a_step_are_over_its_batches() -> None:
    group = ProcessGroup()
    with group.step([2, 5]):
        assert int(group.count(torch.tensor(2), lambda batch: batch)) == 7
    assert int(group.count(torch.tensor(2), lambda batch: batch)) == 2


def test_buckets_are_neighbours_of_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("archwright.training.distributed"), "BUCKET", 5)
    tensors = [torch.zeros(2), torch.zeros(3), torch.zeros(1), torch.zeros(9), torch.zeros(1, dtype=torch.float64)]
    assert [[len(one) for one in bucket] for bucket in buckets(tensors)] == [[2, 3], [1], [9], [1]]


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_launchers_start_the_same(tmp_path: Path, pair: Pair, launcher: str) -> None:
    run(tmp_path, LAUNCHERS[launcher])
    for rank, one in enumerate(pair):
        again = torch.load(tmp_path / f"{rank}.pt", weights_only=False)
        assert all(torch.equal(value, again["weights"][name]) for name, value in one["weights"].items())
