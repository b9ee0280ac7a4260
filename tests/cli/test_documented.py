"""Command lines in the README, the docs and the help: each has a command, options and values that exist."""

import re
import shlex
from pathlib import Path

import pytest

from archwright.cli.completion import SHELLS
from archwright.cli.parser import COMPLETION, check_command, parse
from archwright.commands import COMMANDS
from archwright.configs.options import config_options

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4}(\S.*)$", re.MULTILINE)
IN_A_SENTENCE = re.compile(r"`(archwright [^`]+)`")
TO_TYPE = re.compile(r"(?:\$ |.* -m )?(archwright .*)")
TO_FILL_IN = re.compile(r"\.\.\.|archwright [A-Z]+|--\S+ [A-Z]+\b(?!/)")
"""`archwright compress --method NAME` describes lines, and is none."""


def documented(page: Path) -> list[str]:
    """Command lines of a page; one that goes on in the next line as one."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    typed = [line for block in FENCED.findall(text) for line in block.splitlines()] + INDENTED.findall(text)
    lines = [found[1] for line in typed if (found := TO_TYPE.fullmatch(line))] + IN_A_SENTENCE.findall(text)
    commands = dict.fromkeys(line.partition(" #")[0].strip() for line in lines)
    return [line for line in commands if not TO_FILL_IN.search(line)]


LINES = [(page.name, line) for page in PAGES for line in documented(page)]
LINES += [("help", command.example) for command in COMMANDS.values() if command.example]


def test_every_command_is_documented() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in COMMANDS if f"archwright {name}" not in pages] == []
    assert len(LINES) > 80  # else the patterns find nothing, and everything passes


@pytest.mark.parametrize(("page", "line"), LINES, ids=map(": ".join, LINES))
def test_a_documented_line_can_be_typed(page: str, line: str) -> None:
    _, name, *words = shlex.split(line)
    if name == COMPLETION:
        assert set(words) <= set(SHELLS) | {"|", "source"}
        return
    check_command(name, COMMANDS)
    if words or page == "help":  # without any it is the name of a command in a sentence
        options = config_options(COMMANDS[name].config)
        for option, value in parse(name, COMMANDS[name], words).values.items():
            options[option].parse(value)


IMPORTS = [
    (page.name, line)
    for page in PAGES
    for line in dict.fromkeys(
        re.findall(r"^\s*((?:from|import) archwright\S*(?: import .*)?)$", page.read_text(), re.M)
    )
]


@pytest.mark.parametrize(("page", "line"), IMPORTS, ids=map(": ".join, IMPORTS))
def test_a_documented_import_works(page: str, line: str) -> None:
    exec(line.split("  #")[0], {})


MENTIONED = [
    (page.name, path)
    for page in (*PAGES, ROOT / "CONTRIBUTING.md")
    for path in dict.fromkeys(re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|csv|yml))(?::[^`]*)?`", page.read_text()))
    if "*" not in path and not path.startswith(("runs/", "site/"))
]


@pytest.mark.parametrize(("page", "path"), MENTIONED, ids=map(": ".join, MENTIONED))
def test_a_mentioned_file_exists(page: str, path: str) -> None:
    homes = (ROOT, ROOT / "src" / "archwright", ROOT / "docs", ROOT / "src")
    assert any((home / path).exists() for home in homes), path
