"""Two processes make the run that one makes with twice the batch; the first of them leads, writes and speaks."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from archwright.cli.main import main
from tests.compression.runs import QUICK, ROOT, compressed, front_of, left_over, refusal, wait_for, words_of

KEPT = ("run.json", "digests.json", "threads.json", "config.yaml", "kept", "plan.json", "original")
"""What a run has whose original is fine-tuned."""
ROUNDED = "key.bias"
"""A bias of all keys changes no attention: its gradient is nothing but rounding, which Adam makes large."""
OPTIONS: dict[str, Any] = {**QUICK, "epochs": 2.0, "original_epochs": 2.0, "learning_rate": 3e-3, "trials": 4}
LARGER = 5.0
RECOVERY = {"params": "100%", "recover_epochs": 1.0, "threads": 1}


class Pair(NamedTuple):
    """What the tests look at: the run of one process, those of two, and what these said."""

    one: Path
    scratch: Path
    half: Path
    whole: Path
    log: Path


def calm(folder: Path, bert: Path) -> Path:
    """The model without dropout, which differs from process to process, and with weights large enough to matter.

    Those of a new BERT are so small that its attention has gradients of the size of rounding, which Adam makes large.
    """
    shutil.copytree(bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    weights = load_file(folder / "model.safetensors")
    matrices = {name: LARGER * value if value.dim() == 2 else value for name, value in weights.items()}
    save_file(matrices, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def split(log: Path, commands: list[list[str]]) -> "subprocess.Popen[str]":
    log.mkdir(exist_ok=True)
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.compression.pair", str(log)],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT,
    )  # fmt: skip
    assert running.stdin is not None
    running.stdin.write(json.dumps(commands))
    running.stdin.close()
    return running


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, bert: Path) -> Path:
    return calm(tmp_path_factory.mktemp("calm") / "bert", bert)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, model: Path, rows: Path) -> Pair:
    place = tmp_path_factory.mktemp("pair")
    found = Pair(*(place / name for name in Pair._fields))
    given = {"model": str(model), "train": rows}
    compressed(found.one, **given, **OPTIONS)
    shutil.copytree(found.one, found.whole)
    assert main(words_of("select", found.one, **RECOVERY)) == 0
    found.half.mkdir()
    for name in KEPT:
        part = found.one / name
        (shutil.copytree if part.is_dir() else shutil.copy)(part, found.half / name)
    plan = json.loads((found.half / "plan.json").read_text())
    assert plan["original"] > 1
    halved = {**OPTIONS, "batch_size": OPTIONS["batch_size"] // 2}
    commands = [
        words_of("compress", **given, **halved, out=found.scratch, json=place / "scratch.json"),
        words_of("compress", **given, **halved, out=found.half),
        words_of("select", found.whole, **RECOVERY),
        words_of("compress", **given, **halved, params="0.001%", out=place / "none"),
        words_of("compress", **given, **halved, out=found.scratch),
    ]
    running = split(found.log, commands)
    assert running.wait(timeout=600) == 0, [(found.log / f"{rank}.err").read_text() for rank in range(2)]
    return found


def differences(ours: Path, theirs: Path) -> dict[str, float]:
    """By parameter, relative to its length, or to a millionth of the whole network's."""
    one, two = load_file(theirs / "model.safetensors"), load_file(ours / "model.safetensors")
    assert one.keys() == two.keys()
    least = 1e-6 * float(torch.stack([value.norm() for value in one.values()]).norm())
    return {
        name: float((two[name] - value).norm()) / max(least, float(value.norm()))
        for name, value in one.items()
        if not name.endswith(ROUNDED)
    }


def test_the_original_is_that_of_the_double_batch(pair: Pair) -> None:
    assert max(differences(pair.scratch / "original", pair.one / "original").values()) < 1e-4
    assert json.loads((pair.scratch / "run.json").read_text())["options"]["batch_size"] == OPTIONS["batch_size"]


def test_order_and_supernet_are_those_of_the_double_batch(pair: Pair) -> None:
    one, two = (json.loads((run / "order.json").read_text()) for run in (pair.one, pair.half))
    assert one["heads"] == two["heads"] and one["units"] == two["units"] and one["layers"] == two["layers"]
    for name in ("head_scores", "unit_scores"):
        np.testing.assert_allclose(np.array(two[name]), np.array(one[name]), rtol=1e-4)
    assert max(differences(pair.half / "supernet", pair.one / "supernet").values()) < 1e-5
    start = max(differences(pair.one / "original", pair.one / "supernet").values())
    assert start > 1e-2  # it was trained at all


