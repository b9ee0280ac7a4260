"""`import archwright as aw`: the verbs, what they say about themselves, and rooms of the same name."""

import inspect
from pathlib import Path
from types import ModuleType

import pytest

import archwright as aw
from archwright.cli import verbs
from archwright.errors import BadInput
from tests.cli.fakes import COMMANDS


def test_a_verb_calls_its_command_with_the_options_as_keywords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "COMMANDS", COMMANDS)
    answer = verbs.verb("shrink")(model="bert", trials=3)
    assert answer.values["model"] == "bert" and answer.values["trials"] == 3 and answer.values["order"] is True
    plain = verbs.verb("shrink")(model="bert", out="runs/x", objectives=["error", "flops"]).values
    assert plain["out"] == Path("runs/x") and plain["objectives"] == ("error", "flops")
    with pytest.raises(BadInput, match="tirals"):
        verbs.verb("shrink")(model="bert", tirals=3)


def test_a_verb_explains_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "COMMANDS", COMMANDS)
    shrink = verbs.verb("shrink")
    parameters = inspect.signature(shrink).parameters
    assert parameters["trials"].default == 100 and parameters["model"].default is inspect.Parameter.empty
    assert parameters["minutes"].annotation == float | None
    assert shrink.__name__ == "shrink"
    assert inspect.getdoc(shrink).startswith("make it smaller\n\ntrials: Sub-networks to try, at most.")


def test_every_exported_name_is_there() -> None:
    assert len(aw.__all__) <= 15 and dir(aw) == sorted(aw.__all__)
    for name in aw.__all__:
        assert getattr(aw, name)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = aw.nonsense


def test_importing_the_room_of_that_name_keeps_the_verb() -> None:
    aw.export = ModuleType("archwright.exporting")  # what the import system does after loading the room
    assert callable(aw.export) and not isinstance(aw.export, ModuleType)
    aw.anything = ModuleType("archwright.anything")
    assert isinstance(aw.anything, ModuleType)
    del aw.anything
