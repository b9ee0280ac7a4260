"""kill -9 at every file-system event of a command: how many there are, and what is left after each.

python -m tests.kills.harness FOLDER [--first] SCENARIO[=POINT,POINT,...] ...

Everything is loaded once; each command then runs in a process split off from this one. An event is what Python does to
a file or folder below FOLDER (opened for writing, renamed, deleted, made, linked, synced); the folder for temporary
files is there too. What a kill just before an event leaves is judged by the scenario; then the same command runs to its
end, and its outcome must be that of a command which nobody killed.

With points, the process kills itself before the events of these numbers. Without, all events are tried, at less cost:
the command runs once and the folder is copied before each event. That is what a kill there leaves, because everything
that was written is in the system's hands, and what the process still holds is in no file. Events before which nothing
has changed since the last one (syncs, folders that are there already) leave the same state and share one judgement.

States that come first are those before something changes that is not hidden; the others differ from one of these in
nothing but hidden folders of a dead process, which commands sweep away. With --first these others are left out.

What was tried stands in FOLDER/SCENARIO.tried, and a harness that was stopped goes on after it. The last line that is
printed has the reports of all scenarios as JSON.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archwright.cli.main import main

EVENTS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
HIDDEN = (".lock",)
"""Hidden files that may stay."""
WORKER_LOCK = "archwright-worker-"
"""Locks of killed workers; other machines' commands must find them for a day."""

Act = Callable[[int, str], None]
"""What to do just before an event, given its number and name."""


@dataclass(frozen=True)
class Scenario:
    """A command that is killed."""

    prepare: Callable[[Path], None]
    """What must be there before it, written into a folder; copied for every kill."""
    words: Callable[[Path], list[str]]
    """The command line in such a folder."""
    check_killed: Callable[[Path], None]
    """Raises AssertionError where what a kill left is not whole."""
    outcome: Callable[[Path], Any]
    """What must be the same as without a kill."""


class EventCounter:
    """Counts events below a folder, and acts before each of them."""

    def __init__(self, folder: Path, act: Act) -> None:
        self.folder, self.act, self.names = str(folder), act, []
        self.lock, self.acting = threading.RLock(), False
        fsync = os.fsync
        os.fsync = lambda handle: (self.meet("os.fsync", self.name_of(handle)), fsync(handle))[1]
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes | os.PathLike) and isinstance(flags, int) and flags & WRITING:
                self.meet(event, os.fsdecode(path))
        elif event in EVENTS:
            handle = next((part for part in arguments[1:] if isinstance(part, int) and part > 2), None)
            path = os.fsdecode(arguments[0]) if not isinstance(arguments[0], int) else self.name_of(arguments[0])
            if not os.path.isabs(path) and handle is not None and event in ("os.remove", "os.rmdir"):
                path = os.path.join(self.name_of(handle), path)
            self.meet(event, path)

    def name_of(self, handle: int) -> str:
        try:
            return os.readlink(f"/proc/self/fd/{handle}")
        except OSError:
            return ""

    def meet(self, event: str, path: str) -> None:
        if not os.path.abspath(path).startswith(self.folder):
            return
        with self.lock:  # a second thread waits until a copy is made
            if not self.acting:  # otherwise it is an event of the copying itself
                self.acting = True
                self.names.append(f"{event} {path[len(self.folder) :]}")
                self.act(len(self.names), self.names[-1])
                self.acting = False


def go_on(point: int, name: str) -> None:
    """Nothing happens before an event."""


def kill_at(point: int) -> Act:
    return lambda number, _: os.kill(os.getpid(), signal.SIGKILL) if number == point else None


def kill_before(event: str) -> Act:
    """Kills before the first event of this name."""
    return lambda _, name: os.kill(os.getpid(), signal.SIGKILL) if name == event else None


class StateCopier:
    """Copies a folder before every event that finds it changed, to a folder named after the event's number."""

    def __init__(self, folder: Path, states: Path) -> None:
        self.folder, self.states, self.last = folder, states, frozenset[Any]()

    def __call__(self, point: int, name: str) -> None:
        state = self.describe()
        if state != self.last:
            copy_folder(self.folder, self.states / str(point))
            self.last = state

    def describe(self) -> frozenset[Any]:
        paths = ((path, path.lstat()) for path in self.folder.rglob("*"))
        return frozenset(
            (path, stat.st_mode, stat.st_ino, *(() if path.is_dir() else (stat.st_size, stat.st_mtime_ns)))
            for path, stat in paths
        )


