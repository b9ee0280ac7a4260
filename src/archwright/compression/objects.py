"""Models, tokenizers and rows that a Python program has in memory, as what the pipeline reads: folders and files.

They are written once, into the folder `inputs` of the run, under names that begin with what they are and end with a
fingerprint of their content. So resume, workers and exports find them, the same call goes on where it was, and a call
with other content in the same folder is refused like any other option.
"""

import json
import math
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from archwright.data.tasks.table_files import name_classes
from archwright.errors import BadInput
from archwright.store import is_run
from archwright.store.run import INPUTS

SAVED = ("model", "tokenizer")
ROWS = ("train", "validation", "test")
UNSTABLE = ("_name_or_path", "name_or_path", "transformers_version")
"""Keys of a saved config that say where a model came from and not what it is."""
LETTERS = 8
"""Of a fingerprint in a name."""


class Saved(Protocol):
    """A model or tokenizer of transformers: anything that `save_pretrained` writes for `from_pretrained`."""

    def save_pretrained(self, *args: Any, **kwargs: Any) -> Any: ...


class Table(Protocol):
    """Rows of `datasets`: a `Dataset`."""

    @property
    def features(self) -> Any: ...
    @property
    def column_names(self) -> Any: ...


class Frame(Protocol):
    """Rows of pandas: a `DataFrame`."""

    @property
    def columns(self) -> Any: ...
    @property
    def iloc(self) -> Any: ...


RowsInMemory = Table | Frame | Sequence[Mapping[str, Any]]
"""Rows as one may give them in place of a file: a `datasets.Dataset`, a pandas `DataFrame`, a list of dictionaries."""


def is_path(value: Any) -> bool:
    return value is None or isinstance(value, str | Path)


