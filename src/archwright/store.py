"""Where results lie: run folders, studies, checkpoints; the only code that knows paths. Files appear whole or not."""

import fcntl
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from safetensors import SafetensorError

from archwright.errors import BadInput, Failed

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.storages import BaseStorage
    from optuna.study import Study

LASTING = ("trials", "minutes", "rounds", "measure_int8")
"""Options that a resumed run may have otherwise than when it began, and that change its result."""
MAY_CHANGE = (*LASTING, "workers", "threads", "device", "checkpoint_seconds", "out", "preview")
"""All options that it may have otherwise."""
KEYS = {
    "run.json": ("id", "options"),
    "plan.json": ("original", "supernet"),
    "order.json": ("heads", "units", "layers"),
    "result.json": ("schema", "original", "front", "trials"),
}
"""What a file must have to be used."""
LOCK = ".lock"


def write_whole(path: Path, content: str | bytes) -> None:
    """The file with this content, or as it was before: written beside, synced, renamed."""
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_first(path: Path, content: str) -> None:
    """The file with this content, unless another process was faster."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as beside:
        write_whole(Path(beside) / path.name, content)
        with suppress(FileExistsError):
            os.link(Path(beside) / path.name, path)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that becomes `path` when the block ends well, and leaves nothing when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield beside
        for file in beside.rglob("*"):
            if file.is_file():
                with open(file, "rb") as handle:
                    os.fsync(handle.fileno())
        beside.chmod(0o755)
        if path.exists():
            shutil.rmtree(path)
        os.replace(beside, path)
    except SafetensorError as error:
        raise Failed(f"{path} could not be written ({error}); make room and run the same command again.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def read_json(path: Path) -> dict[str, Any]:
    """The object in one of our files."""
    try:
        value = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Failed(f"{path} is damaged ({error}); delete it and run the same command again.") from error
    if not isinstance(value, dict) or not set(KEYS.get(path.name, ())) <= set(value):
        raise Failed(f"{path} is damaged (not what was written there); delete it and run the same command again.")
    return value


@dataclass(frozen=True)
class RunFolder:
    """One run: its options, and what each phase left behind."""

    path: Path

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
    def report(self) -> Path:
        return self.path / "report.html"

    def recovered(self, trial: int) -> Path:
        return self.path / "recovered" / f"trial-{trial}"

    def note(self, name: str, value: Any = None) -> Any:
        """A small JSON file of the run; without a value, what was noted before or None."""
        path = self.path / f"{name}.json"
        if value is not None:
            write_whole(path, json.dumps(value, indent=1))
        return read_json(path) if path.exists() else None

    def note_once(self, name: str, value: Any) -> Any:
        """The same for what several processes may find out at once: all get what the fastest one noted."""
        write_first(self.path / f"{name}.json", json.dumps(value, indent=1))
        return self.note(name)

    def checkpoints(self, phase: str) -> "FileCheckpoints":
        return FileCheckpoints(self.path / f"checkpoint-{phase}.safetensors")

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Notes how many seconds the block took, on top of what an earlier attempt had noted."""
        begun = time.monotonic()
        yield
        seconds = self.note("seconds") or {}
        self.note("seconds", {**seconds, name: seconds.get(name, 0.0) + time.monotonic() - begun})

    @property
    def seconds(self) -> dict[str, float]:
        return dict(self.note("seconds") or {})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Refuses a second command on the same folder; the lock ends with the process, however it ends.

        What a killed command left half-written is swept away first.
        """
        with open(self.path / LOCK, "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadInput(
                    f"another command works in {self.path}; wait for it, or join it: `archwright worker {self.path}`."
                ) from None
            self.sweep()
            yield

    def sweep(self) -> None:
        for left in self.path.glob(".*"):
            if left.is_dir():
                shutil.rmtree(left)
            elif left.name != LOCK:
                left.unlink()

    def renew(self, options: Mapping[str, Any]) -> None:
        """Notes the options of a resumed run, for the workers that join it."""
        noted = {"id": self.identity, "options": {**self.settings, **options}}
        if noted["options"] != self.settings:
            write_whole(self.path / "run.json", json.dumps(noted, indent=1))

    def is_finished(self, options: Mapping[str, Any]) -> bool:
        """Whether a command with these options ended here."""
        whole = (self.path / "result.json").exists() and self.report.exists()
        return whole and self.note("finished") == {name: options[name] for name in LASTING}

    def finish(self, options: Mapping[str, Any]) -> None:
        self.note("finished", {name: options[name] for name in LASTING})


def begin(path: Path, options: Mapping[str, Any]) -> RunFolder:
    """The run folder for these options: a new one, or the one that the same command left unfinished."""
    run = RunFolder(path)
    if is_run(path):
        refuse_other_options(run, options)
        return run
    if path.exists() and (not path.is_dir() or any(not is_left(entry) for entry in path.iterdir())):
        raise BadInput(f"--out must be a new or empty folder or an earlier run, got {path}; choose another one.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_whole(path / "run.json", json.dumps({"id": uuid.uuid4().hex, "options": dict(options)}, indent=1))
    except OSError as error:
        raise BadInput(f"--out must be a folder that can be written, got {path}: {error.strerror}.") from error
    return run


def is_left(path: Path) -> bool:
    """Whether this is a run.json that a killed command did not finish."""
    return path.name.startswith(".run.json.")


def refuse_other_options(run: RunFolder, options: Mapping[str, Any]) -> None:
    before = run.settings
    for name, value in options.items():
        if name not in MAY_CHANGE and before.get(name, value) != value:
            raise BadInput(
                f"{run.path} was begun with {name}={before[name]!r}, got {value!r}; "
                "give the same options to resume it, or another --out."
            )


def is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def existing_run(path: Path) -> RunFolder:
    if not is_run(path):
        raise BadInput(f"a run folder of `archwright compress` is needed, got {path}, which has no run.json.")
    return RunFolder(path)


def open_study(
    run: RunFolder, url: str | None, *, sampler: "BaseSampler", directions: Sequence[Literal["minimize", "maximize"]]
) -> "Study":
    """The run's study in its store, made when it is not there yet."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    journal = run.path / "study.journal"
    try:
        return optuna.create_study(
            study_name=f"archwright-{run.identity}",
            storage=storage(url, journal),
            sampler=sampler,
            directions=list(directions),
            load_if_exists=True,
        )
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Failed(f"the trials in {journal} are damaged ({error}); delete it to search from the start.") from error


