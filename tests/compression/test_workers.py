"""Several processes on one run: they share the trials, nothing is lost when one is killed, nothing is counted twice."""

import signal
from pathlib import Path
from typing import Any

import pytest

from archwright.compression.methods import load_evaluator
from archwright.objectives.error import measure_rows
from archwright.search import config_of, settle_trials
from archwright.search.heartbeat import WORKER
from archwright.search.history import RETRY_OF
from archwright.store import RunFolder
from tests.compression.runs import (
    QUICK,
    compressed,
    ended,
    process,
    refusal,
    stopped,
    study_of,
    table_file,
    tried,
    wait_for,
    words_of,
    workers_of,
)
from tests.postgres import postgres_folder, server_in

TRIALS = 40
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="session")
def slow_rows(place: Path) -> dict[str, Any]:
    """Enough validation rows that a trial takes a while."""
    return {"train": table_file(place / "few.csv", 60), "validation": table_file(place / "many.csv", 1500, seed=1)}


def check_shared(tmp_path: Path, bert: Path, rows: dict[str, Any], store: str | None) -> None:
    """Two workers on a run, one of them killed."""
    out, options = tmp_path / "run", {"model": str(bert), "store": store, **rows}
    options = {name: value for name, value in options.items() if value is not None}
    compressed(out, **options, trials=2)
    study, space = study_of(out, store), load_evaluator(RunFolder(out)).space
    RunFolder(out).renew({"trials": TRIALS})
    words = ["worker", str(out), "--quiet"]
    victim, survivor = (process(words, stdout=None, stderr=None) for _ in range(2))
    survivor.send_signal(signal.SIGSTOP)  # or it might do everything before the other one has begun
    wait_for(stopped(study, space.choices, victim))
    victim.kill()
    survivor.send_signal(signal.SIGCONT)
    assert victim.wait() == -signal.SIGKILL
    assert survivor.wait(timeout=400) == 0
    study = study_of(out, store)
    assert len(tried(study, space.choices)) == TRIALS
    lost = [trial for trial in study.trials if "lost" in trial.user_attrs]
    again = [trial for trial in study.trials if RETRY_OF in trial.user_attrs]
    assert [trial.user_attrs[RETRY_OF] for trial in again] == [trial.number for trial in lost] and len(lost) == 1
    assert config_of(space.choices, again[0]) == config_of(space.choices, lost[0])
    assert workers_of(study)[survivor.pid] + workers_of(study).get(victim.pid, 0) == TRIALS - 2
    result = compressed(out, **options, trials=TRIALS).result
    assert len({row["trial"] for row in result["trials"]}) == len(result["trials"]) == TRIALS


@pytest.mark.slow  # the tables are those of PostgreSQL, by the same code
def test_sqlite_one_of_two_killed(tmp_path: Path, bert: Path, slow_rows: dict[str, Any]) -> None:
    check_shared(tmp_path, bert, slow_rows, f"sqlite:///{tmp_path / 'trials.db'}")


@pytest.mark.slow
def test_journal_one_of_two_killed(tmp_path: Path, bert: Path, slow_rows: dict[str, Any]) -> None:
    check_shared(tmp_path, bert, slow_rows, None)


@pytest.mark.server
def test_postgresql_one_of_two_killed(postgres: str, tmp_path: Path, bert: Path, slow_rows: dict[str, Any]) -> None:
    check_shared(tmp_path, bert, slow_rows, postgres)


def test_workers_started_by_compress(tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"

    def unhurried(*args: Any, **options: Any) -> Any:
        """In this process only: the other is given the time to begin."""
        if (run / "study.journal").exists():
            wait_for(lambda: len({trial.user_attrs[WORKER]["pid"] for trial in study_of(run).trials}) == 2, every=0.1)
        return measure_rows(*args, **options)

    monkeypatch.setattr("archwright.training.task_data.measure_rows", unhurried)
    found = compressed(run, **given, trials=60, workers=2, space="large").result
    assert len({row["trial"] for row in found["trials"]}) == len(found["trials"]) == 60
    shares = workers_of(study_of(run))
    assert len(shares) == 2 and sum(shares.values()) == 60


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_workers_end_with_the_command_that_started_them(
    tmp_path: Path, bert: Path, slow_rows: dict[str, Any], number: signal.Signals
) -> None:
    """A caller that reads the command's stderr sees its end, which comes when the last process is gone."""
    out = tmp_path / "run"
    options = {**QUICK, "model": str(bert), **slow_rows, "trials": 5000, "workers": 2, "space": "large"}
    command = process(words_of("compress", **options, out=out, quiet=True))
    wait_for(lambda: (out / "study.journal").exists() or command.poll() is not None)
    wait_for(lambda: len(workers_of(study_of(out))) == 2 or command.poll() is not None, every=0.5)
    command.send_signal(number)
    _, err = command.communicate(timeout=100)
    if number == signal.SIGKILL:
        assert (command.returncode, err) == (-signal.SIGKILL, "")
    else:
        assert (command.returncode, err.partition(";")[0]) == (130, "archwright: interrupted") and err.count("\n") == 1
        settle_trials(study := study_of(out))  # knows at once of what a worker had no time to give back
        assert all(trial.state.is_finished() for trial in study.trials)


def test_a_worker_of_a_finished_run_has_nothing_to_do(run: Any) -> None:
    code, out, err = ended(["worker", str(run.folder.path)])
    assert (code, err) == (0, "") and out.startswith("0 trials evaluated")
    assert len(study_of(run.folder.path).trials) == 14


def test_a_worker_waits_for_the_super_network_only_so_long(tmp_path: Path, run: Any, capfd: Any) -> None:
    (tmp_path / "run.json").write_bytes((run.folder.path / "run.json").read_bytes())
    code, line = refusal(capfd, ["worker", str(tmp_path), "--wait-minutes", "0"])
    assert code == 1 and "archwright compress" in line


@pytest.mark.slow
@pytest.mark.server
def test_a_database_that_goes_away_and_comes_back(tmp_path: Path, given: dict[str, Any]) -> None:
    out = tmp_path / "run"
    with postgres_folder() as folder:
        server = server_in(folder)
        store = server.get_uri()
        options = {**QUICK, **given, "store": store, "out": out, "quiet": True}
        compressed(out, **given, store=store, trials=2)
        study = study_of(out, store)
        command = process(words_of("compress", **{**options, "trials": 5000}))
        wait_for(lambda: len(study.get_trials(deepcopy=False)) > 5 or command.poll() is not None)
        server.cleanup()
        _, err = command.communicate(timeout=200)
        assert command.returncode == 1
        assert len(err.splitlines()) == 1 and err.startswith("archwright: the database does not answer any more")
        server = server_in(folder)
        assert server.get_uri() == store
        assert ended(words_of("compress", **{**options, "trials": 20})) == (0, "", "")
        assert len(tried(study_of(out, store), load_evaluator(RunFolder(out)).space.choices)) >= 20
        server.cleanup()