@contextmanager
def write_objects(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The options of `compress` with paths in place of objects, and with an `out` where there are any.

    Where the block refuses to begin a run, what was written for it is deleted again.
    """
    names = [name for name in (*SAVED, *ROWS) if not is_path(options.get(name))]
    paths = {name: str(options[name]) for name in SAVED if isinstance(options.get(name), Path)}
    if not names:
        yield {**options, **paths}
        return
    out = None if options.get("out") is None else Path(options["out"]).expanduser()
    parent = Path("runs") if out is None else out.parent
    missing = [folder for folder in (parent, *parent.parents) if not folder.exists()]
    created: list[Path] = []
    began = False
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent, prefix=".inputs.") as beside:
            written = {name: write_object(name, options[name], Path(beside)) for name in names}
            out = out or parent / default_name(options, written)
            given = {name: put_beside(path, out / INPUTS, created) for name, path in written.items()}
        yield {**options, **paths, **{name: str(path.resolve()) for name, path in given.items()}, "out": out}
        began = is_run(out)
    except BadInput:
        raise
    except BaseException:  # interrupted: the same call goes on
        began = out is not None and is_run(out)
        raise
    finally:
        if not began:
            discard(created, [*([] if out is None else [out / INPUTS, out]), *missing])


def discard(created: Sequence[Path], folders: Sequence[Path]) -> None:
    """Deletes what was created, and those of the folders that are empty then."""
    for path in created:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for folder in folders:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def default_name(options: Mapping[str, Any], written: Mapping[str, Path]) -> str:
    """runs/MODEL-TASK-FINGERPRINT: other objects, another folder."""
    model = written["model"].name if "model" in written else Path(str(options.get("model", "minilm"))).name
    task = options.get("task") or ("rows" if "train" in written else Path(str(options.get("train") or "reviews")).stem)
    both = blake2b(" ".join(sorted(path.name for path in written.values())).encode(), digest_size=LETTERS // 2)
    plain = "".join(c if c.isalnum() else "-" for c in f"{model.rpartition('-')[0] or model}-{task}").lower()
    return f"{plain}-{both.hexdigest()}"


def put_beside(path: Path, folder: Path, created: list[Path]) -> Path:
    """Where the file or folder is now, noted if it is new; what is there already has the same content."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / path.name
    if not target.exists():
        path.rename(target)
        created.append(target)
    return target


def write_object(name: str, value: Any, folder: Path) -> Path:
    return write_rows(name, value, folder) if name in ROWS else write_saved(name, value, folder)


def write_saved(name: str, value: Saved, folder: Path) -> Path:
    """A model or tokenizer as `save_pretrained` writes it."""
    save = getattr(value, "save_pretrained", None)
    if save is None:
        kind = type(value)
        raise BadInput(
            f"{name} must be a folder, a hub id or an object of transformers with save_pretrained, got "
            f"{kind.__module__}.{kind.__qualname__}; load it with transformers."
        )
    place = folder / name
    save(place)
    called = str(getattr(getattr(value, "config", value), "name_or_path", "") or type(value).__name__)
    plain = "".join(c if c.isalnum() or c in "._" else "-" for c in Path(called).name).strip("-.") or name
    return place.rename(folder / f"{name if name == 'tokenizer' else plain}-{folder_fingerprint(place)}")


def folder_fingerprint(folder: Path) -> str:
    """Of names and contents of all files; JSON without what says where a model came from."""
    digest = blake2b(digest_size=LETTERS // 2)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(folder)).encode())
        if path.suffix == ".json":
            values = json.loads(path.read_text(encoding="utf-8"))
            kept = {k: v for k, v in values.items() if k not in UNSTABLE} if isinstance(values, dict) else values
            digest.update(json.dumps(kept, sort_keys=True).encode())
        else:
            with open(path, "rb") as file:
                while piece := file.read(1 << 20):
                    digest.update(piece)
    return digest.hexdigest()


def write_rows(name: str, value: Any, folder: Path) -> Path:
    """Rows as a JSONL file, one object per line."""
    place, digest = folder / name, blake2b(digest_size=LETTERS // 2)
    with open(place, "wb") as file:
        for number, row in enumerate(plain_rows(name, value), start=1):
            line = json_line(row, f"row {number} of {name}")
            digest.update(line)
            file.write(line)
    if not place.stat().st_size:
        raise BadInput(f"{name} must have rows, got none.")
    return place.rename(folder / f"{name}-{digest.hexdigest()}.jsonl")


def plain_rows(name: str, value: Any) -> Iterator[Mapping[str, Any]]:
    """Rows as dictionaries, class numbers of `datasets` as their names."""
    if hasattr(value, "features") and hasattr(value, "column_names"):
        classes = {column: getattr(kind, "names", None) for column, kind in value.features.items()}
        return (row for _, row in name_classes(value, classes))
    if hasattr(value, "columns") and hasattr(value, "to_dict"):
        return iter(value.to_dict("records"))
    if isinstance(value, Sequence) and all(isinstance(row, Mapping) for row in value):
        return iter(value)
    hint = ""
    if isinstance(value, Mapping):
        hint = f"; it may hold splits: give one of them, such as {name}=splits[{next(iter(value), name)!r}]"
    raise BadInput(
        f"{name} must be a file, a datasets.Dataset, a pandas DataFrame or a list of dictionaries, got "
        f"{type(value).__name__}{hint}."
    )


def json_line(row: Mapping[str, Any], where: str) -> bytes:
    """One row; numbers of numpy are numbers, and what is not a number is missing."""

    def plain(value: Any) -> Any:
        if isinstance(value, float) and math.isnan(value):
            return None
        if isinstance(value, Mapping):
            return {str(key): plain(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        if hasattr(value, "tolist"):  # numpy: scalars and arrays
            return plain(value.tolist())
        return value

    try:
        return (json.dumps(plain(row), ensure_ascii=False) + "\n").encode()
    except (TypeError, ValueError, UnicodeEncodeError) as error:
        raise BadInput(f"{where} must hold texts and numbers: {error}.") from None
