"""Death and company: killed searches go on as if nothing had happened, several workers share without loss."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import optuna
import pytest
from designs import MIXED, OBJECTIVES, SPACES, Designs, corners, journal, open_storage, open_study
from optuna.trial import FrozenTrial, TrialState, create_trial

from archwright.search import Choices, Config, Objective, config_of, front, search, settle_trials
from archwright.search.heartbeat import (
    BEAT_SECONDS,
    HEARTBEAT,
    STALE_SECONDS,
    WORKER,
    Heartbeat,
    HeartbeatMonitor,
    has_ended,
    lock_file,
)
from archwright.search.history import RETRY_OF, valid_trials
from archwright.search.workers import fail_stale_trials
from tests.postgres import postgres_folder, server_in

SCRIPT = Path(__file__).with_name("worker.py")
SOURCE = Path(__file__).parents[2] / "src"


Worker = subprocess.Popen[str]


def ready(address: str, space: str, sampler: str, trials: int, seconds: float) -> Worker:
    """A worker that has opened the study."""
    command = [sys.executable, str(SCRIPT), address, space, sampler, str(trials), str(seconds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    worker = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(SOURCE)}, text=True, **pipes)
    assert worker.stdout and worker.stdout.readline() == "ready\n"
    return worker


def begin(worker: Worker) -> None:
    assert worker.stdin
    worker.stdin.write("go\n")
    worker.stdin.flush()


def start(address: str, space: str, sampler: str, trials: int, seconds: float) -> Worker:
    """A worker at work."""
    worker = ready(address, space, sampler, trials, seconds)
    begin(worker)
    return worker


def kill(worker: Worker) -> bool:
    """False when it had ended by itself."""
    ended = worker.poll() is not None
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    return not ended


def told_configs(study: optuna.Study, choices: Choices) -> list[Config]:
    done = [trial for trial in study.trials if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    return [config_of(choices, trial) for trial in done]


def values_of(trials: list[FrozenTrial]) -> list[list[float]]:
    return [trial.values for trial in trials]


KILLED = [("mixed", "nsga2"), ("large", "local"), ("small", "evolution"), ("rungs", "mo-asha")]


@pytest.mark.parametrize("kills", [2, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("space", "sampler"), KILLED)
def test_killed_again_and_again_ends_as_undisturbed(tmp_path: Path, space: str, sampler: str, kills: int) -> None:
    choices, address = SPACES[space], journal(tmp_path)
    whole = open_study(None, choices, sampler=sampler, seed=3, first=corners(choices))
    search(whole, Designs(choices), OBJECTIVES, trials=45)
    moments = random.Random(space)
    for _ in range(kills):
        worker = start(address, space, sampler, trials=45, seconds=0.005)
        time.sleep(moments.uniform(0.0, 0.35))
        kill(worker)
    assert start(address, space, sampler, trials=45, seconds=0.0).wait(timeout=200) == 0
    study = open_study(open_storage(address), choices)
    assert told_configs(study, choices) == told_configs(whole, choices)
    assert values_of(front(study.trials)) == values_of(front(whole.trials))
    assert not [trial for trial in study.trials if not trial.state.is_finished()]


def told_by(study: optuna.Study) -> set[int]:
    """The processes that have told a trial."""
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return {trial.user_attrs[WORKER]["pid"] for trial in done}


def check_shared(address: str, workers: list[Worker], trials: int) -> optuna.Study:
    """Kills one of the workers when all have told something; the rest must end with exactly the wanted trials."""
    study, pids = open_study(open_storage(address), MIXED), {worker.pid for worker in workers}
    for worker in workers:
        begin(worker)
    while told_by(study) != pids and any(worker.poll() is None for worker in workers):
        time.sleep(0.01)
    assert kill(workers.pop())
    assert [worker.wait(timeout=200) for worker in workers] == [0] * len(workers)
    study = open_study(open_storage(address), MIXED)
    assert len([trial for trial in study.trials if trial.state is TrialState.COMPLETE]) == trials
    assert all(trial.state.is_finished() for trial in study.trials)
    assert told_by(study) == pids
    return study


def check_lost_were_tried_again_once(study: optuna.Study) -> None:
    lost = [trial for trial in study.trials if "lost" in trial.user_attrs]
    retries = {
        t.user_attrs[RETRY_OF]: t for t in study.trials if RETRY_OF in t.user_attrs and t.state.name == "COMPLETE"
    }
    assert len(lost) <= 1  # the killed one may have died between two trials
    for trial in lost:
        if len(trial.params) == len(study.trials[0].params):
            assert retries[trial.number].params == trial.params


def test_three_workers_on_a_journal_file_one_dies(tmp_path: Path) -> None:
    address = journal(tmp_path)
    workers = [ready(address, "mixed", "evolution", trials=40, seconds=0.1) for _ in range(3)]
    check_lost_were_tried_again_once(check_shared(address, workers, trials=40))


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a fresh database on a real server."""
    with postgres_folder() as folder:
        server = server_in(folder)
        name = "s" + uuid4().hex[:8]
        server.psql(f"CREATE DATABASE {name};")
        yield server.get_uri(database=name, driver="psycopg")
        server.cleanup()


