"""Exports, trying and inspecting on a real run; the form that starts runs."""

import json
import shlex
import time
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from archwright.commands import COMMANDS
from archwright.web.app import create_app
from archwright.web.folder import open_folder
from archwright.web.jobs import Busy, Jobs
from archwright.web.security import choose_access
from tests.web.served import write_search

ORIGIN = {"origin": "http://127.0.0.1:8321"}


@pytest.fixture
def starter(folder: Path) -> Iterator[TestClient]:
    access = choose_access("127.0.0.1", None, ())
    app = create_app(open_folder(folder), access, start_options=COMMANDS["compress"].first)
    with TestClient(app, base_url="http://127.0.0.1:8321", headers=ORIGIN) as client:
        yield client


def test_the_form_shows_the_equal_command(starter: TestClient, folder: Path) -> None:
    options = {"model": "my model", "train": "rows.csv", "trials": "12", "params": "50%"}
    answer = starter.post("/api/command", json={"name": "new", "options": options}).json()
    words = shlex.split(answer["command"])
    assert words[:2] == ["archwright", "compress"]
    assert set(words[2:]) == {
        "--model=my model",
        "--train=rows.csv",
        "--trials=12",
        "--params=50%",
        f"--out={folder}/new",
    }


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("../out", {}, "the name must be a new folder"),
        ("/tmp/out", {}, "the name must be a new folder"),
        ("", {}, "the name must be a new folder"),
        (".hidden", {}, "the name must be a new folder"),
        ("a/../../b", {}, "the name must be a new folder"),
        ("new", {"trials": "none"}, "--trials must be a whole number"),
        ("new", {"out": "/tmp/x"}, "unknown option 'out'"),
        ("new", {"store": "sqlite:////tmp/x"}, "unknown option 'store'"),
        ("new", {"for_": "paper"}, "--for must be one of"),
        ("new", {"trials": 3}, "options must be texts"),
        ("one", {}, "which exists"),
    ],
    ids=str,
)
def test_what_cannot_be_started_says_why(starter: TestClient, name: str, options: dict[str, Any], words: str) -> None:
    answer = starter.post("/api/start", json={"name": name, "options": options})
    assert answer.status_code == 400 and words in answer.json()["error"]
    assert starter.get("/api/jobs").json()["jobs"] == []


def test_only_stopped_runs_are_resumed_and_only_own_ones_stopped(starter: TestClient, folder: Path) -> None:
    assert "only a run that was stopped" in starter.post("/api/resume/one", json={}).json()["error"]
    assert "started on this page" in starter.post("/api/stop/one", json={}).json()["error"]
    run = write_search(folder / "busy")
    with run.lock():
        assert "is running" in starter.post("/api/resume/busy", json={}).json()["error"]


def wait_for_end(client: TestClient, job: dict[str, Any]) -> dict[str, Any]:
    until = time.monotonic() + 300
    while job["state"] == "running":
        assert time.monotonic() < until
        time.sleep(0.2)
        job = client.get(f"/api/jobs/{job['id']}").json()
    return job


def test_a_run_that_fails_says_why(starter: TestClient) -> None:
    job = starter.post("/api/start", json={"name": "new", "options": {"train": "/nothing/here.csv"}}).json()
    job = wait_for_end(starter, job)
    assert job["state"] == "failed" and "/nothing/here.csv" in job["error"]


def test_jobs_are_limited() -> None:
    jobs = Jobs()
    try:
        first = jobs.start("export", ["--version"], about={}, most=1)
        with pytest.raises(Busy):
            jobs.start("export", ["--version"], about={}, most=1)
        first.process.wait(timeout=120)
        jobs.start("export", ["--version"], about={}, most=1)
    finally:
        jobs.close()


def test_a_stopped_job_is_gone_before_another_begins() -> None:
    jobs = Jobs()
    try:
        first = jobs.start("run", ["--version"], about={"run": "one"}, most=1)
        jobs.stop(first)
        jobs.wait_for_stopped()
        assert first.state == "ended"
        jobs.start("run", ["--version"], about={"run": "one"}, most=1)
        assert [job.about["run"] for job in jobs.all()] == ["one", "one"]
    finally:
        for job in jobs.all():
            job.process.wait(timeout=120)
        jobs.close()


@pytest.fixture(scope="module")
def real(run: Any) -> Iterator[TestClient]:
    """The folder of a run that was really made."""
    access = choose_access("127.0.0.1", None, ())
    app = create_app(open_folder(run.folder.path.parent), access)
    with TestClient(app, base_url="http://127.0.0.1:8321", headers=ORIGIN) as client:
        yield client


@pytest.mark.slow
def test_a_real_sub_network_answers_is_inspected_and_exported(real: TestClient, run: Any) -> None:
    member = run.front[0]
    where = f"{member['trial']}/{run.folder.path.name}"
    answers = real.post(f"/api/try/{where}", json={"text": "the film is lovely"}).json()
    assert "error" not in answers, answers
    for side in ("original", "subnetwork"):
        assert set(answers[side]["labels"]) == {"bad", "good"}
        assert sum(answers[side]["labels"].values()) == pytest.approx(1.0, abs=1e-5)
        assert answers[side]["milliseconds"] > 0
    assert "1 to 5,000 characters" in real.post(f"/api/try/{where}", json={"text": " "}).json()["error"]
    found = real.get(f"/api/inspect/{where}").json()
    rows = run.result["rows"]["test"]
    for side, network in (("original", run.result["original"]), ("subnetwork", member)):
        matrix = found["confusion"][side]
        wrong = rows - sum(matrix[at][at] for at in range(len(matrix)))
        assert wrong / rows == pytest.approx(network["test_error"], abs=1e-9)  # the errors that the run itself reports
    apart = [row for row in found["different"] if row["original"] != row["subnetwork"]]
    assert len(apart) == len(found["different"]) == round(rows * (1 - found["agreement"]))
    job = wait_for_end(real, real.post(f"/api/export/{where}", json={"to": "compact"}).json())
    assert job["state"] == "done" and job["result"]["format"] == "compact"
    with zipfile.ZipFile(BytesIO(real.get(job["download"]).content)) as packed:
        names = {Path(name).name for name in packed.namelist()}
        assert {"config.json", "model.safetensors", "parity.json"} <= names
    assert json.loads((run.folder.path / "result.json").read_text()) == run.result
