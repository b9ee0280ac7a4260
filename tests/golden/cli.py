"""The command line as the console script calls it, in this process."""

import contextlib
import importlib
import io
import json
import os
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""


class Refused(AssertionError):
    """A command ended with another exit code than 0."""


def find_main() -> Callable[[], Any]:
    """What `[project.scripts]` names today."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["archwright"]
    module, _, name = told.partition(":")
    return getattr(importlib.import_module(module), name)


def call_main(words: Sequence[Any]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `archwright WORDS...`."""
    main, out, err, before = find_main(), io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["archwright", *map(str, words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    return int(code or 0), out.getvalue(), err.getvalue()


def run_cli(words: Sequence[Any]) -> dict[str, Any]:
    """The document that `archwright WORDS... --json FILE` writes; Refused where the command fails."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        code, _, err = call_main([*words, "--quiet", "--json", file])
        if code != 0:
            raise Refused(f"archwright {' '.join(map(str, words))} ended with {code}: {err.strip()}")
        return json.loads(file.read_text())


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[Path]:
    """The block runs with this working folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
