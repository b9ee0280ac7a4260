"""In which order files are dealt to processes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("xdist")

from tests.scheduling import LONGEST, longest_first, unit_of

ROOT = Path(__file__).parents[1]


def test_known_long_files_come_first_and_then_those_with_many_tests() -> None:
    names = [
        "tests/a.py::one",
        "tests/b.py::one",
        "tests/b.py::two",
        "tests/golden/x.py::one",
        "tests/golden/y.py::one",
    ]
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
    longest_first(items)
    assert [item.nodeid for item in items] == [*names[3:], *names[1:3], names[0]]
    assert len({unit_of(name) for name in names}) == 3


@pytest.mark.parametrize("unit", LONGEST)
def test_the_long_ones_are_there(unit: str) -> None:
    assert (ROOT / unit).exists()
