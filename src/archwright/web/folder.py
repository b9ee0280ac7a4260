"""The folder that is served: which runs and documents it has, and no way out of it."""

import json
import os
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from archwright.configs.compress import CompressConfig
from archwright.configs.options import config_options, config_values, make_config
from archwright.configs.training import TrainConfig
from archwright.errors import BadInput, Failed
from archwright.reports.compress.summary import best_of, half_size_member, loss
from archwright.reports.numbers import error_format, number
from archwright.store import RunFolder, is_run
from archwright.store.address import without_password
from archwright.store.files import read_json
from archwright.store.run import LOCK

RUNNING, FINISHED, STOPPED, DAMAGED = "running", "finished", "stopped", "damaged"
DEEPEST = 5
"""Folders below the served one in which runs are looked for."""
MOST_ENTRIES = 20_000
"""Files and folders that are looked at; a home folder is no folder of runs."""
NOT_ENTERED = {"original", "supernet", "networks", "recovered", "export", "inputs", "node_modules", "__pycache__"}
MOST_BYTES = 200_000_000
"""Of a document."""
SPARKS = 60
"""Points of a small curve."""
SECRET = ("store",)
"""Options that are never shown."""


UNEXPECTED = (KeyError, TypeError, AttributeError, ValueError, IndexError)
"""What reading a document raises that has the right schema and another shape."""


class NotFound(Exception):
    """Nothing of this name is in the served folder."""


