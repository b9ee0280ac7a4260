"""Ctrl-C while libraries are loaded, and folders with names that mean something to a terminal or a shell."""

import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from archwright.cli.exit_codes import exit_code
from archwright.cli.main import main
from tests.compression.runs import listen

EARLY = """
import os, signal
from archwright.cli.interrupts import ending_at_once
with ending_at_once():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException as error:
        raise ImportError("half a library") from error
"""


def test_an_interrupted_import_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, preexec_fn=listen)
    assert done.returncode == 130
    assert done.stderr == "archwright: interrupted before anything was done.\n"


def test_afterwards_ctrl_c_is_as_before() -> None:
    from archwright.cli.interrupts import ending_at_once

    before = signal.getsignal(signal.SIGINT)
    with ending_at_once():
        pass
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_that_a_library_made_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> NoReturn:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise SystemError("initialization failed") from error

    assert exit_code(work) == 130
    assert capsys.readouterr().err.startswith("archwright: interrupted")


def test_names_of_folders_are_no_markup(run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "odd[/b] $(name) :smile:"
    shutil.copytree(run.folder.path, folder)
    assert main(["select", str(folder), "--params", "100%"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("next: ") and str(folder) in shlex.split(line)


def test_an_export_leaves_the_cache_of_modules_alone(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers.dynamic_module_utils

    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "cache"))
    words = ["export", str(run.folder.path), "--trial", "-1", "--to", "compact", "--out", str(tmp_path / "out")]
    assert main([*words, "--quiet"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    assert not list((tmp_path / "out").rglob("__pycache__"))
