"""`archwright serve` on the command line and in Python: what it refuses, and how it ends."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import archwright as aw
from tests.compression.runs import ROOT, refusal
from tests.web.served import serving, write_finished, write_search


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["missing"], "RUNS_DIR must be a folder with runs, got missing"),
        ([".", "--port", "70000"], "--port must be between 0 and 65535"),
        ([".", "--port", "many"], "--port must be a whole number"),
        ([".", "--host", "203.0.113.7", "--port", "0"], "--host must be an address of this machine"),
        ([".", "--host", "no such host", "--port", "0"], "--host must be an address of this machine"),
        ([".", "--token", "short", "--port", "0"], "--token must have at least 8 characters"),
    ],
    ids=lambda value: str(value),
)
def test_bad_input_is_one_line(
    words: list[str], rule: str, capfd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, line = refusal(capfd, ["serve", *words])
    assert code == 2 and rule in line


def test_a_file_is_no_folder(capfd: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, line = refusal(capfd, ["serve", str(tmp_path / "file")])
    assert code == 2 and "RUNS_DIR must be a folder" in line


def test_a_port_in_use_is_one_line(capfd: Any, tmp_path: Path, taken: int) -> None:
    code, line = refusal(capfd, ["serve", str(tmp_path), "--port", str(taken)])
    assert code == 2 and f"--port must be free, got {taken}" in line and "0 for any" in line


def test_ctrl_c_ends_it_although_pages_watch(tmp_path: Path, result: dict[str, Any]) -> None:
    write_finished(tmp_path / "one", result)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "archwright", "serve", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        address = re.search(r"http://\S+", process.stderr.readline())
        assert address
        try:
            with urllib.request.urlopen(f"{address[0]}api/events", timeout=200) as events:
                assert events.readline() == b"event: runs\n"
                process.send_signal(signal.SIGINT)
                rest = process.stderr.read()
                assert process.wait(timeout=200) in (0, 130)
        finally:
            process.kill()
    assert "Traceback" not in rest


def test_in_a_console_it_goes_on_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: dict[str, Any]
) -> None:
    write_finished(tmp_path / "one", result)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    page = aw.serve(tmp_path, port=0)
    try:
        assert page.address in repr(page) and page.address in page._repr_html_()
        with urllib.request.urlopen(f"{page.address}api/runs", timeout=60) as answer:
            assert b'"name":"one"' in answer.read()
    finally:
        page.close()


@contextmanager
def connection(address: str) -> Iterator[http.client.HTTPConnection]:
    host = address.removeprefix("http://").split("/")[0]
    link = http.client.HTTPConnection(host, timeout=60)
    try:
        yield link
    finally:
        link.close()


@pytest.mark.parametrize(
    "path", ["/run/../../secret", "/run/..", "/assets/x/../../../../etc/passwd", "//etc/passwd", "/api/run/../secret"]
)
def test_paths_are_not_climbed_by_raw_requests(tmp_path: Path, result: dict[str, Any], path: str) -> None:
    """As no browser would send them."""
    write_finished(tmp_path / "runs" / "one", result)
    write_finished(tmp_path / "secret", result | {"model": "SECRET-MODEL"})
    with serving(tmp_path / "runs") as server, connection(server.address) as link:
        link.putrequest("GET", path)
        link.endheaders()
        answer = link.getresponse()
        body = answer.read().decode()
        assert answer.status == 404 and "SECRET-MODEL" not in body and "root:" not in body


def test_a_locked_search_is_not_disturbed_by_watching(tmp_path: Path) -> None:
    """Whoever wants the lock gets it at once, however many look."""
    run = write_search(tmp_path / "search", trials=3)
    with serving(tmp_path) as server:
        for _ in range(20):
            urllib.request.urlopen(f"{server.address}api/runs", timeout=60).read()
            with run.lock():
                pass
