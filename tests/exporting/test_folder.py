"""A folder that is there whole or not at all."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from archwright.errors import BadInput
from archwright.exporting.folder import SCHEMA, write_whole_folder


def write(folder: Path, **texts: str) -> None:
    report = {"schema": SCHEMA, "files": {name: len(text) for name, text in texts.items()}}
    with write_whole_folder(folder) as place:
        for name, text in texts.items():
            (place / name).write_text(text)
        (place / "parity.json").write_text(json.dumps(report))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_was_written_is_there_and_nothing_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b", weights="1")
    assert names(tmp_path / "a") == {"b"}
    assert names(tmp_path / "a" / "b") == {"weights", "parity.json"}


def test_files_are_as_readable_as_the_folder(tmp_path: Path) -> None:
    with write_whole_folder(tmp_path / "out") as place:
        (place / "secret").touch(mode=0o600)
    assert (tmp_path / "out" / "secret").stat().st_mode & 0o777 == (tmp_path / "out").stat().st_mode & 0o666


def test_an_error_leaves_nothing_not_even_folders_above(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), write_whole_folder(tmp_path / "a" / "b") as place:
        (place / "half").write_text("x")
        raise KeyboardInterrupt
    assert names(tmp_path) == set()


def test_an_error_leaves_an_earlier_export(tmp_path: Path) -> None:
    write(tmp_path / "out", weights="1")
    with pytest.raises(RuntimeError), write_whole_folder(tmp_path / "out"):
        raise RuntimeError
    assert names(tmp_path) == {"out"}
    assert (tmp_path / "out" / "weights").read_text() == "1"


def test_an_earlier_export_is_replaced_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path / "out", weights="1", old="x")
    write(tmp_path / "out", weights="2")
    assert names(tmp_path) == {"out"}
    assert names(tmp_path / "out") == {"weights", "parity.json"}
    assert (tmp_path / "out" / "weights").read_text() == "2"


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write(tmp_path / "out", weights="1")
    assert "weights" in names(tmp_path / "out")


def test_a_link_to_an_export_stays_a_link(tmp_path: Path) -> None:
    write(tmp_path / "out", weights="1")
    (tmp_path / "link").symlink_to(tmp_path / "out")
    write(tmp_path / "link", weights="2")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "out" / "weights").read_text() == "2"


@pytest.mark.parametrize("foreign", ["thesis.txt", "deep/thesis.txt"])
@pytest.mark.parametrize("exported", [False, True])
def test_files_of_others_are_not_overwritten(tmp_path: Path, foreign: str, exported: bool) -> None:
    if exported:
        write(tmp_path / "out", weights="1")
    (tmp_path / "out" / foreign).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "out" / foreign).write_text("years of work")
    with pytest.raises(BadInput, match=r"with (thesis|deep).*; choose another folder"):
        write(tmp_path / "out", weights="2")
    assert (tmp_path / "out" / foreign).read_text() == "years of work"


@pytest.mark.parametrize("report", ["{", "[]", '{"schema": "another/1", "files": {}}', "{}"])
def test_a_report_that_is_not_ours_protects_the_folder(tmp_path: Path, report: str) -> None:
    (tmp_path / "parity.json").write_text(report)
    with pytest.raises(BadInput, match="earlier export"):
        write(tmp_path, weights="2")


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(BadInput, match="got the file"):
        write(tmp_path / "out", weights="1")
    with pytest.raises(BadInput, match="one may write to"):
        write(tmp_path / "out" / "deeper", weights="1")
    assert names(tmp_path) == {"out"}


def test_a_read_only_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")  # the tests may run as root, whom no mode stops

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(BadInput, match=r"one may write to, got .*out \(Permission denied\)\.$"):
        write(tmp_path / "out", weights="1")
    assert names(tmp_path) == set()


def test_two_at_once(tmp_path: Path) -> None:
    with write_whole_folder(tmp_path / "out") as place:
        (place / "a").write_text("1")
        with pytest.raises(BadInput, match="another export is writing"):
            write(tmp_path / "out", weights="2")
    assert names(tmp_path / "out") == {"a"}


KILLED = """
import sys, time
from pathlib import Path
from archwright.exporting.folder import write_whole_folder
with write_whole_folder(Path(sys.argv[1])) as place:
    (place / "half").write_text("x")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_a_killed_export_leaves_no_folder_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "src"
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(source)},
    )
    assert child.stdout is not None and child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not (tmp_path / "out").exists()
    write(tmp_path / "out", weights="1")
    assert names(tmp_path) == {"out"}
    assert names(tmp_path / "out") == {"weights", "parity.json"}
