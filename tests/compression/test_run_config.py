"""The options of a run lie in its folder as YAML, with which the same command can be given again."""

import stat
from pathlib import Path
from typing import Any

import torch

from archwright.cli.main import main
from archwright.configs.compress import CompressConfig
from archwright.configs.options import config_values, make_config
from archwright.configs.yaml_file import read_config
from tests.compression.runs import QUICK, compressed, refusal


def test_a_run_has_its_options_as_a_file(run: Any, capfd: Any) -> None:
    file = run.folder.path / "config.yaml"
    values = config_values(make_config(CompressConfig, read_config(file, CompressConfig)))
    assert values["trials"] == 14 and values["epochs"] == 6.0 and values["out"] == run.folder.path.resolve()
    noted = run.folder.settings
    assert {name: values[name] for name in noted if isinstance(noted[name], int | float)} == {
        name: value for name, value in noted.items() if isinstance(value, int | float)
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600  # the address of a store may hold a password
    code, line = refusal(capfd, ["compress", "--config", str(file), "--batch-size", "9"])
    assert code == 2 and "was begun with batch_size=16, got 9" in line


def test_the_file_resumes_the_run(run: Any, capsys: Any) -> None:
    before = (run.folder.path / "result.json").read_bytes()
    assert main(["compress", "--config", str(run.folder.path / "config.yaml"), "--quiet"]) == 0
    assert (run.folder.path / "result.json").read_bytes() == before


def test_threads_are_the_environments_and_noted(tmp_path: Path, given: dict[str, Any], monkeypatch: Any) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = torch.get_num_threads()
    options = {name: value for name, value in QUICK.items() if name != "threads"}
    found = compressed(tmp_path / "run", **{**options, **given, "threads": 0, "trials": 2})
    assert found.result["environment"]["threads"] == 1 and found.folder.note("threads") == {"threads": 1}
    assert torch.get_num_threads() == before
