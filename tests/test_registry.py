"""The registry: lazy members, entry points of other packages, descriptions without imports."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from archwright.errors import BadInput
from archwright.registry import Lazy, Registry


@dataclass(frozen=True)
class Record:
    description: str


def registry(group: str | None = None) -> Registry[Record]:
    return Registry(
        "thing", {"near": Record("here at once"), "far": Lazy("json:decoder", "loaded on first use")}, group=group
    )


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = "THING = Thing()") -> None:
    """A package on the path with one entry point of the group archwright.things."""
    (folder / "others.py").write_text(f"class Thing:\n    description = 'from elsewhere'\n{text}\n")
    info = folder / "others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[archwright.things]\nforeign = others:THING\nnear = others:THING\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "others", raising=False)


def test_a_lazy_member_is_imported_when_it_is_used() -> None:
    code = (
        "import sys\nfrom archwright.registry import Lazy, Registry\n"
        "r = Registry('thing', {'far': Lazy('wave:open', 'sound')})\n"
        "assert list(r) == ['far'] and r.descriptions() == {'far': 'sound'} and 'wave' not in sys.modules\n"
        "assert callable(r['far']) and 'wave' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_it_is_a_mapping_in_the_order_given() -> None:
    things = registry()
    assert list(things) == ["near", "far"] and len(things) == 2 and "far" in things and "no" not in things
    assert things["near"].description == "here at once"
    with pytest.raises(KeyError):
        things["no"]


def test_a_wrong_name_gets_the_nearest_one() -> None:
    with pytest.raises(BadInput, match="got 'nead'; did you mean near"):
        registry().find("nead", option="--thing")
    with pytest.raises(BadInput, match="there are near, far"):
        registry().find("zzz", option="--thing")


def test_an_installed_package_adds_a_member_but_replaces_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    things = registry("archwright.things")
    assert list(things) == ["near", "far", "foreign"] and len(things) == 3
    assert things.descriptions()["foreign"] == things.find("foreign", option="--thing").description == "from elsewhere"
    assert things["near"].description == "here at once"


def test_a_broken_package_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "THING = 1 / 0")
    with pytest.raises(BadInput, match="thing 'foreign' of the package others cannot be loaded"):
        registry("archwright.things")["foreign"]
