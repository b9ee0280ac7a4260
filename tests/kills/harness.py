"""kill -9 at every file-system event of a command: how many there are, and what is left after each.

python -m tests.kills.harness FOLDER SCENARIO[=POINT,POINT,...] ...

Everything is loaded once; each command then runs in a process split off from this one. An event is what Python does to
a file or folder below FOLDER (opened for writing, renamed, deleted, made, linked, synced): the process kills itself
just before the event of the given number. Then the same command runs to its end in another process, and what both left
is judged by the scenario. The last line that is printed has the reports of all scenarios as JSON.
"""

import json
import os
import shutil
import signal
import sys
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
    """Counts events below a folder, and kills this process before one of them."""

    def __init__(self, folder: Path, die_at: int | None) -> None:
        self.folder, self.die_at, self.count, self.names = str(folder), die_at, 0, []
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
        if os.path.abspath(path).startswith(self.folder):
            self.count += 1
            self.names.append(f"{event} {path[len(self.folder) :]}")
            if self.count == self.die_at:
                os.kill(os.getpid(), signal.SIGKILL)


def run_apart(words: list[str], folder: Path, die_at: int | None, log: Path) -> int:
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
        counter = EventCounter(folder, die_at)
        code = main(words)
        sys.stdout.flush()
        log.with_suffix(".events").write_text("\n".join(counter.names))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def run_scenario(scenario: Scenario, folder: Path, points: list[int] | None) -> dict[str, Any]:
    """Events of the command and the faults of kills at these of them; without points at all of them."""
    begun, whole, warm, log = (folder / name for name in ("begun", "whole", "warm", "log"))
    begun.mkdir(parents=True)
    scenario.prepare(begun)
    for copy in (whole, warm):
        shutil.copytree(begun, copy, symlinks=True)
    assert main(scenario.words(warm)) == 0  # all that it imports is there for the processes that are split off
    assert run_apart(scenario.words(whole), whole, None, log) == 0, log.read_text()
    events = log.with_suffix(".events").read_text().splitlines()
    expected = scenario.outcome(whole)
    faults = {}
    chosen = range(1, len(events) + 1) if points is None else [1 + point % len(events) for point in points]
    print(f"{len(events)} events, {len(chosen)} kills", file=sys.stderr, flush=True)
    for point in chosen:
        fault = kill_and_run(scenario, begun, folder / f"killed-{point}", point, expected, log)
        if fault:
            faults[point] = f"{events[point - 1]}: {fault}"
            print(f"{point}: {faults[point]}", file=sys.stderr, flush=True)
    return {"events": len(events), "tried": len(chosen), "faults": faults}


def kill_and_run(scenario: Scenario, begun: Path, killed: Path, point: int, expected: Any, log: Path) -> str:
    """What is wrong after a kill at this event and the same command again; nothing when nothing is."""
    shutil.copytree(begun, killed, symlinks=True, copy_function=link_weights)
    try:
        code = run_apart(scenario.words(killed), killed, point, log)
        if code != -signal.SIGKILL:
            return f"the process ended with {code} instead of being killed: {log.read_text()[-500:]}"
        scenario.check_killed(killed)
        code = run_apart(scenario.words(killed), killed, None, log)
        if code:
            return f"the command again ended with {code}: {log.read_text()[-500:]}"
        if left := litter(killed):
            return f"left over: {', '.join(left)}"
        outcome = scenario.outcome(killed)
        return "" if outcome == expected else f"another outcome: {str(outcome)[:300]} instead of {str(expected)[:300]}"
    except AssertionError as error:
        return f"after the kill: {error}"
    finally:
        shutil.rmtree(killed)


def link_weights(source: str, target: str) -> None:
    """A copy; of weights, which are replaced and never written to, a second name."""
    (os.link if source.endswith(".safetensors") else shutil.copy2)(source, target)


def litter(folder: Path) -> list[str]:
    """Hidden files and checkpoints of trainings that are over."""
    found = (path for path in folder.rglob("*") if path.name.startswith(".") or path.name.startswith("checkpoint-"))
    return sorted(str(path.relative_to(folder)) for path in found if path.name not in HIDDEN)


if __name__ == "__main__":
    from tests.kills.scenarios import SCENARIOS

    reports = {}
    for name, _, given in (word.partition("=") for word in sys.argv[2:]):
        chosen_points = [int(point) for point in given.split(",")] if given else None
        reports[name] = run_scenario(SCENARIOS[name], Path(sys.argv[1]).resolve() / name, chosen_points)
    print(json.dumps(reports))