@dataclass(frozen=True)
class ServedFolder:
    """A folder with runs below it."""

    root: Path

    def resolve(self, name: str) -> Path:
        """The file or folder of this name after all symbolic links; NotFound when it is not inside."""
        if "\x00" in name or len(name) > 1000:
            raise NotFound(name)
        try:
            path = (self.root / name).resolve(strict=True)
        except (OSError, RuntimeError):
            raise NotFound(name) from None
        if not path.is_relative_to(self.root):
            raise NotFound(name)
        return path

    def run(self, name: str) -> RunFolder:
        path = self.resolve(name)
        if not is_run(path):
            raise NotFound(name)
        self.check_inside(path, "run.json", "result.json", "about.json", "study.journal", "progress.json")
        return RunFolder(path)

    def check_inside(self, folder: Path, *names: str) -> None:
        """NotFound when a file of a folder is a link to somewhere else."""
        for name in names:
            if not (folder / name).resolve().is_relative_to(self.root):
                raise NotFound(name)

    def name_of(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def walk(self) -> Iterator[tuple[Path, list[str]]]:
        """Folders below the served one with the names of their files; links are not followed."""
        seen = 0
        for place, folders, names in os.walk(self.root):
            depth = len(Path(place).relative_to(self.root).parts)
            folders[:] = sorted(
                n for n in folders if not n.startswith(".") and n not in NOT_ENTERED and depth < DEEPEST
            )
            seen += len(folders) + len(names)
            yield Path(place), names
            if seen > MOST_ENTRIES:
                return

    def run_names(self) -> list[str]:
        return [self.name_of(place) for place, names in self.walk() if "run.json" in names]

    def documents(self, command: str) -> dict[str, Path]:
        """Files with the schema of this command, by name; those that cannot be read are left out."""
        found = {}
        for place, names in self.walk():
            for name in sorted(names):
                path = place / name
                if name.endswith(".json") and not path.is_symlink() and schema_of(path) == command:
                    found[self.name_of(path)] = path
        return found

    def read_documents(self, command: str) -> dict[str, dict[str, Any]]:
        """The documents of this command that are whole."""
        read = {}
        for name in self.documents(command):
            with suppress(Failed, NotFound, OSError):
                read[name] = self.document(name, command)
        return read

    def document(self, name: str, *commands: str) -> dict[str, Any]:
        """The document of this name, if it is one of these commands."""
        path = self.resolve(name)
        if not path.is_file() or path.stat().st_size > MOST_BYTES or schema_of(path) not in commands:
            raise NotFound(name)
        return read_json(path)


def schema_of(path: Path) -> str:
    """The command that wrote a document: rank of archwright/rank/1; empty of other files."""
    try:
        stat = path.stat()
        return read_schema(path, stat.st_mtime_ns, stat.st_size)
    except OSError:
        return ""


@lru_cache(maxsize=4096)
def read_schema(path: Path, changed: int, size: int) -> str:
    """Of the beginning of the file where it stands there, which is cheap; else of the whole."""
    with open(path, "rb") as file:
        head = file.read(400).decode("utf-8", "replace")
    if '"archwright/' not in head and not head.lstrip().startswith("{"):
        return ""
    _, _, rest = head.partition('"schema"')
    words = rest.partition('"archwright/')[2].partition('"')[0]
    return words.rpartition("/")[0]


def is_locked(run: RunFolder) -> bool:
    """Whether a command works in the folder, asked without taking its lock, which would keep a command from starting.

    Where the system does not tell, a record of progress that is younger than a minute counts.
    """
    try:
        inode, locks = os.stat(run.path / LOCK).st_ino, Path("/proc/locks").read_text().splitlines()
        return any(line.split()[5].rsplit(":", 1)[-1] == str(inode) for line in locks if "FLOCK" in line)
    except FileNotFoundError:
        return False
    except (OSError, IndexError):
        return run.progress.exists() and time.time() - run.progress.stat().st_mtime < 60


def read_note(run: RunFolder, name: str) -> Any:
    """A small JSON file of a run, or None; one that has not changed is not read again, for it is asked for often."""
    path = run.path / f"{name}.json"
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return read_once(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=512)
def read_once(path: Path, changed: int, size: int) -> Any:
    return read_json(path)


def settings_of(run: RunFolder) -> Mapping[str, Any]:
    """As `run.settings`."""
    return dict(read_note(run, "run")["options"])


def state_of(run: RunFolder) -> tuple[str, str]:
    """The state of a run, and why where it is damaged."""
    try:
        searches = kind_of(settings_of(run)) == "compress"  # raises when it cannot be read
        written = ("result", "finished") if searches else ("result",)
        done = all(is_readable(run.path / f"{name}.json") for name in written)
    except (Failed, OSError, KeyError, TypeError, ValueError) as error:
        return DAMAGED, hide_path(str(error), run)
    if done:
        return FINISHED, ""
    return (RUNNING, "") if is_locked(run) else (STOPPED, "")


def is_readable(path: Path) -> bool:
    """Whether a file is there and as it was written; raises where it is damaged."""
    if not path.exists():
        return False
    stat = path.stat()
    return parse_once(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4096)
def parse_once(path: Path, changed: int, size: int) -> bool:
    """Results are megabytes: one that has not changed is not read again."""
    read_json(path)
    return True


def hide_path(words: str, run: RunFolder) -> str:
    """A message without the place of the run on this machine."""
    return str(without_password(words.replace(f"{run.path}/", "").replace(str(run.path), run.path.name)))


def read_progress(run: RunFolder) -> dict[str, Any] | None:
    """What a working command has recorded, with the seconds that are left at the speed so far."""
    try:
        record = json.loads(run.progress.read_text())
        done, total, begun, at = (record[key] for key in ("done", "total", "begun", "at"))
        left = (at - begun) * (total - done) / done if total and done else None
        return {**{key: record[key] for key in ("description", "done", "total", "unit")}, "seconds_left": left}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def kind_of(options: Mapping[str, Any]) -> str:
    """What made a run, by its options: train, compare (several methods of compress) or compress."""
    if options.get("command") == "train":
        return "train"
    return "compare" if options.get("compare") else "compress"


def resume_words(run: RunFolder) -> list[str]:
    """The command that goes on with a run that was stopped."""
    command = "train" if kind_of(settings_of(run)) == "train" else "compress"
    return [command, "--options", str(run.path / "config.yaml")]


def resume_command(run: RunFolder) -> str:
    return shlex.join(["archwright", *resume_words(run)])


def shown_options(run: RunFolder) -> dict[str, Any]:
    """The options of a run as they may be shown."""
    return {name: without_password(value) for name, value in run.settings.items() if name not in SECRET}


def given_options(run: RunFolder) -> dict[str, Any]:
    """Those of them that are not what they are by default, as the command line calls them."""
    config = TrainConfig if kind_of(run.settings) == "train" else CompressConfig
    flags = {name: option.flag for name, option in config_options(config).items()}
    usual = json.loads(json.dumps(config_values(make_config(config, {})), default=str))
    own = {name: value for name, value in shown_options(run).items() if name in flags and value != usual.get(name)}
    return {flags[name]: value for name, value in own.items()}


def summarize(folder: ServedFolder, name: str) -> dict[str, Any]:
    """One row of the list of runs; a damaged run has a reason and nothing else."""
    run = RunFolder(folder.root / name)
    row: dict[str, Any] = {"name": name, "state": DAMAGED, "reason": ""}
    try:
        run = folder.run(name)
    except NotFound:
        return {**row, "reason": "links to files outside of the served folder are not followed"}
    state, reason = state_of(run)
    row |= {"state": state, "reason": reason}
    if state == DAMAGED:
        return row
    stat = (run.path / ("result.json" if state == FINISHED else "run.json")).stat()
    try:
        row |= dict(describe(run, state, stat.st_mtime_ns))
    except UNEXPECTED as error:
        return row | {"state": DAMAGED, "reason": f"its files are not what was written there ({type(error).__name__})."}
    if state != FINISHED:
        row |= {"progress": read_progress(run) if state == RUNNING else None, "resume": resume_command(run)}
    return row


@lru_cache(maxsize=512)
def describe(run: RunFolder, state: str, changed: int) -> Mapping[str, Any]:
    """What does not change while a run is in this state."""
    options = run.settings
    about = {
        "kind": kind_of(options),
        "model": options.get("model"),
        "task": options.get("task") or options.get("train"),
        "method": options.get("method"),
        "planned_trials": options.get("trials"),
        "begun": (run.path / "run.json").stat().st_mtime,
        "changed": changed / 1e9,
    }
    result = (run.note("result") or {}) if state == FINISHED else {}
    if "front" not in result:
        kind = str(result.get("schema", "archwright/compress/1")).split("/")[1]
        return about | {"kind": kind if result else about["kind"]}
    volumes = [value for value in result.get("hypervolume_over_time") or () if value is not None]
    best = half_size_member(result)
    return about | {
        "model": result["model"],
        "task": result["task"],
        "trials": len(result.get("trials") or ()),
        "seconds": number(result, "seconds"),
        "hypervolume": number(result, "hypervolume"),
        "sparkline": thin(volumes),
        "unit": error_format(result).unit,
        "best_half": None if best is None else best["trial"],
        "front": [[m.get("nonembedding_share"), loss(result, m), m.get("trial")] for m in result["front"]],
        "best_within": best_within(result),
    }


def best_within(result: Mapping[str, Any]) -> list[list[Any]]:
    """What `select` answers for at most each share that a member has: the limit, then share, loss and trial of it."""
    sized = [m for m in result["front"] if None not in (number(m, "nonembedding_share"), number(m, "validation_error"))]
    shares = sorted({member["nonembedding_share"] for member in sized})
    answers = {share: best_of(result, [m for m in sized if m["nonembedding_share"] <= share]) for share in shares}
    return [[share, m["nonembedding_share"], loss(result, m), m["trial"]] for share, m in answers.items()]


def thin(values: list[float]) -> list[float]:
    """At most so many of them as a small picture has room for, the last included."""
    if len(values) <= SPARKS:
        return values
    step = (len(values) - 1) / (SPARKS - 1)
    return [values[round(place * step)] for place in range(SPARKS)]


def open_folder(path: Path) -> ServedFolder:
    """BadInput unless it is a folder."""
    if not path.is_dir():
        raise BadInput(
            f"RUNS_DIR must be a folder with runs, got {path}, which is none; make a run with `archwright compress`."
        )
    return ServedFolder(path.resolve())