def test_teacher_and_candidates_too(pair: Pair) -> None:
    answers, others = (np.load(run / "teacher.npz")["logits"] for run in (pair.one, pair.half))
    np.testing.assert_allclose(others, answers, atol=1e-6)
    plans = [json.loads((run / "plan.json").read_text()) for run in (pair.one, pair.half, pair.scratch)]
    assert {name: n for name, n in plans[0].items() if name != "checksum"} == {
        name: n for name, n in plans[1].items() if name != "checksum"
    }
    assert plans[0]["original"] == plans[2]["original"]


def test_the_same_front(pair: Pair) -> None:
    one, two = (json.loads((run / "result.json").read_text()) for run in (pair.one, pair.half))
    assert front_of(one) == front_of(two)


def test_recovery_is_that_of_the_double_batch(pair: Pair) -> None:
    (own,), (other,) = (list((run / "recovered").iterdir()) for run in (pair.one, pair.whole))
    assert own.name == other.name
    assert max(differences(other, own).values()) < 1e-4


def test_one_process_writes_and_speaks(pair: Pair) -> None:
    assert (pair.log / "1.out").read_text() == "" and (pair.log / "1.err").read_text() == ""
    out, err = ((pair.log / f"0.{name}").read_text() for name in ("out", "err"))
    assert out.count("report:") == 3  # two runs, and the finished one once more
    assert "2 processes train together: a step has 16 rows, about 8 of them in each process" in err
    assert json.loads((pair.scratch.parent / "scratch.json").read_text())["schema"].startswith("archwright/compress")
    assert not any(left_over(run) for run in (pair.scratch, pair.half, pair.whole))


def test_bad_input_is_one_line_and_exit_code_2_of_all(pair: Pair) -> None:
    assert [(pair.log / f"{rank}.code").read_text() for rank in range(2)] == ["0 0 0 2 0"] * 2
    lines = [line for line in (pair.log / "0.err").read_text().splitlines() if line.startswith("archwright: ")]
    assert len(lines) == 1 and "--params must be at least" in lines[0]
    assert not (pair.log.parent / "none").exists()


def test_what_one_process_does_is_refused(monkeypatch: pytest.MonkeyPatch, given: Any, run: Any, capfd: Any) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    for words in (
        words_of("compress", **given, compare=("random",)),
        words_of("compress", **given, dry_run=True),
        words_of("select", run.folder.path, params="50%"),
        ["rank", "nas-bert"],
    ):
        code, line = refusal(capfd, words)
        assert code == 2 and "got 2 of them; leave out torchrun" in line


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_killed_and_run_again_it_is_the_same(victim: int, tmp_path: Path, pair: Pair, given: Any, model: Path) -> None:
    halved = {**OPTIONS, "batch_size": OPTIONS["batch_size"] // 2, "checkpoint_seconds": 0.0}
    words = words_of("compress", model=str(model), train=given["train"], **halved, out=tmp_path / "run")
    log = tmp_path / "log"
    running = split(log, [words])
    wait_for((tmp_path / "run" / "checkpoint-supernet.safetensors").exists)
    os.kill(int((log / f"{victim}.pid").read_text()), signal.SIGKILL)
    assert running.wait(timeout=120) != 0
    assert not (tmp_path / "run" / "result.json").exists()
    again = split(log, [words])
    assert again.wait(timeout=600) == 0, (log / "0.err").read_text()
    for name in ("original", "supernet"):
        one, two = (load_file(run / name / "model.safetensors") for run in (pair.scratch, tmp_path / "run"))
        assert all(torch.equal(two[key], value) for key, value in one.items())
    assert not left_over(tmp_path / "run")


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "archwright"]


def torchrun(words: list[str]) -> "subprocess.Popen[str]":
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*TORCHRUN, *words], text=True, env=environment, start_new_session=True, **pipes)


@pytest.mark.slow
def test_torchrun(tmp_path: Path, pair: Pair, given: Any, model: Path) -> None:
    halved = {**OPTIONS, "batch_size": OPTIONS["batch_size"] // 2, "minutes": 60.0}
    words = words_of("compress", model=str(model), train=given["train"], **halved, out=tmp_path / "run")
    wrong = torchrun([*words, "--label-column", "nothing"])
    _, err = wrong.communicate(timeout=600)
    assert wrong.returncode != 0 and err.count("archwright: ") == 1 and not (tmp_path / "run").exists()
    first = torchrun(words)
    wait_for((tmp_path / "run" / "supernet").exists)
    first.send_signal(signal.SIGTERM)
    _, err = first.communicate(timeout=120)
    assert first.returncode != 0 and err.count("archwright: interrupted") == 1
    again = torchrun(words)
    out, err = again.communicate(timeout=600)
    assert again.returncode == 0, err[-3000:]
    assert out.count("report:") == 1
    one, two = (load_file(run / "original" / "model.safetensors") for run in (pair.scratch, tmp_path / "run"))
    assert all(torch.equal(two[key], value) for key, value in one.items())
