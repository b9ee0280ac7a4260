"""`--options FILE` and `--save-config FILE`: the config as YAML; flags win over it, and it wins over presets."""

import json
from pathlib import Path
from typing import Any

import pytest

from archwright.cli.main import main
from archwright.cli.parser import load_config, parse
from archwright.commands import COMMANDS as REAL
from archwright.configs.compress import CompressConfig
from archwright.configs.options import config_values, make_config
from archwright.configs.yaml_file import read_config, write_config
from tests.cli.fakes import COMMANDS

Capture = pytest.CaptureFixture[str]


def result_of(words: list[str], folder: Path) -> dict[str, Any]:
    file = folder / "out.json"
    assert main([*words, "--quiet", "--json", str(file)], COMMANDS) == 0
    document: dict[str, Any] = json.loads(file.read_text())
    return document


@pytest.mark.parametrize("flag", ["--options", "--config"])
def test_a_file_gives_options_and_flags_win(flag: str, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("# mine\nmodel: bert\ntrials: 7\nminutes: 2e-1\norder: false\nobjectives: [error, flops]\nspace:\n")
    found = result_of(["shrink", flag, str(file)], tmp_path)
    assert (found["model"], found["trials"], found["minutes"], found["order"]) == ("bert", 7, 0.2, False)
    assert found["objectives"] == ["error", "flops"] and found["space"] == "small"  # null means not given
    found = result_of(["shrink", "roberta", flag, str(file), "--trials", "9", "--objectives", "int8"], tmp_path)
    assert (found["model"], found["trials"], found["objectives"]) == ("roberta", 9, ["int8"])


WRONG = {
    "unknown key": ("model: x\ntrails: 5\n", "unknown option 'trails'; did you mean trials?"),
    "type": ("model: x\ntrials: ten\n", "--trials must be a whole number, got 'ten'."),
    "no truth": ("model: x\norder: 3\n", "--order must be true or false, got 3."),
    "range": ("model: x\ntrials: 0\n", "--trials must be at least 1, got 0; leave it out for 100."),
    "choice": ("model: x\nsampler: nsga\n", "--sampler must be one of random, nsga2, got 'nsga'; did you mean nsga2?"),
    "no YAML": ("model: [x\n", "must be YAML, such as `trials: 100`; it is not in line 2"),
    "no mapping": ("- model\n", "must have one line per option, such as `trials: 100`, got a list."),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_mistake_in_the_file_is_one_line(text: str, message: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    assert main(["shrink", "--options", str(file)], COMMANDS) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"archwright: {file}") and message in said and said.count("\n") == 1


def test_a_file_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    assert main(["shrink", "x", "--options", str(tmp_path / "none.yaml")], COMMANDS) == 2
    assert capsys.readouterr().err == f"archwright: No such file or directory: {tmp_path / 'none.yaml'}\n"


def test_a_saved_config_gives_the_same_config(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    words = ["shrink", "bert", "--trials", "3", "--sizes", "1,2", "--no-order", "--out", "runs/ü"]
    first = result_of([*words, "--save-config", str(file)], tmp_path)
    assert "# What to try\ntrials: 3\n" in file.read_text(encoding="utf-8")
    assert result_of(["shrink", "--options", str(file)], tmp_path) == first


@pytest.mark.parametrize("name", REAL)
def test_every_real_config_comes_back(name: str, tmp_path: Path) -> None:
    command = REAL[name]
    words = ["somewhere"] if name in ("select", "export", "report", "worker") else []
    config = load_config(name, command, parse(name, command, words))
    write_config(tmp_path / "run.yaml", config)
    assert make_config(command.config, read_config(tmp_path / "run.yaml", command.config)) == config
    arguments = parse(name, command, ["--options", str(tmp_path / "run.yaml")])
    assert load_config(name, command, arguments) == config


def test_the_order_of_precedence(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("preset: paper\ntrials: 7\nbatch-size: 8\n")
    arguments = parse("compress", REAL["compress"], ["--config", str(file), "--batch-size", "16"])
    config = load_config("compress", REAL["compress"], arguments)
    assert (config.search.trials, config.supernet.batch_size, config.supernet.temperature) == (7, 16, 10.0)
    assert config.measure.rounds == 30


@pytest.mark.parametrize("name", ["score", "train"])
def test_commands_with_a_config_of_their_own_keep_it(name: str, tmp_path: Path) -> None:
    arguments = parse(name, REAL[name], ["--config", "design.json"])
    assert arguments.values == {"config": "design.json"} and arguments.options_file is None


def test_values_of_a_config() -> None:
    values = config_values(CompressConfig())
    assert values["trials"] == 150 and make_config(CompressConfig, values) == CompressConfig()
