"""Work that takes longer than a request: exports, and runs that were started here, each a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

MOST_AT_ONCE = 2
"""Exports at the same time: each needs the memory of a network or two."""
MOST_KEPT = 100
"""Finished jobs that are remembered."""
ENDING = 60.0
"""Seconds that a job which was told to end has for it."""
LINES = 12
"""Last lines of what a job said."""
SCHEMA = "archwright/job/1"
RUNNING, DONE, FAILED, ENDED = "running", "done", "failed", "ended"


class Busy(Exception):
    """As many jobs are running as may."""


@dataclass
class Job:
    """A command as a process, what it said and what it wrote."""

    id: str
    kind: str
    words: Sequence[str]
    about: dict[str, Any]
    place: Path
    """Folder of its own for what it says."""
    process: "subprocess.Popen[bytes]"
    begun: float = field(default_factory=time.time)
    ended_here: bool = False

    @property
    def state(self) -> str:
        code = self.process.poll()
        if code is None:
            return RUNNING
        return ENDED if self.ended_here else DONE if code == 0 else FAILED

    def lines(self) -> list[str]:
        """What it said last; carriage returns of bars count as ends of lines."""
        try:
            said = (self.place / "said").read_text("utf-8", "replace")
        except OSError:
            return []
        return [line for line in re.split(r"[\r\n]+", said) if line.strip()][-LINES:]

    def result(self) -> dict[str, Any] | None:
        try:
            return dict(json.loads((self.place / "result.json").read_text()))
        except (OSError, ValueError):
            return None

    def as_json(self) -> dict[str, Any]:
        lines, state = self.lines(), self.state
        share = re.search(r"\((\d+)%\)", lines[-1]) if lines else None
        error = next((line for line in reversed(lines) if line.startswith("archwright: ")), lines[-1] if lines else "")
        return {
            "schema": SCHEMA,
            "id": self.id,
            "kind": self.kind,
            **self.about,
            "state": state,
            "share": 1.0 if state == DONE else int(share[1]) / 100 if share else None,
            "says": lines[-1] if lines else "",
            "error": error.removeprefix("archwright: ") if state == FAILED else None,
            "seconds": time.time() - self.begun,
            "result": self.result() if state == DONE else None,
        }


class Jobs:
    """All jobs of a server; they end with it, but for runs, which are meant to go on."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="archwright-serve-")

    def start(self, kind: str, words: Sequence[str], *, about: dict[str, Any], most: int = MOST_AT_ONCE) -> Job:
        """Runs `archwright WORDS`; Busy when there are too many of this kind."""
        with self._lock:
            running = [job for job in self._jobs.values() if job.kind == kind and job.state == RUNNING]
            if len(running) >= most:
                raise Busy(f"{most} {kind}{'s' if most > 1 else ''} at a time, and as many are going on")
            name = uuid4().hex
            place = Path(self._folder.name) / name
            place.mkdir()
            command = [sys.executable, "-m", "archwright", *words]
            if kind == "export":
                command += ["--json", str(place / "result.json")]
            with open(place / "said", "wb") as said:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    start_new_session=True,  # a signal for the server is none for its jobs
                )
            job = Job(name, kind, words, about, place, process)
            self._jobs[name] = job
            for old in [key for key, each in self._jobs.items() if each.state != RUNNING][:-MOST_KEPT]:
                del self._jobs[old]
            return job

    def get(self, name: str) -> Job | None:
        return self._jobs.get(name)

    def all(self) -> list[Job]:
        return sorted(self._jobs.values(), key=lambda job: -job.begun)

    def stop(self, job: Job) -> None:
        """As Ctrl-C does: a run can be resumed after it."""
        if job.state == RUNNING:
            job.ended_here = True
            os.killpg(job.process.pid, signal.SIGINT)

    def wait_for_stopped(self) -> None:
        """Until jobs that were told to end are gone: a run lets go of its folder a little before its process ends."""
        for job in self.all():
            if job.ended_here:
                with suppress(subprocess.TimeoutExpired):
                    job.process.wait(timeout=ENDING)

    def close(self) -> None:
        for job in self._jobs.values():
            if job.kind == "export" and job.state == RUNNING:
                self.stop(job)
                try:
                    job.process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    job.process.kill()
        self._folder.cleanup()
