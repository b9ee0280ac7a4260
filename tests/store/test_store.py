"""The store: files whole or not at all, one command per folder, journals and checkpoints that survive."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pytest
import torch
from safetensors import SafetensorError

from archwright.errors import BadInput, Failed
from archwright.store import (
    RunFolder,
    atomic_folder,
    begin_run,
    check_store,
    existing_run,
    files,
    open_study,
    write_atomic,
)
from archwright.store.arrays import read_arrays, write_arrays
from archwright.store.checkpoints import FileCheckpoints
from archwright.store.files import read_json, write_once
from archwright.store.journal import JournalLock
from archwright.store.run import LASTING, MAY_CHANGE

SOURCE = Path(__file__).parents[2] / "src"
OPTIONS = {**dict.fromkeys(MAY_CHANGE), "seed": 0, "objectives": ["flops"], "trials": 5}
WRITER = """
import sys
from pathlib import Path
from archwright.store import write_atomic
path = Path(sys.argv[1])
print("ready", flush=True)
while True:
    for letter in "ab":
        write_atomic(path, letter * 3_000_000)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_cannot_be_finished_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "note.json"
    write_atomic(path, "before")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, "after")
    assert path.read_text() == "before"
    assert names(tmp_path) == ["note.json"]


def test_killed_while_writing_the_file_is_whole(tmp_path: Path) -> None:
    path, rng = tmp_path / "file", random.Random(0)
    for _ in range(8):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], env={"PYTHONPATH": str(SOURCE)}, stdout=subprocess.PIPE
        )
        assert writer.stdout and writer.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0.0, 0.1))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        if path.exists():
            content = path.read_text()
            assert len(content) == 3_000_000 and len(set(content)) == 1


def test_the_first_of_several_writers_wins(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    write_once(path, "first")
    write_once(path, "second")
    assert path.read_text() == "first"
    assert names(tmp_path) == ["table.json"]
    run = RunFolder(tmp_path)
    assert run.note_once("other", {"a": 1}) == run.note_once("other", {"a": 2}) == {"a": 1}


def test_a_folder_appears_at_the_end_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "folder"
    with pytest.raises(KeyboardInterrupt), atomic_folder(target) as beside:
        (beside / "half").write_text("half")
        raise KeyboardInterrupt
    assert names(target.parent) == []
    for content in ("one", "two"):
        with atomic_folder(target) as beside:
            (beside / content).write_text(content)
            assert not (target / content).exists()
        assert names(target) == [content]
    with pytest.raises(Failed, match="could not be written"), atomic_folder(target):
        raise SafetensorError("I/O error: No space left on device")
    assert names(target) == ["two"] and names(target.parent) == ["folder"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"3"])