@pytest.mark.server
def test_four_workers_on_postgresql_one_dies(postgres: str) -> None:
    open_study(open_storage(postgres), MIXED)  # two processes must not lay out the tables at once
    workers = [ready(postgres, "mixed", "nsga2", trials=40, seconds=0.2) for _ in range(4)]
    check_lost_were_tried_again_once(check_shared(postgres, workers, trials=40))


@pytest.mark.server
@pytest.mark.parametrize("pauses", [(0.3, 0.05), pytest.param((0.3, 0.05, 0.5), marks=pytest.mark.slow)], ids=len)
def test_killed_on_postgresql_ends_as_undisturbed(postgres: str, pauses: tuple[float, ...]) -> None:
    optuna.delete_study(study_name="search", storage=postgres)
    whole = open_study(None, MIXED, sampler="nsga2", seed=3, first=corners(MIXED))
    search(whole, Designs(MIXED), OBJECTIVES, trials=25)
    for pause in pauses:
        worker = start(postgres, "mixed", "nsga2", trials=25, seconds=0.01)
        time.sleep(pause)
        kill(worker)
    assert start(postgres, "mixed", "nsga2", trials=25, seconds=0.0).wait(timeout=200) == 0
    study = open_study(open_storage(postgres), MIXED)
    assert told_configs(study, MIXED) == told_configs(whole, MIXED)


def running(study: optuna.Study, worker: str | None, **params: Any) -> int:
    """A trial that the worker of this id has begun; its number."""
    attrs = {} if worker is None else {WORKER: {"id": worker, "host": socket.gethostname(), "pid": os.getpid()}}
    study.add_trial(create_trial(state=TrialState.RUNNING, user_attrs=attrs, **params))
    return len(study.trials) - 1


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a worker of this machine that was killed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lock_file("killed").touch()
    return "killed"


class Clock:
    """A clock that goes when it is told to."""

    now = 5000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in ("heartbeat", "workers"):
        monkeypatch.setattr(f"archwright.search.{module}.time", clock)
    return clock


def beat(study: optuna.Study, number: int, count: int) -> None:
    identity = study._storage.get_trial_id_from_study_id_trial_number(study._study_id, number)
    study._storage.set_trial_user_attr(identity, HEARTBEAT, count)


def test_death_on_this_machine_is_known_at_once(ended: str) -> None:
    study, monitor = open_study(None, MIXED), HeartbeatMonitor()
    with Heartbeat(study) as living:
        running(study, living.id)
        running(study, ended)
        running(study, "of another machine, by the same host name and process id")
        running(study, None)
        assert fail_stale_trials(study, monitor) == [1]
        assert [trial.state.name for trial in study.trials] == ["RUNNING", "FAIL", "RUNNING", "RUNNING"]
        assert [trial.number for trial in study.trials if trial.user_attrs.get("lost")] == [1]
        assert not lock_file(ended).exists()
    assert not lock_file(living.id).exists()


def test_a_silent_worker_elsewhere_is_dead_and_one_that_beats_works_for_days(clock: Clock) -> None:
    study, monitor = open_study(None, MIXED), HeartbeatMonitor()
    slow, silent, nameless = running(study, "slow"), running(study, "silent"), running(study, None)
    for beats in range(6):
        assert fail_stale_trials(study, monitor) == []
        clock.sleep(BEAT_SECONDS)
        beat(study, slow, beats)
    assert fail_stale_trials(study, monitor) == [silent, nameless]
    for beats in range(6, 3 * 24 * 180):
        clock.sleep(BEAT_SECONDS)
        if beats % 700 == 0:
            assert fail_stale_trials(study, monitor) == []
        beat(study, slow, beats)
    assert study.trials[slow].state is TrialState.RUNNING


def test_nobody_is_dead_because_nobody_looked(clock: Clock) -> None:
    """While a database is gone, or this machine asleep, there is nothing to see."""
    study, monitor = open_study(None, MIXED), HeartbeatMonitor()
    running(study, "elsewhere")
    assert fail_stale_trials(study, monitor) == []
    clock.sleep(10_000)
    assert fail_stale_trials(study, monitor) == []


