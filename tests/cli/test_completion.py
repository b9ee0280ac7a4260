"""`archwright completion`: the scripts know every command and option, and each shell completes with its own."""

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from archwright.cli.completion import SHELLS
from archwright.cli.main import main
from archwright.commands import COMMANDS
from archwright.configs.options import config_options
from tests.cli.fakes import COMMANDS as FAKES

ANSWER = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_archwright
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("completion")
    found = {}
    for shell in SHELLS:
        with pytest.MonkeyPatch.context() as patch:
            written: list[str] = []
            patch.setattr("builtins.print", lambda text, written=written, **_: written.append(text))
            assert main(["completion", shell]) == 0
        found[shell] = folder / shell
        found[shell].write_text("".join(written))
    return found


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_option_and_choice_is_in_the_script(shell: str, scripts: dict[str, Path]) -> None:
    text = scripts[shell].read_text()
    for name, command in COMMANDS.items():
        assert name in text
        for option in config_options(command.config).values():
            if option.name not in command.positional:
                assert option.flag[2:] in text, (name, option.flag)
                assert all(choice in text for choice in option.choices())


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_can_read_its_script(shell: str, scripts: dict[str, Path]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    done = subprocess.run([shell, "-n", str(scripts[shell])], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


COMPLETED = {
    "a command": (["comp"], {"compress", "completion"}),
    "a shell": (["completion", ""], set(SHELLS)),
    "an option": (["compress", "--text-p"], {"--text-pair-column"}),
    "a switch and its opposite": (["compress", "--no-skip"], {"--no-skip-empty"}),
    "an option of every command": (["worker", "--quie"], {"--quiet"}),
    "an option of another command": (["worker", "--text-p"], set()),
    "a choice": (["compress", "--preset", "p"], {"paper"}),
    "a file": (["compress", "--train", "rows"], set()),
}


@pytest.mark.parametrize(("words", "wanted"), COMPLETED.values(), ids=COMPLETED)
def test_bash_completes(words: list[str], wanted: set[str], scripts: dict[str, Path]) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    command = ["bash", "-c", ANSWER, "bash", str(scripts["bash"]), "archwright", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == wanted and done.stderr == ""


@pytest.mark.parametrize(("words", "wanted"), COMPLETED.values(), ids=COMPLETED)
def test_fish_completes(words: list[str], wanted: set[str], scripts: dict[str, Path], tmp_path: Path) -> None:
    """Its own command says what it would offer; where we have nothing it offers files, of which there is one."""
    if shutil.which("fish") is None:
        pytest.skip("no fish here")
    (tmp_path / "rows.csv").touch()
    script = f"source {scripts['fish']}; complete -C '{' '.join(['archwright', *words])}'"
    home = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    command = ["fish", "--no-config", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=home)
    offered = {line.partition("\t")[0] for line in done.stdout.splitlines()}
    assert offered == (wanted or ({"rows.csv"} if "--train" in words else set())) and done.stderr == ""


TYPED = {
    "a command": ("archwright sel\t", ["select"]),
    "a shell": ("archwright completion f\t", ["completion", "fish"]),
    "an option": ("archwright compress --text-p\t", ["compress", "--text-pair-column"]),
    "a switch and its opposite": ("archwright compress --no-skip\t", ["compress", "--no-skip-empty"]),
    "an option of another command": ("archwright worker --text-p\t", ["worker", "--text-p"]),
    "a choice": ("archwright compress --preset p\t", ["compress", "--preset", "paper"]),
    "a file": ("archwright compress --train ro\t", ["compress", "--train", "rows.csv"]),
}


@pytest.mark.parametrize("loaded", ["evaluated", "from a folder"])
def test_zsh_completes_what_is_typed(loaded: str, scripts: dict[str, Path], tmp_path: Path) -> None:
    """A real terminal: a tab is typed, and a function in place of the program says which words it got."""
    if shutil.which("zsh") is None:
        pytest.skip("no zsh here")
    (tmp_path / "rows.csv").touch()
    shutil.copy(scripts["zsh"], tmp_path / "_archwright")
    begin = {
        "evaluated": "source ./_archwright",
        "from a folder": "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u",
    }
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "HOME": str(tmp_path)})
    try:
        say = 'archwright() { print -r -- "<got" "$@" "got>" }'
        os.write(terminal, f'{begin[loaded]}; {say}; print "<got" ready "got>"\n'.encode())
        assert read_words(terminal) == ["ready"]
        for line, words in TYPED.values():
            os.write(terminal, f"{line}\n".encode())
            assert read_words(terminal) == words
    finally:
        os.write(terminal, b"exit\n")
        os.close(terminal)
        os.waitpid(child, 0)


def read_words(terminal: int) -> list[str]:
    """The words that the function printed, which end with `got>` on a line of its own."""
    text, end = "", time.monotonic() + 300
    while "got>\r\n" not in text:
        assert time.monotonic() < end, text
        if select.select([terminal], [], [], 1)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    return text.rpartition("<got ")[2].partition(" got>\r\n")[0].split()


@pytest.mark.parametrize("words", [[], ["csh"], ["bash", "zsh"]], ids=str)
def test_another_shell_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", *words], FAKES) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and "bash, zsh, fish" in captured.err
