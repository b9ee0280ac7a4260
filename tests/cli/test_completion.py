"""`archwright completion`: the scripts know every command and option, and bash completes with its own."""

import shutil
import subprocess
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


@pytest.mark.parametrize("words", [[], ["csh"], ["bash", "zsh"]], ids=str)
def test_another_shell_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", *words], FAKES) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and "bash, zsh, fish" in captured.err
