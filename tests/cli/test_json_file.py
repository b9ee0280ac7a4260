"""`--json`: whole or not at all, and refused before the work when it cannot be written."""

import json
import os
import stat
from pathlib import Path

import pytest

from archwright.cli.output import check_writable, write_json
from archwright.errors import BadInput, Failed


def test_writes_whole_files_with_ordinary_rights(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")
    check_writable(path)
    assert path.read_text() == "old"
    write_json(path, {"a": [1, "ü"]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": [1, "ü"]}
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.json", "plain"]


def test_a_link_keeps_pointing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "folder" / "out.json")
    write_json(link, {"a": 1})
    assert link.is_symlink() and json.loads((tmp_path / "folder" / "out.json").read_text()) == {"a": 1}


def test_a_device_is_written_to_and_not_replaced() -> None:
    check_writable(Path(os.devnull))
    write_json(Path(os.devnull), {"a": 1})
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_failure_leaves_the_old_file_and_nothing_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.json"
    write_json(path, {"a": 1})
    with pytest.raises(Failed, match="JSON"):
        write_json(path, {"a": float("inf")})

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1} and list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_is_refused_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)  # root may write anywhere, so rights cannot show it
    with pytest.raises(BadInput, match="Permission denied"):
        check_writable(tmp_path / "out.json")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder where even root cannot create files")
def test_a_folder_that_refuses_even_root() -> None:
    with pytest.raises(BadInput, match="--json needs a folder one may write to"):
        check_writable(Path("/proc/out.json"))