def test_a_damaged_note_says_which_and_what_to_do(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(Failed, match=r"plan\.json is damaged .*delete it"):
        read_json(tmp_path / "plan.json")


def test_a_run_is_begun_once_and_found_again(tmp_path: Path) -> None:
    run = begin_run(tmp_path / "a" / "run", OPTIONS)
    assert begin_run(run.path, {**OPTIONS, "threads": 7, "out": "elsewhere", "trials": 9}).identity == run.identity
    assert existing_run(run.path).settings == OPTIONS
    assert begin_run(tmp_path / "b", OPTIONS).identity != run.identity
    with pytest.raises(BadInput, match="seed=0, got 1"):
        begin_run(run.path, {**OPTIONS, "seed": 1})
    for foreign in (tmp_path, tmp_path / "a"):
        with pytest.raises(BadInput, match="new or empty"):
            begin_run(foreign, OPTIONS)
        with pytest.raises(BadInput, match=r"run\.json"):
            existing_run(foreign)


def test_an_option_of_a_newer_version_does_not_stop_an_old_run(tmp_path: Path) -> None:
    begin_run(tmp_path / "run", OPTIONS)
    assert begin_run(tmp_path / "run", {**OPTIONS, "invented_later": 3})


def test_a_resumed_run_tells_workers_its_new_options(tmp_path: Path) -> None:
    run = begin_run(tmp_path / "run", OPTIONS)
    identity = run.identity
    run.renew({**OPTIONS, "trials": 50})
    assert (run.settings["trials"], run.identity) == (50, identity)


def test_finished_means_with_these_options(tmp_path: Path) -> None:
    run = begin_run(tmp_path / "run", OPTIONS)
    assert not run.is_complete(OPTIONS)
    run.finish(OPTIONS)
    assert not run.is_complete(OPTIONS)  # no result
    run.note("result", {"schema": "", "original": {}, "front": [], "trials": []})
    run.report.write_text("<html>")
    assert run.is_complete({**OPTIONS, "threads": 3})
    for name in LASTING:
        assert not run.is_complete({**OPTIONS, name: 1})


def hold(path: Path, held: Any, leave: Any) -> None:
    with RunFolder(path).lock():
        held.set()
        leave.wait(300)


def test_one_command_at_a_time_and_the_lock_dies_with_it(tmp_path: Path) -> None:
    context = get_context("spawn")
    held, leave = context.Event(), context.Event()
    other = context.Process(target=hold, args=(tmp_path, held, leave))
    other.start()
    assert held.wait(240)
    with pytest.raises(BadInput, match="archwright worker"), RunFolder(tmp_path).lock():
        pass
    other.kill()
    other.join()
    (tmp_path / ".original.abcdefgh").mkdir()
    (tmp_path / ".original.abcdefgh" / "half").write_text("")
    (tmp_path / ".run.json.abc_1234").write_text("")
    with RunFolder(tmp_path).lock():
        assert names(tmp_path) == [".lock"]


def write_beside(path: Path, held: Any, leave: Any) -> None:
    with atomic_folder(path / "network") as beside:
        (beside / "half").write_text("half")
        held.set()
        leave.wait(300)
        (beside / "whole").write_text("whole")


def test_what_a_living_worker_writes_is_not_swept(tmp_path: Path) -> None:
    context = get_context("spawn")
    held, leave = context.Event(), context.Event()
    other = context.Process(target=write_beside, args=(tmp_path, held, leave))
    other.start()
    assert held.wait(240)
    (tmp_path / ".original.abcdefgh").write_text("of a killed command")
    with RunFolder(tmp_path).lock():
        assert len(names(tmp_path)) == 2  # that of the worker, and the lock
        leave.set()
        other.join()
        assert other.exitcode == 0
    assert names(tmp_path) == [".lock", "network"]
    assert names(tmp_path / "network") == ["half", "whole"]


def test_what_a_killed_worker_wrote_is_swept(tmp_path: Path) -> None:
    context = get_context("spawn")
    held, leave = context.Event(), context.Event()
    other = context.Process(target=write_beside, args=(tmp_path, held, leave))
    other.start()
    assert held.wait(240)
    other.kill()
    other.join()
    with RunFolder(tmp_path).lock():
        assert names(tmp_path) == [".lock"]


def test_two_that_begin_at_once_do_not_replace_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, identity = tmp_path / "run", uuid.uuid4()
    first: list[RunFolder] = []

    def another_is_faster() -> uuid.UUID:
        """Called when the second command has seen an empty folder and is about to write."""
        monkeypatch.setattr("archwright.store.run.uuid.uuid4", lambda: identity)
        first.append(begin_run(path, OPTIONS))
        return uuid.UUID(int=0)

    monkeypatch.setattr("archwright.store.run.uuid.uuid4", another_is_faster)
    with pytest.raises(BadInput, match="seed=0, got 1"):
        begin_run(path, {**OPTIONS, "seed": 1})
    assert first[0].identity == identity.hex and first[0].settings == OPTIONS
    assert names(path) == ["run.json"] and (path / "run.json").stat().st_mode & 0o777 == 0o600


def test_seconds_add_up_over_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, clock = RunFolder(tmp_path), SimpleNamespace(now=100.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("archwright.store.run.time", clock)
    for seconds in (2.0, 3.5):
        with run.phase("search"):
            clock.now += seconds
    assert run.seconds["search"] == 5.5
    with pytest.raises(KeyError), run.phase("order"):
        raise KeyError
    assert set(run.seconds) == {"search", "order"}  # a failed attempt took its time too


def study_in(folder: Path) -> optuna.Study:
    run = begin_run(folder, OPTIONS)
    return open_study(run, None, sampler=optuna.samplers.RandomSampler(), directions=["minimize", "minimize"])


def test_a_journal_cut_short_loses_only_its_last_line(tmp_path: Path) -> None:
    study = study_in(tmp_path / "run")
    for i in range(3):
        study.tell(study.ask(), [float(i), 0.0])
    journal = tmp_path / "run" / "study.journal"
    whole = journal.read_bytes()
    for missing in (1, 5, 30):
        journal.write_bytes(whole[:-missing])
        again = study_in(tmp_path / "run")
        again.tell(again.ask(), [9.0, 9.0])
        assert [t.values for t in again.trials if t.state.is_finished()] == [[0.0, 0.0], [1.0, 0.0], [9.0, 9.0]]
        assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_a_dead_process_leaves_no_lock_on_the_journal(tmp_path: Path) -> None:
    study_in(tmp_path / "run")
    assert names(tmp_path / "run") == ["run.json", "study.journal"]
    lock = JournalLock(tmp_path / "run" / "study.journal")
    lock.acquire()
    lock.release()
    study_in(tmp_path / "run").ask()


def test_a_damaged_journal_says_so(tmp_path: Path) -> None:
    study_in(tmp_path / "run").ask()
    journal = tmp_path / "run" / "study.journal"
    journal.write_bytes(b"\xff\xfe{\n" + journal.read_bytes())
    with pytest.raises(Failed, match=r"study\.journal are damaged"):
        study_in(tmp_path / "run")


def test_stores_that_cannot_be_used(tmp_path: Path) -> None:
    check_store(None)
    for address in ("mysql://u:secret@h/db", "trials.db", "sqlite://", f"sqlite:///{tmp_path}/no/such/folder/t.db"):
        with pytest.raises(BadInput, match="--store") as caught:
            check_store(address)
        assert "\n" not in str(caught.value)


def test_a_training_checkpoint_returns_bit_by_bit(tmp_path: Path) -> None:
    checkpoints = FileCheckpoints(tmp_path / "c.safetensors")
    assert checkpoints.load() is None
    state = {
        "step": 7,
        "model": {"a.weight": torch.randn(3, 4).T, "b": torch.tensor(float("inf"))},
        "optimizer": {0: {"step": torch.tensor(7.0), "exp_avg": torch.randn(4, 3)}, 12: {"step": torch.tensor(1.0)}},
        "carry": {"seen": [[1, 0.5]]},
    }
    checkpoints.save(state)
    found = checkpoints.load()
    assert found and found["step"] == 7 and found["carry"] == {"seen": [[1, 0.5]]}
    assert all(torch.equal(found["model"][name], tensor) for name, tensor in state["model"].items())
    for index, moments in state["optimizer"].items():
        assert all(torch.equal(found["optimizer"][index][name], tensor) for name, tensor in moments.items())
    for damage in (b"", checkpoints.path.read_bytes()[:100], b"x" * 400):
        checkpoints.path.write_bytes(damage)
        with pytest.raises(Failed, match="delete it"):
            checkpoints.load()
    checkpoints.remove()
    checkpoints.remove()
    assert names(tmp_path) == []


def test_a_checkpoint_that_does_not_fit_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = FileCheckpoints(tmp_path / "c.safetensors")
    state = {"step": 1, "model": {"a": torch.ones(3)}, "optimizer": {}, "carry": {}}
    checkpoints.save(state)

    def full(tensors: Any, path: Path, metadata: Any) -> None:
        path.write_bytes(b"half")
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(Failed, match="make room"):
        checkpoints.save({**state, "step": 2})
    found = checkpoints.load()
    assert found and found["step"] == 1 and names(tmp_path) == ["c.safetensors"]


def test_the_store_loads_neither_torch_nor_optuna() -> None:
    code = "import sys, archwright.store; sys.exit(bool({'torch', 'optuna', 'sqlalchemy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(SOURCE)}, check=False).returncode == 0


def test_the_umask_decides_who_may_read(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_atomic(tmp_path / "file", "x")
        with atomic_folder(tmp_path / "folder") as inside:
            (inside / "weights").write_text("x")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {"file": 0o600, "folder": 0o700, "weights": 0o600}
    write_atomic(tmp_path / "file", "x")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~before


def test_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError) as refused:
        write_atomic(tmp_path / "note.json", "x")
    assert refused.value.filename == str(tmp_path / "note.json")


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_folder_is_replaced_also_where_names_cannot_be_exchanged(
    exchanges: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchanges:
        monkeypatch.setattr(files, "find_renameat2", lambda: None)
    for content in ("one", "two"):
        with atomic_folder(tmp_path / "folder") as inside:
            (inside / content).write_text(content)
    assert names(tmp_path) == ["folder"] and names(tmp_path / "folder") == ["two"]


def test_what_was_moved_away_is_put_back(tmp_path: Path) -> None:
    """A kill between the two renames of a system that cannot exchange names."""
    earlier = tmp_path / ".folder.00000000" / files.EARLIER
    earlier.mkdir(parents=True)
    (earlier / "weights").write_text("x")
    files.sweep_folder(tmp_path)
    assert names(tmp_path) == ["folder"] and names(tmp_path / "folder") == ["weights"]


def test_a_sweep_spares_the_living(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "folder") as inside:
        (inside / "weights").write_text("x")
        (tmp_path / ".folder.dead0000").mkdir()
        (tmp_path / ".note.json.dead0000").write_text("of an earlier version")
        files.sweep_folder(tmp_path)
        assert names(tmp_path) == [inside.parent.name]
    assert names(tmp_path) == ["folder"]


def test_a_flipped_bit_of_a_note_is_noticed(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.note("result", {"schema": "x", "error": 0.125})
    assert run.note("result") == {"schema": "x", "error": 0.125}
    path = tmp_path / "result.json"
    path.write_text(path.read_text().replace("0.125", "0.124"))
    with pytest.raises(Failed, match=r"result\.json is damaged \(its checksum"):
        run.note("result")
    path.write_text('{"schema": "of an earlier version"}')
    assert run.note("result") == {"schema": "of an earlier version"}


def test_deep_json_is_damage(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("[" * 100_000)
    with pytest.raises(Failed, match="is damaged"):
        read_json(tmp_path / "plan.json")


def test_flipped_bits_of_a_checkpoint_are_noticed(tmp_path: Path) -> None:
    checkpoints = FileCheckpoints(tmp_path / "check.safetensors")
    weights = {"a": torch.arange(300.0), "b": torch.ones(3, dtype=torch.bfloat16), "c": torch.tensor(2.0)}
    checkpoints.save({"step": 3, "model": weights, "optimizer": {0: {"exp": torch.ones(4)}}, "carry": {}})
    state = checkpoints.load()
    assert state is not None and torch.equal(state["model"]["a"], weights["a"])
    raw = bytearray(checkpoints.path.read_bytes())
    raw[-40] ^= 4
    checkpoints.path.write_bytes(raw)
    with pytest.raises(Failed, match="delete it to train from the start"):
        checkpoints.load()


def test_every_flipped_bit_of_a_journal_is_noticed(tmp_path: Path) -> None:
    """Or changes nothing: one in the name of a checksum, or one that cuts off the last line."""
    run = begin_run(tmp_path / "run", OPTIONS)

    def read() -> list[Any]:
        study = open_study(run, None, sampler=optuna.samplers.RandomSampler(), directions=["minimize"])
        return [(trial.number, trial.values, trial.params, trial.state) for trial in study.get_trials()]

    study = open_study(run, None, sampler=optuna.samplers.RandomSampler(seed=0), directions=["minimize"])
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    journal, rng = run.path / "study.journal", random.Random(0)
    whole, expected, noticed = journal.read_bytes(), read(), 0
    for _ in range(150):
        raw, place = bytearray(whole), rng.randrange(len(whole) - 1)
        raw[place] ^= 1 << rng.randrange(8)
        journal.write_bytes(raw)
        try:
            assert read() == expected
        except Failed as error:
            noticed += 1
            assert "study.journal" in str(error) and "delete it" in str(error)
    assert noticed > 120


def test_a_flipped_bit_of_arrays_is_noticed(tmp_path: Path) -> None:
    path, rng = tmp_path / "rows.npz", random.Random(0)
    arrays = {"ids": np.arange(500), "targets": np.ones(7, np.float32)}
    write_arrays(path, arrays)
    whole = path.read_bytes()
    for _ in range(200):
        raw, place = bytearray(whole), rng.randrange(len(whole))
        raw[place] ^= 1 << rng.randrange(8)
        path.write_bytes(raw)
        try:
            found = read_arrays(path)
            assert found.keys() == arrays.keys() and all((found[name] == arrays[name]).all() for name in arrays)
        except Failed as error:
            assert "rows.npz is damaged" in str(error)