def check_store(url: str | None) -> None:
    """Raises BadInput for a database that cannot be used."""
    if url is not None:
        database(url)


def storage(url: str | None, journal: Path) -> "BaseStorage":
    """A journal file, or the database at this address."""
    import optuna
    from optuna.storages.journal import JournalFileBackend

    if url is not None:
        return database(url)
    lock: Any = JournalLock(journal)
    return optuna.storages.JournalStorage(JournalFileBackend(str(journal), lock))


def database(url: str) -> "BaseStorage":
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    if not url.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://")):
        raise BadInput(f"--store must begin with sqlite:/// or postgresql://, got {url!r}.")
    address = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        return optuna.storages.RDBStorage(address, engine_kwargs={"pool_pre_ping": True})
    except (SQLAlchemyError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise BadInput(f"--store must be a database that answers, got {url.split('@')[-1]!r}: {reason}") from error


class JournalLock:
    """Lets one process at a time append to a journal; ends with the process, so that nobody waits for the dead.

    A last line that was cut short, by a full disk or a power cut, counts as never written and is taken away.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal

    def acquire(self) -> bool:
        self._file = open(self._journal, "a+b")  # noqa: SIM115 - closed by release
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.seek(0, os.SEEK_END)
        if size := self._file.tell():
            self._file.seek(size - 1)
            if self._file.read(1) != b"\n":
                self._file.truncate(self._journal.read_bytes().rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        self._file.close()


@dataclass(frozen=True)
class FileCheckpoints:
    """The state of a training in one safetensors file."""

    path: Path

    def save(self, state: dict[str, Any]) -> None:
        from safetensors.torch import save

        tensors = {f"model.{name}": tensor.contiguous() for name, tensor in state["model"].items()}
        for index, moments in state["optimizer"].items():
            tensors |= {f"optimizer.{index}.{name}": tensor for name, tensor in moments.items()}
        write_whole(self.path, save(tensors, metadata={"step": str(state["step"])}))

    def load(self) -> dict[str, Any] | None:
        from safetensors import safe_open

        if not self.path.exists():
            return None
        state: dict[str, Any] = {"model": {}, "optimizer": {}}
        try:
            with safe_open(self.path, framework="pt") as file:
                state["step"] = int(file.metadata()["step"])
                for key in file.keys():  # noqa: SIM118 - not a dict
                    kind, _, name = key.partition(".")
                    index, _, moment = name.rpartition(".")
                    place = state["optimizer"].setdefault(int(index), {}) if kind == "optimizer" else state["model"]
                    place[moment if kind == "optimizer" else name] = file.get_tensor(key)
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            raise Failed(
                f"the training checkpoint {self.path} is damaged; delete it to train from the start."
            ) from error
        return state

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
