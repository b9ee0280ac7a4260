"""What a launcher tells a process, and what is kept from those that it starts itself."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from archwright.parallel import launcher


def test_alone_unless_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert (launcher.launched_processes(), launcher.processes_here(), launcher.is_first()) == (1, 1, True)
    monkeypatch.setenv("WORLD_SIZE", "8")  # some job systems set it for everything
    assert launcher.launched_processes() == 1
    for name, value in {"RANK": "3", "LOCAL_WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    assert (launcher.launched_processes(), launcher.processes_here(), launcher.is_first()) == (8, 4, False)


def test_workers_are_not_told() -> None:
    told = {"RANK": "0", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "x", "LOCAL_RANK": "0", "HOME": "/", "RANKING": "1"}
    assert launcher.unlaunched_environment(told) == {"HOME": "/", "RANKING": "1"}


LAUNCHED = """
import os, sys, time
from archwright.parallel.launcher import end_with_launcher
child = os.fork()
if child:
    print(child, flush=True)
    time.sleep(60)
os.environ |= {"RANK": "0", "WORLD_SIZE": "2"}
end_with_launcher()
open(sys.argv[1], "w").close()
time.sleep(60)
print("survived", flush=True)
"""


def test_a_launched_process_ends_with_its_launcher(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    parent = subprocess.Popen([sys.executable, "-c", LAUNCHED, str(begun)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert int(parent.stdout.readline()) > 0
    while not begun.exists():
        assert parent.poll() is None
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert parent.stdout.read() == ""  # returns when the child, which holds the other end, is gone
