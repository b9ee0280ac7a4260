"""Bad command lines, drawn from the tables of options: exit code 2, one line, nothing written."""

import random
from pathlib import Path
from typing import Any

import pytest

from archwright.commands import COMMANDS
from archwright.configs.options import Option, config_options
from tests.compression.runs import refusal

LINES = 20
"""In each part; ten parts are 200 command lines."""


def bad_value(option: Option, rng: random.Random) -> str | None:
    """A value that the option must refuse; None where any text will do."""
    bounds = {name: bound for name, bound in option.field.metadata.get("bounds", {}).items() if bound is not None}
    names = [name for name in option.choices() if len(name) > 1]
    wrong: list[str] = []
    if names and not option.number_too:
        wrong += [f"{rng.choice(names)}x", rng.choice(names)[:-1] + "#", "nothing-of-the-kind"]
    if option.type in (int, float):
        wrong += ["three", "1e", "--", "0x10g", "nan" if option.type is float else "1.5"]
        for rule, step in (("minimum", -1), ("above", 0), ("maximum", 1), ("below", 0)):
            wrong += [str(option.type(bounds[rule] + step))] if rule in bounds else []
    return rng.choice(wrong) if wrong else None


def bad_line(rng: random.Random) -> list[str]:
    """A command with one mistake: a value, an option that does not exist, or one without its value."""
    name = rng.choice(list(COMMANDS))
    command = COMMANDS[name]
    options = {key: each for key, each in config_options(command.config).items() if key not in command.positional}
    words = [name, *("nowhere" for _ in command.positional)]
    option = rng.choice(list(options.values()))
    value = None if option.type is bool or option.switch_too else bad_value(option, rng)
    if value is not None:
        return [*words, f"{option.flag}={value}"]
    mistake = rng.choice(("unknown", "no value", "word"))
    if mistake == "no value" and option.type is not bool and not option.switch_too:
        return [*words, option.flag]
    letters = list(option.flag)
    letters.insert(rng.randrange(3, len(letters)), rng.choice("qzx"))
    return [*words, "".join(letters), "1"]


@pytest.mark.parametrize(
    "option", ["design --length", "design --out", "rank --proxies", "compress --repair", "rank --json"]
)
def test_two_dashes_are_no_value(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.chdir(tmp_path)
    command, flag = option.split()
    code, line = refusal(capfd, [command, f"{flag}=--"])
    assert code == 2 and line.startswith(f"archwright: {flag} must have a value")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", [*range(3), *(pytest.param(part, marks=pytest.mark.slow) for part in range(3, 10))])
def test_bad_command_lines(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(f"command lines {part}")
    for _ in range(LINES):
        words = bad_line(rng)
        code, line = refusal(capfd, words)
        assert code == 2, (words, line)
        assert list(tmp_path.iterdir()) == [], words
