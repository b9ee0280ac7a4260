"""The command line from the outside: words in, exit code, stdout, stderr and files out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from archwright import __version__
from archwright.cli.main import main
from archwright.commands import COMMANDS as REAL
from tests.cli.fakes import COMMANDS

Capture = pytest.CaptureFixture[str]


def error_line(words: list[str], code: int, capsys: Capture) -> str:
    """The one line on stderr of a command that must end with this code."""
    assert main(words, COMMANDS) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("archwright: ") and captured.err.count("\n") == 1
    return captured.err.strip()


def test_a_command_shows_its_answer_and_writes_json(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "out.json"
    words = ["shrink", "bert", "--trials", "5", "--minutes=1.5", "--objectives", "error,flops", "--objectives", "int8"]
    words += ["--no-order", "--regression", "--sizes", "1, 2", "--out", "somewhere", "--json", str(file)]
    assert main(words, COMMANDS) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("tried 5\n", "")
    assert json.loads(file.read_text()) == {
        "trials": 5,
        "minutes": 1.5,
        "sampler": "nsga2",
        "space": "small",
        "objectives": ["error", "flops", "int8"],
        "sizes": [1, 2],
        "order": False,
        "regression": True,
        "model": "bert",
        "out": "somewhere",
    }


def test_defaults_are_those_of_the_dataclass(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    assert main(["shrink", "bert", "--quiet", "--json", str(file)], COMMANDS) == 0
    result = json.loads(file.read_text())
    assert result["trials"] == 100 and result["order"] is True and result["regression"] is None
    assert result["objectives"] == ["error", "parameters"] and result["out"] == "runs/latest"


def test_quiet_shows_nothing(capsys: Capture) -> None:
    assert main(["shrink", "bert", "--quiet"], COMMANDS) == 0
    assert capsys.readouterr() == ("", "")


MISTAKES = {
    "command": (["shrnk", "x"], "archwright: unknown command 'shrnk'; did you mean shrink?"),
    "strange command": (["xyz"], "archwright: unknown command 'xyz'; choose one of shrink, grow"),
    "global option": (["--trials"], "archwright: unknown option '--trials'; choose one of shrink, grow"),
    "option": (["shrink", "x", "--trails", "5"], "archwright: unknown option --trails; did you mean --trials?"),
    "option with value": (["shrink", "x", "--ordr=5"], "archwright: unknown option --ordr; did you mean --order?"),
    "abbreviated option": (["shrink", "x", "--tri", "5"], "archwright: unknown option --tri; did you mean --trials?"),
    "choice": (
        ["shrink", "x", "--sampler", "nsga"],
        "archwright: --sampler must be one of random, nsga2, got 'nsga'; did you mean nsga2?",
    ),
    "no positional": (
        ["shrink"],
        "archwright: the following arguments are required: MODEL; `archwright shrink --help`",
    ),
    "second positional": (["shrink", "x", "y"], "archwright: unknown word 'y'; `archwright shrink --help` explains"),
    "no value": (["shrink", "x", "--trials"], "archwright: --trials: expected one argument; `archwright shrink"),
    "not whole": (["shrink", "x", "--trials", "2.5"], "archwright: --trials must be a whole number, got '2.5'"),
    "not a number": (["shrink", "x", "--minutes", "soon"], "archwright: --minutes must be a number, got 'soon'"),
    "not finite": (["shrink", "x", "--minutes", "nan"], "archwright: --minutes must be a finite number, got 'nan'"),
    "in a list": (["shrink", "x", "--sizes", "1,b"], "archwright: --sizes must be a whole number, got 'b'"),
    "empty path": (["shrink", "x", "--out", ""], "archwright: --out must name a file or folder, got an empty text"),
    "rule of the dataclass": (["shrink", "x", "--trials=-1"], "archwright: --trials must be at least 1, got -1; leave"),
    "json is a folder": (["shrink", "x", "--json", "."], "archwright: --json must name a file, got the folder ."),
    "json has no folder": (
        ["shrink", "x", "--json", "no/x.json"],
        "archwright: --json needs an existing folder, got no",
    ),
}


@pytest.mark.parametrize(("words", "line"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(words: list[str], line: str, capsys: Capture) -> None:
    assert error_line(words, 2, capsys).startswith(line)


ENDINGS = {
    "bad input": (2, "task must exist, got 'x'; choose 'y'."),
    "missing": (2, "No such file or directory: data.csv"),
    "read-only": (2, "Read-only file system: /mnt/out"),
    "disk full": (1, "No space left on device"),
    "vague": (1, "model 'x' is not a folder and no model of the hub"),
    "failed": (1, "the loss is not finite after step 3; lower the learning rate."),
    "no memory": (1, "out of memory; choose a smaller batch size or model, or close other programs."),
    "stopped": (130, "interrupted; the same command again goes on from here."),
}


@pytest.mark.parametrize(("ending", "code", "line"), [(name, *rest) for name, rest in ENDINGS.items()], ids=ENDINGS)
def test_a_job_that_ends_badly_is_one_line(
    ending: str, code: int, line: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["shrink", "x", "--ending", ending, "--json", str(tmp_path / "out.json")]
    assert error_line(words, code, capsys) == f"archwright: {line}"
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("ARCHWRIGHT_TRACEBACK", "1")
    assert main(words, COMMANDS) == code
    shown = capsys.readouterr().err
    assert "Traceback" in shown and shown.endswith(f"archwright: {line}\n")


def test_a_defect_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        main(["shrink", "x", "--ending", "defect"], COMMANDS)


def test_a_result_that_is_no_json_fails_and_leaves_no_file(tmp_path: Path, capsys: Capture) -> None:
    line = error_line(["shrink", "broken", "--json", str(tmp_path / "out.json")], 1, capsys)
    assert line.startswith("archwright: the result cannot be written as JSON")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["-h"], ["--help"]], ids=str)
def test_the_overview_lists_every_command(words: list[str], capsys: Capture) -> None:
    assert main(words, COMMANDS) == 0
    shown = capsys.readouterr().out
    assert "  shrink  make it smaller\n  grow    make it larger\n" in shown and "archwright shrink bert" in shown


def test_no_words_at_all_show_the_overview_but_are_no_success(capsys: Capture) -> None:
    assert main([], COMMANDS) == 2
    assert "make it smaller" in capsys.readouterr().out


def test_version(capsys: Capture) -> None:
    assert main(["--version"], COMMANDS) == 0
    assert capsys.readouterr().out == f"archwright {__version__}\n"


def test_help_of_a_command_explains_every_option_without_loading_the_job(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["shrink", "--help"], COMMANDS) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: archwright shrink MODEL [options]\n\nmake it smaller\n")
    assert "What to try:" in shown and "place:" in shown and "every command:" in shown
    assert "Sub-networks to try, at most. (default: 100)" in " ".join(shown.split())
    assert "What may be removed. One of: small, layer. (default: small)" in " ".join(shown.split())
    assert "nsga2: genetic, 100 % ours\n" in shown
    assert "--order, --no-order" in shown and "(default: on)" in shown and "None" not in shown
    assert "Where chance begins. (default: 0)" in shown
    assert "--objectives TEXT" in shown and "(default: error,parameters)" in shown
    assert main(["grow", "--help"], COMMANDS) == 0
    assert capsys.readouterr().out.startswith("usage: archwright grow [MODEL] [options]")


@pytest.mark.parametrize("name", REAL)
def test_every_real_command_has_a_help_for_newcomers(name: str, capsys: Capture) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert REAL[name].summary in shown and "--json FILE" in shown and "--quiet" in shown
    assert "typing." not in shown and "%%" not in shown  # a description that Python wrote, or one escaped twice


def test_help_shows_what_a_newcomer_needs_and_help_all_the_rest(capsys: Capture) -> None:
    pages = []
    for flag in ("--help", "--help-all"):
        assert main(["compress", flag]) == 0
        pages.append(capsys.readouterr().out)
    short, whole = pages
    assert (
        "--minutes" in short
        and "--fisher-trust" not in short
        and "more options: archwright compress --help-all" in short
    )
    assert "--fisher-trust" in whole and len(short.splitlines()) < len(whole.splitlines()) / 2


def test_words_of_other_tools(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    words = ["shrink", "bert", "--n-trials", "5", "--output-dir", "there", "--quiet", "--json", str(file)]
    assert main(words, COMMANDS) == 0
    assert json.loads(file.read_text())["trials"] == 5 and json.loads(file.read_text())["out"] == "there"


def test_json_to_the_standard_output_is_all_that_goes_there(capsys: Capture) -> None:
    assert main(["shrink", "bert", "--json", "-"], COMMANDS) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "bert"


def test_far_words_are_not_suggested(capsys: Capture) -> None:
    assert "did you mean" not in error_line(["shrink", "x", "--foo", "5"], 2, capsys)


def test_help_into_a_closed_pipe_is_silent() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "archwright.cli.main", "--help"], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
