"""Log lines: where they go, and that other libraries talk again after a scope."""

import logging
from pathlib import Path

import optuna
import pytest
import transformers.utils.logging as transformers_logging

from archwright.cli.main import main
from archwright.logs import logger, quiet_libraries, silence_libraries, write_logs
from tests.cli.fakes import COMMANDS

Capture = pytest.CaptureFixture[str]


def test_lines_are_shown_when_asked_for(capsys: Capture) -> None:
    for options, shown in (({}, "careful\n"), ({"verbose": True}, "news\ncareful\n"), ({"quiet": True}, "")):
        with write_logs(**options):
            logger.info("news")
            logger.warning("careful")
        assert capsys.readouterr().err == shown
    assert logger.handlers == [] and logger.level == logging.NOTSET


def test_a_line_is_shown_once_whatever_libraries_do_to_the_root_logger(capsys: Capture) -> None:
    handler = logging.StreamHandler()
    with write_logs():
        logging.getLogger().addHandler(handler)
        try:
            logger.warning("careful")
        finally:
            logging.getLogger().removeHandler(handler)
    assert capsys.readouterr().err == "careful\n"
    assert logger.propagate


def test_a_file_has_all_lines_and_the_traceback(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "run.log"
    words = ["shrink", "x", "--ending", "failed", "--log-file", str(file)]
    assert main(words, COMMANDS) == 1
    assert capsys.readouterr().err.count("\n") == 1
    text = file.read_text()
    assert "ERROR the loss is not finite" in text and "Traceback" in text
    with write_logs(file=file, quiet=True):
        logger.info("news")
    assert file.read_text().startswith(text) and " INFO news\n" in file.read_text()


@pytest.mark.parametrize("option", ["-v", "--verbose", "--quiet"])
def test_every_command_has_the_options(option: str) -> None:
    assert main(["shrink", "x", option], COMMANDS) == 0


def test_libraries_are_quiet_only_inside() -> None:
    before = (optuna.logging.get_verbosity(), transformers_logging.get_verbosity())
    bars = transformers_logging.is_progress_bar_enabled()
    with quiet_libraries():
        assert optuna.logging.get_verbosity() == transformers_logging.get_verbosity() == logging.ERROR
        assert not transformers_logging.is_progress_bar_enabled()
    with pytest.raises(ZeroDivisionError), silence_libraries():
        assert not logging.getLogger("anything").isEnabledFor(logging.ERROR)
        raise ZeroDivisionError
    assert (optuna.logging.get_verbosity(), transformers_logging.get_verbosity()) == before
    assert transformers_logging.is_progress_bar_enabled() == bars and logging.root.manager.disable == 0