def test_a_worker_beats_in_its_own_trials_only() -> None:
    study = open_study(None, MIXED)
    with Heartbeat(study) as living:
        own, other = running(study, living.id), running(study, "other")
        living.beat()
        living.beat()
    assert study.trials[own].user_attrs[HEARTBEAT] == 2
    assert HEARTBEAT not in study.trials[other].user_attrs


def test_an_interrupted_worker_gives_its_trial_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(None, MIXED)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt), Heartbeat(study) as living:
        own, other = running(study, living.id), running(study, "other")
        raise KeyboardInterrupt
    assert [study.trials[number].state.name for number in (own, other)] == ["FAIL", "RUNNING"]
    with pytest.raises(KeyboardInterrupt), Heartbeat(study) as living:
        number = running(study, living.id)
        monkeypatch.setattr(study, "tell", None)  # as if the database were gone
        raise KeyboardInterrupt
    assert has_ended(study.trials[number])  # which the next command sees


def test_a_search_that_goes_on_waits_until_it_knows_who_lives(clock: Clock, ended: str, caplog: Any) -> None:
    study = open_study(None, MIXED)
    with Heartbeat(study) as living:
        running(study, living.id)
        running(study, ended)
        settle_trials(study)
        assert clock.now == Clock.now and not caplog.records
        beating, silent = running(study, "beating"), running(study, "silent")

        def sleep(seconds: float) -> None:
            clock.now += seconds
            beat(study, beating, int(clock.now / BEAT_SECONDS))

        clock.sleep = sleep  # type: ignore[method-assign]
        settle_trials(study)
    assert [trial.state.name for trial in study.trials] == ["RUNNING", "FAIL", "RUNNING", "FAIL"]
    assert clock.now == pytest.approx(Clock.now + STALE_SECONDS, abs=2)
    assert [trial.number for trial in study.trials if "lost" in trial.user_attrs] == [1, silent]
    assert len(caplog.records) == 1


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    study = open_study(open_storage(journal(tmp_path)), MIXED)
    worker = start(journal(tmp_path), "mixed", "random", trials=2, seconds=100)
    while not [trial for trial in study.get_trials(deepcopy=False) if WORKER in trial.user_attrs]:
        time.sleep(0.05)
    trial = study.trials[0]
    assert has_ended(trial) is False
    kill(worker)
    assert has_ended(trial) is True
    assert fail_stale_trials(study, HeartbeatMonitor()) == [0]
    assert has_ended(trial) is None


def die(study: optuna.Study, number: int, worker: str) -> None:
    """As if this worker had died before telling the told trial."""
    trial = study.trials[number]
    lock_file(worker).touch()
    attrs = {key: value for key, value in trial.user_attrs.items() if key == RETRY_OF}
    attrs[WORKER] = {"id": worker}
    study.add_trial(
        create_trial(state=TrialState.RUNNING, params=trial.params, distributions=trial.distributions, user_attrs=attrs)
    )


def test_a_lost_config_is_tried_once_more_and_not_a_third_time(ended: str) -> None:
    study = open_study(None, MIXED)
    search(study, Designs(MIXED), OBJECTIVES, trials=2)
    die(study, 0, ended)
    search(study, Designs(MIXED), OBJECTIVES, trials=3)
    assert study.trials[3].user_attrs[RETRY_OF] == 2
    assert study.trials[3].params == study.trials[2].params
    die(study, 3, ended)
    search(study, Designs(MIXED), OBJECTIVES, trials=4)
    assert study.trials[4].state is TrialState.FAIL
    assert RETRY_OF not in study.trials[5].user_attrs
    assert len(valid_trials(study.trials)) == 4


def test_two_that_notice_the_same_death_count_once() -> None:
    study = open_study(None, MIXED)
    search(study, Designs(MIXED), OBJECTIVES, trials=1)
    study.add_trial(create_trial(state=TrialState.FAIL, user_attrs={"lost": True}))
    for _ in range(2):
        study.add_trial(create_trial(state=TrialState.RUNNING, user_attrs={RETRY_OF: 1, WORKER: {"id": "any"}}))
    assert [trial.number for trial in valid_trials(study.trials)] == [0, 2]


def test_a_worker_given_up_too_early_does_no_harm() -> None:
    """Its trial was told FAIL elsewhere while it measured: the result is dropped, the search goes on."""
    study = open_study(None, MIXED)

    def robbed(candidate: object) -> float:
        if len(study.trials) == 2:
            study.tell(1, state=TrialState.FAIL)
        return 1.0

    search(study, Designs(MIXED), [Objective("a", robbed), OBJECTIVES[1]], trials=4)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE", "COMPLETE"]
