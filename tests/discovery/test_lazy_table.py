"""Chains taken when they are wanted: the numbers of a direct look, kept for good, also after kill -9."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archwright.commands import COMMANDS, call
from archwright.configs.discover import FormulaOptions
from archwright.configs.scoring import BenchmarkOptions, RecordingOptions
from archwright.discovery import lazy_table, statistics
from archwright.discovery.context import DiscoveryContext, Phases, open_context
from archwright.discovery.evolution import EvolutionResult, EvolutionSettings, evolve
from archwright.discovery.evolution_runs import run_search
from archwright.discovery.lazy_table import FILE, LazyTable, StatisticsFile
from archwright.discovery.statistics import LazyStatistics, open_tensors
from archwright.errors import Failed
from archwright.proxies import Unscored
from archwright.proxies.formulas.formula import Formula, parse
from archwright.proxies.formulas.inputs import EXTENDED, required_passes, required_roles
from archwright.scoring.request import record_network
from archwright.spaces.formulas import FormulaSpace
from tests.compression.runs import ROOT
from tests.discovery import toys
from tests.discovery.test_interrupted import killed_when

GROUPS = (BenchmarkOptions, FormulaOptions, RecordingOptions)


def land(options: dict[str, Any], **changes: Any) -> DiscoveryContext:
    given = {**options, **changes}
    groups = [group(**{k: v for k, v in given.items() if k in group.__dataclass_fields__}) for group in GROUPS]
    with open_context(*groups, Phases()) as found:  # type: ignore[arg-type]
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
    table, rng, places = where.table, np.random.default_rng(unary), [0, len(where.requests) // 2]
    assert isinstance(table, LazyTable)
    formulas = [formula for formula in (where.space.sample(rng) for _ in range(10)) if not formula.empty]
    probes = [
        record_network(where.requests[one], required_passes(EXTENDED), required_roles(EXTENDED)) for one in places
    ]
    table.prefetch(formulas[:5], places)  # the others are taken of what lies on disk
    expected = [[measured(formula, probe) for probe in probes] for formula in formulas]
    for of in (table, again := LazyTable(where.requests, where.space.statistics_inputs, where.folder, toys.POOL)):
        for formula, direct_look in zip(formulas, expected, strict=True):
            found = of.scores(formula, places)
            assert np.where(np.isnan(found), np.inf, found) == pytest.approx(direct_look, rel=1e-12)  # sums over layers
    assert again.computed == 0


def test_tensors_come_and_go(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    where = land(options, unary=3, evolve=True)
    table, formula = where.table, parse("sum(sqrt(exp(A)) * frobenius(S))")
    looks = []
    monkeypatch.setattr(statistics, "record_network", lambda *given: looks.append(given) or record_network(*given))
    first = table.scores(formula, [1])
    (file,) = (options["out"] / "tensors").glob("*.safetensors")
    assert set(open_tensors(file)) == set(where.space.inputs) and len(looks) == 1
    table.scores(parse("sum(log(exp(A)) - J)"), [1])
    assert len(looks) == 1
    table.release()
    assert not (options["out"] / "tensors").exists()
    assert (
        LazyTable(where.requests, where.space.statistics_inputs, where.folder, toys.POOL).scores(formula, [1]).tolist()
        == first.tolist()
    )
    assert len(looks) == 1
    monkeypatch.setattr(statistics, "ROOM", 0)
    table.scores(parse("sum(square(exp(A)) - J)"), [1])
    assert len(looks) == 2 and not any((options["out"] / "tensors").iterdir())


def test_a_damaged_drawer_is_told(tmp_path: Path) -> None:
    StatisticsFile(tmp_path).add("one", {"A": {("exp",): [1.0, np.inf], (): [np.nan, 2.0]}})
    found = StatisticsFile(tmp_path).read("one")
    assert found["A", ("exp",)] == [1.0, np.inf] and found["A", ()][1] == 2.0
    (tmp_path / FILE).write_bytes(b"no database " * 100)
    with pytest.raises(Failed, match=r"cannot be used .* delete it"):
        StatisticsFile(tmp_path).read("one")


SEARCHING = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from tests.discovery.test_lazy_table import searched

given = {k: Path(v) if k in ("data", "text", "out") else v for k, v in json.loads(sys.argv[1]).items()}
searched(given)
"""
QUICK = EvolutionSettings(generations=8, population=6, sample=4, parents=0.4)


def searched(options: dict[str, Any]) -> EvolutionResult:
    where = land(options, unary=4, evolve=True)
    return run_search(replace(where, pool=toys.POOL), QUICK, evolve, -1, 0)


def test_a_search_that_was_killed_ends_as_if_it_had_not_been(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = searched(options), tmp_path / "killed"
    assert whole.evaluations[-1] > 1 and not (options["out"] / "tensors").exists()
    given = json.dumps({k: str(v) if isinstance(v, Path) else v for k, v in {**options, "out": out}.items()})
    settings = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    words = [sys.executable, "-c", SEARCHING, given]
    process = subprocess.Popen(words, start_new_session=True, env=settings, cwd=ROOT)
    killed_when(process, lambda: (out / "statistics" / FILE).exists() and len(known(out)) >= 2)
    before = {network: StatisticsFile(out / "statistics").read(network) for network in known(out)}
    assert before and not list((out / "discover").glob("search-*"))
    assert searched({**options, "out": out}) == whole

    monkeypatch.setattr(LazyStatistics, "__call__", lambda self: pytest.fail("taken again"))
    assert searched({**options, "out": out}) == whole


def known(out: Path) -> list[str]:
    with StatisticsFile(out / "statistics")._open() as base:
        return [row[0] for row in base.execute("SELECT DISTINCT network FROM numbers")]


@pytest.mark.slow
def test_four_operations_from_the_command(options: dict[str, Any]) -> None:
    given = {"generations": 6, "population": 5, "seeds": 1, "sample": 4, "published": "none"}
    found = call(COMMANDS["discover"], {**options, **given, "evolve": True, "unary": 4}).as_json()
    assert found["formulas_total"] == 15 * 21**8 * 4 and found["formulas_canonical"] is None
    assert any("too many to count" in note for note in found["notes"])
    assert found["best"] and found["exhaustive_best"] is None and not (options["out"] / "tensors").exists()


def test_what_is_foreseen_changes_nothing(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking ahead saves walks through tensors, and that is all."""
    from archwright.discovery import evolution
    from archwright.discovery.fitness import FitnessFunction

    space = FormulaSpace(2, toys.INPUTS)
    table, folded = toys.toy_table(space), toys.toy_rows()
    chosen = evolution.EvolutionSettings(generations=120, population=15, parents=0.2)

    def run(ahead: bool) -> Any:
        monkeypatch.setattr(type(table), "lazy", ahead)
        judge = FitnessFunction(table, folded, folded.search_sets[-1], pps=True)
        return evolution.evolve(space, judge, chosen, np.random.default_rng(3))

    assert run(ahead=True) == run(ahead=False)
    assert lazy_table.split_sign(parse("sum(negate(A) + J)").left) == (("A", ()), -1.0)
