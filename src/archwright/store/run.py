"""The folder of one run."""

import fcntl
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from archwright.callbacks import tell_phase
from archwright.checksums import add_checksum
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.store.address import is_same, without_password
from archwright.store.checkpoints import FileCheckpoints
from archwright.store.files import read_json, sweep_folder, write_json, write_once

LASTING = ("trials", "minutes", "rounds", "measure_int8", "honesty", "honesty_epochs")
"""Options that a resumed run may have otherwise than when it began, and that change its result."""
MAY_CHANGE = (*LASTING, "workers", "ray", "threads", "device", "checkpoint_seconds", "out", "preview", "rivals")
"""All options that it may have otherwise."""
LOCK = ".lock"
INPUTS = "inputs"
"""Folder of what a Python program gave as objects, written before the run begins."""
RECOVERED = "recovered"
"""Folder of networks that `select` trained further."""
PRIVATE = 0o600
"""For the file with the options: the address of a store may hold a password."""


@dataclass(frozen=True)
class RunFolder:
    """One run: its options, and what each phase left behind."""

    path: Path
    writes: bool = True
    """Whether this process writes what it finds out: of several that train together the first one does."""

    @property
    def settings(self) -> dict[str, Any]:
        """Options by name, as the run was begun."""
        return dict(read_json(self.path / "run.json")["options"])

    @property
    def identity(self) -> str:
        return str(read_json(self.path / "run.json")["id"])

    @property
    def original(self) -> Path:
        return self.path / "original"

    @property
    def supernet(self) -> Path:
        return self.path / "supernet"

    @property
    def networks(self) -> Path:
        """Networks that were trained by themselves, by name."""
        return self.path / "networks"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def progress(self) -> Path:
        """How far the command that works in this folder has come; gone when it ends."""
        return self.path / "progress.json"

    def recovered_network(self, trial: int) -> Path:
        return self.path / RECOVERED / f"trial-{trial}"

    def note(self, name: str, value: Any = None) -> Any:
        """A small JSON file of the run; without a value, what was noted before or None."""
        path = self.path / f"{name}.json"
        if value is not None and not self.writes:
            return value
        if value is not None:
            write_json(path, value)
        return read_json(path) if path.exists() else None

    def note_once(self, name: str, value: Any) -> Any:
        """The same for what several processes may find out at once: all get what the fastest one noted."""
        if not self.writes:
            return value
        write_once(self.path / f"{name}.json", json.dumps(add_checksum(value), indent=1))
        return self.note(name)

    def checkpoints(self, phase: str) -> "FileCheckpoints":
        return FileCheckpoints(self.path / f"checkpoint-{phase}.safetensors", self.writes)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Notes how many seconds the block took, on top of earlier attempts; one that was killed is not counted."""
        if not self.writes:
            yield
            return
        tell_phase(name)
        begun = time.monotonic()
        try:
            yield
        finally:
            seconds, taken = self.note("seconds") or {}, time.monotonic() - begun
            self.note("seconds", {**seconds, name: seconds.get(name, 0.0) + taken})
            logger.info("%s: %s took %.1f s", self.path, name, taken)

    @property
    def seconds(self) -> dict[str, float]:
        return dict(self.note("seconds") or {})

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Refuses a second command on the same folder; the lock ends with the process, however it ends.

        What killed commands and workers left half-written is swept away, before the block and after it.
        """
        with open(self.path / LOCK, "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadInput(
                    f"another command works in {self.path}; wait for it, or join it: "
                    f"`archwright worker {quote(str(self.path))}`."
                ) from None
            self.sweep()
            yield
            self.sweep()

    def sweep(self) -> None:
        """Deletes what killed processes left half-written, nothing of those that are at work."""
        for folder in (self.path, self.networks, self.path / RECOVERED):
            sweep_folder(folder)

    def renew(self, options: Mapping[str, Any]) -> None:
        """Notes the options of a resumed run, for the workers that join it."""
        noted = {"id": self.identity, "options": {**self.settings, **options}}
        if noted["options"] != self.settings:
            write_json(self.path / "run.json", noted, mode=PRIVATE)

    def is_complete(self, options: Mapping[str, Any]) -> bool:
        """Whether a command with these options ended here."""
        whole = (self.path / "result.json").exists() and self.report.exists()
        return whole and self.note("finished") == {name: options[name] for name in LASTING}

    def finish(self, options: Mapping[str, Any]) -> None:
        self.note("finished", {name: options[name] for name in LASTING})


def begin_run(path: Path, options: Mapping[str, Any]) -> RunFolder:
    """The run folder for these options: a new one, or the one that the same command left unfinished."""
    run = RunFolder(path)
    if is_run(path):
        refuse_other_options(run, options)
        return run
    # a killed command may have left a half-written run.json
    if path.exists() and not (
        path.is_dir() and all(e.name.startswith(".run.json.") or e.name == INPUTS for e in path.iterdir())
    ):
        raise BadInput(f"--out must be a new or empty folder or an earlier run, got {path}; choose another one.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        content = {"id": uuid.uuid4().hex, "options": dict(options)}
        write_once(path / "run.json", json.dumps(add_checksum(content), indent=1), mode=PRIVATE)
    except OSError as error:
        raise BadInput(f"--out must be a folder that can be written, got {path}: {error.strerror}.") from error
    refuse_other_options(run, options)  # another command may have begun a run here at the same moment
    return run


def refuse_other_options(run: RunFolder, options: Mapping[str, Any]) -> None:
    settings = run.settings
    for name, value in options.items():
        before = settings.get(name, value)
        if name not in MAY_CHANGE and not is_same(before, value):
            shown, now = without_password(before), without_password(value)
            way_out = "give the same options to resume it, or another --out"
            raise BadInput(f"{run.path} was begun with {name}={shown!r}, got {now!r}; {way_out}.")


def is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def existing_run(path: Path) -> RunFolder:
    if not is_run(path):
        raise BadInput(f"a run folder of `archwright compress` is needed, got {path}, which has no run.json.")
    return RunFolder(path)
