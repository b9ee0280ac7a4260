"""Chains taken when they are wanted: the numbers of a direct look, kept for good, also after kill -9."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archwright.errors import Failed
from archwright.jobs import COMMANDS, call
from archwright.jobs import scoring_options as so
from archwright.jobs.discovery import direct, lazy
from archwright.jobs.discovery.direct import Taking, stored
from archwright.jobs.discovery.ground import Land, land_of, lazily
from archwright.jobs.discovery.lazy import FILE, Drawer, Lazy
from archwright.jobs.discovery.phases import Phases
from archwright.jobs.looking import recorded
from archwright.proxies import Unscored
from archwright.proxies.formula import EXTENDED, Formula, parse
from archwright.proxies.sources import passes_needed, roles_needed
from archwright.spaces.formulas import FormulaSpace
from tests.jobs.discovering import toys
from tests.jobs.discovering.test_interrupted import killed_when
from tests.jobs.runs import words_of

GROUPS = (so.Table, so.Formulas, so.Recording)


def land(options: dict[str, Any], **changes: Any) -> Land:
    given = {**options, **changes}
    groups = [group(**{k: v for k, v in given.items() if k in group.__dataclass_fields__}) for group in GROUPS]
    with land_of(*groups, Phases()) as found:  # type: ignore[arg-type]
        return found


def measured(formula: Formula, probe: Any) -> float:
    try:
        return formula.measure(probe)
    except Unscored:
        return np.inf


@pytest.mark.parametrize(("unary", "inputs"), [(3, "lpzero"), (4, "extended"), (5, "lpzero")])
def test_the_same_number_as_a_direct_look(options: dict[str, Any], unary: int, inputs: str) -> None:
    """From recorded tensors, from tensors on disk, and from the drawer."""
    where = land(options, unary=unary, inputs=inputs, evolve=True)
    table, rng, places = where.table, np.random.default_rng(unary), [0, len(where.looks) // 2]
    assert isinstance(table, Lazy)
    formulas = [formula for formula in (where.space.sample(rng) for _ in range(16)) if not formula.empty]
    probes = [recorded(where.looks[one], passes_needed(EXTENDED), roles_needed(EXTENDED)) for one in places]
    table.fetch(formulas[:8], places)  # the others are taken of what lies on disk
    expected = [[measured(formula, probe) for probe in probes] for formula in formulas]
    for of in (table, again := lazily(where.looks, where.space, where.folder, toys.here)):
        for formula, direct_look in zip(formulas, expected, strict=True):
            found = of.scores(formula, places)
            assert np.where(np.isnan(found), np.inf, found) == pytest.approx(direct_look, rel=1e-12)  # sums over layers
    assert again.taken == 0


def test_tensors_come_and_go(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    where = land(options, unary=3, evolve=True)
    table, formula = where.table, parse("sum(sqrt(exp(A)) * frobenius(S))")
    looks = []
    monkeypatch.setattr(direct, "recorded", lambda *given: looks.append(given) or recorded(*given))
    first = table.scores(formula, [1])
    (file,) = (options["out"] / "tensors").glob("*.safetensors")
    assert set(stored(file)) == set(where.space.inputs) and len(looks) == 1
    table.scores(parse("sum(log(exp(A)) - J)"), [1])
    assert len(looks) == 1
    table.rest()
    assert not (options["out"] / "tensors").exists()
    assert lazily(where.looks, where.space, where.folder, toys.here).scores(formula, [1]).tolist() == first.tolist()
    assert len(looks) == 1
    monkeypatch.setattr(direct, "ROOM", 0)
    table.scores(parse("sum(square(exp(A)) - J)"), [1])
    assert len(looks) == 2 and not any((options["out"] / "tensors").iterdir())


def test_a_damaged_drawer_is_told(tmp_path: Path) -> None:
    Drawer(tmp_path).add("one", {"A": {("exp",): [1.0, np.inf], (): [np.nan, 2.0]}})
    found = Drawer(tmp_path).of("one")
    assert found["A", ("exp",)] == [1.0, np.inf] and found["A", ()][1] == 2.0
    (tmp_path / FILE).write_bytes(b"no database " * 100)
    with pytest.raises(Failed, match=r"cannot be used .* delete it"):
        Drawer(tmp_path).of("one")


EVOLVING = {
    "evolve": True, "unary": 4, "generations": 6, "population": 5, "seeds": 1, "sample": 4, "published": "none",
}  # fmt: skip


def told(document: dict[str, Any]) -> Any:
    runs = [run for runs in document["evolution"].values() for run in runs]
    return document["best"], document["formulas_total"], [{**run, "seconds": None} for run in runs]


def test_four_operations_by_evolution_killed_and_resumed(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**options, **EVOLVING}
    whole = call(COMMANDS["discover"], given).as_json()
    assert whole["formulas_total"] == 15 * 21**8 * 4 and whole["formulas_canonical"] is None
    assert any("too many to count" in note for note in whole["notes"])
    assert whole["best"] and whole["exhaustive_best"] is None and not (options["out"] / "tensors").exists()

    file, out = tmp_path / "out.json", tmp_path / "killed"
    words = words_of("discover", given.pop("benchmark"), **{**given, "out": out, "json": file})
    command = [sys.executable, "-m", "archwright", *words]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    killed_when(process, lambda: len(list((out / "discover").glob("search-*.json"))) >= 2)
    before = Drawer(out / "statistics").of(next(iter(known(out))))
    subprocess.run(command, check=True, capture_output=True)
    assert before and told(json.loads(file.read_text())) == told(whole)

    monkeypatch.setattr(Taking, "__call__", lambda self: pytest.fail("taken again"))
    again = call(COMMANDS["discover"], {**given, "benchmark": "nas-bert", "out": out}).as_json()
    assert told(again) == told(whole)


def known(out: Path) -> list[str]:
    with Drawer(out / "statistics")._open() as base:
        return [row[0] for row in base.execute("SELECT DISTINCT network FROM numbers")]


def test_what_is_foreseen_changes_nothing(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking ahead saves walks through tensors, and that is all."""
    from archwright.jobs.discovery import evolution
    from archwright.jobs.discovery.judging import Judge

    space = FormulaSpace(2, toys.INPUTS)
    table, trial = toys.toy_table(space), toys.toy_trial()
    chosen = evolution.Evolving(generations=120, population=15, parents=0.2)

    def run(ahead: bool) -> Any:
        monkeypatch.setattr(type(table), "lazy", ahead)
        judge = Judge(table, trial, trial.sets[-1], pps=True)
        return evolution.evolve(space, judge, chosen, np.random.default_rng(3))

    assert run(ahead=True) == run(ahead=False)
    assert lazy.stem(parse("sum(negate(A) + J)").left) == (("A", ()), -1.0)
