"""`import archwright as aw`: ordinary typed functions that agree with the configs of their commands."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import archwright as aw
from archwright.commands import COMMANDS, load
from archwright.configs.options import config_options
from archwright.errors import BadInput
from scripts import make_api

FUNCTIONS = [name for name in COMMANDS if name != "worker"]


def test_the_file_is_what_the_script_writes() -> None:
    """After a change of the configs: `python -m scripts.make_api`."""
    assert make_api.FILE.read_text(encoding="utf-8") == make_api.api_source()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_and_configs_agree(name: str) -> None:
    options = config_options(COMMANDS[name].config)
    parameters = inspect.signature(getattr(aw, name)).parameters
    assert set(parameters) == {*options, *(make_api.IN_PYTHON if name == "compress" else ())}
    filled = {key for option in options.values() for values in option.presets.values() for key in values}
    for key, parameter in ((key, parameters[key]) for key in options):
        option = options[key]
        if option.required:
            assert parameter.default is inspect.Parameter.empty
        elif key in filled:
            assert parameter.default is None  # so that a value that was given can be told from the preset's
        else:
            default = parameter.default
            assert (default if default is None else option.parse(default)) == option.field.default
        text = str(parameter.annotation)
        assert option.type.__name__ in text and (not option.several or "Sequence" in text)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_return_what_their_commands_return(name: str) -> None:
    declared = str(inspect.signature(getattr(aw, name)).return_annotation).split(" | ")
    types = get_type_hints(load(COMMANDS[name].target))["return"]
    assert sorted(declared) == sorted(each.__name__ for each in get_args(types) or (types,))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_option_is_explained(name: str) -> None:
    doc = inspect.getdoc(getattr(aw, name))
    assert doc is not None
    assert [key for key in config_options(COMMANDS[name].config) if f"\n{key}: " not in doc] == []


def test_every_exported_name_is_there() -> None:
    assert set(aw.__all__) >= {*FUNCTIONS, "open_run", "__version__"} and len(aw.__all__) <= 15
    assert all(getattr(aw, name) for name in aw.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = aw.nonsense  # type: ignore[attr-defined]


def test_an_unknown_keyword_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="trails"):
        aw.compress(trails=5)  # type: ignore[call-overload]


def seen_config(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    """The config that `compress` would run with."""
    seen = []
    monkeypatch.setattr("archwright.commands.compress.compress", seen.append)
    aw.compress(**options)
    return seen[0]


def test_what_is_given_beside_a_preset_wins_also_when_it_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    config = seen_config(monkeypatch, preset="paper", epochs=3.0, corners=["middle"])
    assert config.supernet.epochs == 3.0 and config.supernet.batch_size == 4 and config.search.corners == ("middle",)


def test_paths_may_be_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen_config(monkeypatch, out="runs/x").output.out == Path("runs/x")


def test_a_value_of_another_type_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"--trials must be a whole number, got 2\.5"):
        seen_config(monkeypatch, trials=2.5)


def test_rooms_can_be_imported_beside_the_functions() -> None:
    code = "import archwright.training.schedule, archwright as aw; assert callable(aw.train) and callable(aw.design)"
    subprocess.run([sys.executable, "-c", code], check=True)