def run_apart(words: list[str], folder: Path, act: Act, log: Path) -> int:
    """Exit code of the command in a process of its own; minus the signal that ended it. Its events are in the log."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 70
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        (folder / "tmp").mkdir(exist_ok=True)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "tmp")
        counter = EventCounter(folder, act)
        code = main(words)
        sys.stdout.flush()
        log.with_suffix(".events").write_text("\n".join(counter.names))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


class Trials:
    """Kills of one scenario: where it runs, what must come out, and what was found so far."""

    def __init__(self, scenario: Scenario, folder: Path, *, copies: bool) -> None:
        self.scenario, self.place, self.log = scenario, folder / "place", folder / "log"
        self.begun, self.states, self.tried = folder / "begun", folder / "states", folder.with_suffix(".tried")
        shutil.rmtree(folder, ignore_errors=True)
        self.place.mkdir(parents=True)
        scenario.prepare(self.place)
        copy_folder(self.place, self.begun)
        assert main(scenario.words(self.place)) == 0  # what it imports is there for the processes that are split off
        self.begin()
        act = StateCopier(self.place, self.states) if copies else go_on
        assert run_apart(scenario.words(self.place), self.place, act, self.log) == 0, self.log.read_text()
        self.events = self.log.with_suffix(".events").read_text().splitlines()
        self.expected = scenario.outcome(self.place)
        self.found: dict[int, str] = self.read_tried()

    def begin(self, state: Path | None = None) -> None:
        """The folder as it was before the command, or as a kill left it."""
        shutil.rmtree(self.place)
        copy_folder(state or self.begun, self.place)

    def read_tried(self) -> dict[int, str]:
        """Faults by state of an earlier harness that saw the same events."""
        lines = [json.loads(line) for line in self.tried.read_text().splitlines()] if self.tried.exists() else []
        if not lines or lines[0] != len(self.events):
            self.tried.write_text(f"{len(self.events)}\n")
            return {}
        return dict(lines[1:])

    def try_all(self, *, first: bool = False) -> dict[str, Any]:
        """The faults of all events; of those that come first, if nothing else is wanted."""
        points = sorted(int(path.name) for path in self.states.iterdir())
        seen = [*(visible(self.states / str(point)) for point in points), None]
        ahead = [point for point, now, then in zip(points, seen, seen[1:], strict=False) if now != then]
        known = f"{len(ahead)} of them first, {len(self.found)} known"
        print(f"{len(self.events)} events, {len(points)} states, {known}", file=sys.stderr, flush=True)
        for point in dict.fromkeys([*ahead, *(() if first else points)]):
            if point not in self.found:
                self.begin(self.states / str(point))
                self.note(point, self.judge())
        ends = [*points[1:], len(self.events) + 1]
        tried = sum(end - point for point, end in zip(points, ends, strict=True) if point in self.found)
        faults = {point: fault for point, fault in self.found.items() if fault}
        return {"events": len(self.events), "tried": tried, "states": len(points), "faults": faults}

    def try_points(self, points: list[int]) -> dict[str, Any]:
        """The faults of kills at these events."""
        faults, chosen = {}, set[int]()
        for point in points:  # of two that fall on one event the second takes the next
            places = (1 + (point + step) % len(self.events) for step in range(len(self.events)))
            chosen.add(next(place for place in places if place not in chosen))
        for point in sorted(chosen):
            self.begin()
            code = run_apart(self.scenario.words(self.place), self.place, kill_at(point), self.log)
            killed = code == -signal.SIGKILL
            if fault := self.judge() if killed else f"{code} instead of a kill: {self.log.read_text()[-500:]}":
                faults[point] = f"{self.events[point - 1]}: {fault}"
        return {"events": len(self.events), "tried": len(chosen), "faults": faults}

    def note(self, point: int, fault: str) -> None:
        self.found[point] = f"{self.events[point - 1]}: {fault}" if fault else ""
        with self.tried.open("a") as file:
            file.write(json.dumps([point, self.found[point]]) + "\n")

    def judge(self) -> str:
        """What is wrong with the folder that a kill left, and after the same command again; nothing if nothing is."""
        try:
            self.scenario.check_killed(self.place)
            code = run_apart(self.scenario.words(self.place), self.place, go_on, self.log)
            if code:
                return f"the command again ended with {code}: {self.log.read_text()[-500:]}"
            if left := litter(self.place):
                return f"left over: {', '.join(left)}"
            outcome = self.scenario.outcome(self.place)
        except AssertionError as error:
            return f"after the kill: {error}"
        wrong = f"another outcome: {str(outcome)[:300]} instead of {str(self.expected)[:300]}"
        return "" if outcome == self.expected else wrong


def copy_folder(source: Path, target: Path) -> None:
    """A copy; what is large and only ever replaced, never written to, has a second name instead."""
    shutil.copytree(source, target, symlinks=True, copy_function=copy_or_link)


def copy_or_link(source: str, target: str) -> None:
    (os.link if source.endswith((".safetensors", "tokenizer.json")) else shutil.copy2)(source, target)


def visible(folder: Path) -> frozenset[Any]:
    """What is in a folder but for hidden files and folders."""
    shown = (path for path in folder.rglob("*") if not any(p.startswith(".") for p in path.relative_to(folder).parts))
    files = ((path.relative_to(folder), path.is_dir(), path.stat()) for path in shown)
    return frozenset((path, *(() if is_dir else (at.st_size, at.st_mtime_ns))) for path, is_dir, at in files)


def litter(folder: Path) -> list[str]:
    """Hidden files, checkpoints of trainings that are over, and temporary files."""
    found = [path for path in folder.rglob("*") if path.name.startswith(".") or path.name.startswith("checkpoint-")]
    found += [path for path in (folder / "tmp").iterdir() if not path.name.startswith(WORKER_LOCK)]
    return sorted(str(path.relative_to(folder)) for path in found if path.name not in HIDDEN)


if __name__ == "__main__":
    from tests.kills.scenarios import SCENARIOS

    reports, first = {}, "--first" in sys.argv
    for name, _, given in (word.partition("=") for word in sys.argv[2:] if word != "--first"):
        trials = Trials(SCENARIOS[name], Path(sys.argv[1]).resolve() / name, copies=not given)
        reports[name] = trials.try_points([int(p) for p in given.split(",")]) if given else trials.try_all(first=first)
        print(f"{name}: {reports[name]}", file=sys.stderr, flush=True)
    print(json.dumps(reports))
