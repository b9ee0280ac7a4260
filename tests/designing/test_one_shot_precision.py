"""What a one-shot super-network multiplies in, and that its file says so."""

import pytest

from archwright.configs import design as do
from archwright.designing import one_shot
from archwright.designing.one_shot import Supernets, find_precision
from archwright.spaces import ARCHITECTURES


@pytest.mark.parametrize(("made_for_it", "auto"), [(True, "bfloat16"), (False, "float32")])
def test_auto_is_what_the_processor_is_made_for(made_for_it: bool, auto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_shot, "has_bfloat16", lambda device: made_for_it)
    assert [find_precision(given) for given in ("auto", "float32", "bfloat16")] == [auto, "float32", "bfloat16"]


def test_a_supernet_of_another_precision_is_another_one() -> None:
    space, scoring = ARCHITECTURES["nlu-tiny"], do.DesignScoringOptions()
    names = {Supernets(space, scoring, (), precision).identity(0) for precision in ("float32", "bfloat16")}
    assert len(names) == 2
