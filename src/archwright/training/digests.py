"""A run is bound to its inputs: digests of rows, weights and tokenizer stand in its folder.

Rows are digested as they are read: their tokens and targets. Weights are read once; as long as sizes and times of the
files stay the same they are not read again.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from transformers.utils import cached_file

from archwright.checksums import file_checksum
from archwright.data.encoding import Encoded
from archwright.environment import commit
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.store import RunFolder
from archwright.version import __version__

NOTE = "digests"
WEIGHTS = ("config.json", "*.safetensors", "*.bin", "*.gguf")
"""Files of a checkpoint that its network is made of."""
LETTERS = 32
Digests = Mapping[str, Mapping[str, Any]]
"""What it is -> its digest, None where there is nothing to read, and with it sizes and times of files."""


def bind_run(run: RunFolder, found: Digests, names: Mapping[str, Sequence[str]], *, begun: bool) -> None:
    """BadInput where the run was begun with other content; notes the digests of a new run, and of one that was `begun`
    by a version that noted none.

    `names` are the options that name each input, the first that is given counts.
    """
    noted = run.note(NOTE)
    if noted is None:
        if begun:
            logger.warning(
                "%s was begun by a version that noted no digests: whether %s are those of then is not known; they are "
                "noted now",
                *(run.path, ", ".join(found)),
            )
        run.note_once(NOTE, {**found, "code": {"version": __version__, "commit": commit()}})
        return
    settings = run.settings
    for what, digests in found.items():
        before, now = noted.get(what, {}).get("digest"), digests["digest"]
        if before is not None and now is not None and before != now:
            source = next((settings[name] for name in names[what] if settings.get(name)), "the built-in task")
            raise BadInput(
                f"{run.path} was begun with other content of its {what}, digest {before[:12]}, got {now[:12]} from "
                f"{source}; bring back what was there, or begin another run with --out."
            )
    if any(found[what] != noted.get(what) for what in found):  # the same content at another time
        run.note(NOTE, {**noted, **found})


def digest_rows(encoded: Mapping[str, Encoded], *about: Any) -> str:
    """Of the tokens and targets of every split, and of what else there is to know `about` them, JSON values."""
    found = hashlib.sha256(json.dumps(about).encode())
    for split, rows in sorted(encoded.items()):
        found.update(split.encode())
        for name, part in parts_of(rows):
            found.update(name.encode())
            found.update(part.tobytes() if isinstance(part, np.ndarray) else json.dumps(part).encode())
    return found.hexdigest()[:LETTERS]


def parts_of(encoded: Encoded) -> Iterator[tuple[str, Any]]:
    """Arrays and plain values of encoded rows, those of windows too, by name."""
    for field in fields(encoded):
        value = getattr(encoded, field.name)
        if field.name == "windows" and value is not None:
            yield from ((f"windows.{part.name}", getattr(value, part.name)) for part in fields(value))
        else:
            yield field.name, value


def digest_tokenizer(tokenizer: Any) -> str:
    """Of its vocabulary and rules; how it cuts and pads belongs to whoever calls it."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    document = dict(sorted(tokenizer.get_vocab().items())) if backend is None else json.loads(backend.to_str())
    rules = {key: value for key, value in document.items() if backend is None or key not in ("truncation", "padding")}
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()[:LETTERS]


def digest_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:LETTERS]


def digest_weights(source: str, noted: Mapping[str, Any]) -> dict[str, Any]:
    """The digest of a checkpoint's files with their sizes and times; taken from `noted` where these are the same."""
    folder = Path(source)
    if not folder.is_dir():
        config = cached_file(source, "config.json", _raise_exceptions_for_missing_entries=False)
        folder = folder if config is None else Path(config).parent
    files = sorted({path for pattern in WEIGHTS for path in folder.glob(pattern)}) if folder.is_dir() else []
    stamps = {path.name: [path.stat().st_size, path.stat().st_mtime_ns] for path in files}
    if noted.get("files") == stamps:
        return dict(noted)
    sums = {path.name: file_checksum(path) for path in files}
    digest = hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()[:LETTERS] if sums else None
    return {"digest": digest, "files": stamps}
