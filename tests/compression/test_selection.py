"""Who comes onto the front: re-scored on rows that the search has not seen, so that luck neither ends nor fills it."""

import json
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import IntDistribution
from optuna.trial import FrozenTrial, create_trial

from archwright.cli.main import main
from archwright.compression.run import FinishedRun
from archwright.compression.selection import BANDS, RESCORED, Finalist, best_of_bands, choose_members, find_finalists
from archwright.search import front
from archwright.statistics.paired import PairedErrors, RowOutcomes
from archwright.store import RunFolder
from tests.compression.runs import compressed, table_file, words_of

ROWS = 1000
HALF = "nonembedding_parameters"


class OneNumber:
    """A space of sizes from 1 to 100."""

    choices = MappingProxyType({"size": range(1, 101)})

    def build(self, config: dict[str, Any]) -> int:
        return int(config["size"])

    def canonical(self, config: dict[str, Any]) -> dict[str, Any]:
        return config


def evaluator_of(halves: bool = True) -> Any:
    """As far as finalists need one: the share of a network is its number out of 100."""
    search = SimpleNamespace(objectives=("validation_error", HALF))
    context = SimpleNamespace(
        halves=((), ()) if halves else None,
        task_data=SimpleNamespace(scale_error=lambda error: error),
        config=SimpleNamespace(search=search),
    )
    return SimpleNamespace(
        context=context, space=OneNumber(), trial_error=lambda trial: trial.values[0], share=lambda spec: spec / 100
    )


def trial(number: int, size: int, error: float) -> FrozenTrial:
    made = create_trial(
        params={"size": size}, distributions={"size": IntDistribution(1, 100)}, values=[error, float(size)]
    )
    made.number = number
    return made


def outcomes(error: float, seed: int, rows: int = ROWS) -> RowOutcomes:
    """Answers that are wrong on about this share of the rows; the same rows are hard for all networks."""
    hard = np.random.default_rng(0).random(rows)
    own = np.random.default_rng(seed).random(rows)
    return RowOutcomes("accuracy", (0.8 * hard + 0.2 * own < error).astype(int), np.zeros(rows, dtype=int))


TRUE = {15: 0.24, 24: 0.18, 35: 0.165, 45: 0.155, 58: 0.15, 68: 0.15, 79: 0.148, 88: 0.147, 100: 0.145}
"""Share in percent and how often it is really wrong."""
LUCK = 24
"""On the rows of the search this network looks best of all."""


def lucky_study() -> list[FrozenTrial]:
    rng, trials = np.random.default_rng(1), []
    for size, error in TRUE.items():
        seen = 0.12 if size == LUCK else error + rng.normal(0, 0.004)
        trials.append(trial(len(trials), size, seen))
    return trials


def rescored(finalists: list[Finalist]) -> PairedErrors:
    return PairedErrors({member.name: outcomes(TRUE[int(100 * member.size + 0.5)], 7) for member in finalists})


def test_a_lucky_small_network_no_longer_ends_the_front() -> None:
    trials = lucky_study()
    assert max(t.values[1] for t in front(trials)) == LUCK  # the Pareto front of the search ends there
    finalists = find_finalists(evaluator_of(), trials)
    members = choose_members(finalists, rescored(finalists))
    assert [round(100 * member.size) for member in members] == list(TRUE)
    assert len({member.band for member in members}) == len(members)


def entry(member: Finalist, members: list[Finalist], errors: PairedErrors) -> dict[str, Any]:
    return {
        "trial": member.trial.number,
        "nonembedding_share": member.size,
        "nonembedding_parameters": round(1000 * member.size),
        "validation_error": errors.error(member.name),
        "latency_ms": {"median": 10 * member.size},
        "beaten_by": [other.trial.number for other in members if errors.is_better(other.name, member.name)],
        "config": member.config,
    }


def finished(tmp_path: Path, rule: str) -> FinishedRun:
    finalists = find_finalists(evaluator_of(), lucky_study())
    errors = rescored(finalists)
    result = {
        "schema": "archwright/compress/1",
        "metric": "accuracy",
        "original": {"validation_error": 0.14, "nonembedding_parameters": 1000},
        "selection": {"rule": rule},
        "objectives": ["validation_error", HALF, "latency_ms"],
        "front": [entry(member, finalists, errors) for member in finalists],
    }
    (tmp_path / "result.json").write_text(json.dumps(result))
    return FinishedRun(RunFolder(tmp_path))


def test_a_larger_budget_gets_a_larger_network(tmp_path: Path) -> None:
    run = finished(tmp_path, "halves")
    shares = [run.select(params=budget).entry["nonembedding_share"] for budget in ("25%", "50%", "90%", "100%")]
    assert shares == [0.24, 0.45, 0.88, 1.0]
    assert run.select(latency_ms=6.0).entry["nonembedding_share"] == 0.58
    loose = run.select(max_loss="2.5%").entry
    assert loose["nonembedding_share"] == min(
        e["nonembedding_share"] for e in run.front if e["validation_error"] <= 0.14 + 0.025
    )


def test_a_larger_network_that_is_surely_worse_gives_way(tmp_path: Path) -> None:
    run = finished(tmp_path, "halves")
    worse = {**run.front[-1], "beaten_by": [run.front[-3]["trial"]]}
    result = {**run.result, "front": [*run.front[:-1], worse]}
    (tmp_path / "result.json").write_text(json.dumps(result))
    again = FinishedRun(RunFolder(tmp_path))
    assert again.select(params="100%").entry["trial"] == run.front[-2]["trial"]
    assert again.select(params="100%", latency_ms=10.0).entry["trial"] == run.front[-2]["trial"]


def test_without_halves_the_lowest_validation_error_counts(tmp_path: Path) -> None:
    run = finished(tmp_path, "all")
    best = min(run.front, key=lambda e: e["validation_error"])
    assert run.select(params="100%").entry["trial"] == best["trial"]
    without = {name: value for name, value in run.result.items() if name != "selection"}
    old = [{k: v for k, v in e.items() if k not in ("beaten_by", "band")} for e in run.front]
    (tmp_path / "result.json").write_text(json.dumps({**without, "front": old}))  # as earlier versions wrote it
    assert FinishedRun(RunFolder(tmp_path)).select(params="100%").entry["trial"] == best["trial"]


def test_a_larger_network_goes_only_when_a_smaller_one_is_surely_better() -> None:
    finalists = find_finalists(evaluator_of(), [trial(0, 30, 0.1), trial(1, 70, 0.1)])
    near = PairedErrors({"0": outcomes(0.15, 1), "1": outcomes(0.153, 2)})
    assert not near.is_better("0", "1")
    assert [member.name for member in choose_members(finalists, near)] == ["0", "1"]
    far = PairedErrors({"0": outcomes(0.15, 1), "1": outcomes(0.25, 2)})
    assert [member.name for member in choose_members(finalists, far)] == ["0"]


def test_inside_a_band_the_smallest_within_one_standard_error() -> None:
    finalists = find_finalists(evaluator_of(), [trial(0, 41, 0.11), trial(1, 45, 0.105), trial(2, 49, 0.1)])
    near = PairedErrors({"0": outcomes(0.153, 1), "1": outcomes(0.153, 2), "2": outcomes(0.15, 3)})
    assert [member.name for member in choose_members(finalists, near)] == ["0"]
    far = PairedErrors({"0": outcomes(0.25, 1), "1": outcomes(0.25, 2), "2": outcomes(0.15, 3)})
    assert [member.name for member in choose_members(finalists, far)] == ["2"]


def distilled(number: int, size: int, error: float) -> Finalist:
    """A network that was trained by itself."""
    return Finalist(trial(number, size, error), {"source": f"distilled-{size}"}, (), size / 100)


def test_a_distilled_network_comes_before_smaller_ones_that_are_not_surely_better() -> None:
    shared = find_finalists(evaluator_of(), [trial(0, 41, 0.1), trial(1, 45, 0.1)])
    alone = distilled(2, 49, 0.1)
    near = PairedErrors({"0": outcomes(0.15, 1), "1": outcomes(0.153, 2), "2": outcomes(0.153, 3)})
    assert [member.name for member in choose_members([*shared, alone], near)] == ["2"]
    between = PairedErrors({"0": outcomes(0.15, 1), "1": outcomes(0.16, 2), "2": outcomes(0.165, 3)})
    assert between.is_better("0", "2") and not between.is_better("0", "2", by=2.0)
    assert [member.name for member in choose_members([*shared, alone], between)] == ["2"]
    far = PairedErrors({"0": outcomes(0.15, 1), "1": outcomes(0.153, 2), "2": outcomes(0.25, 3)})
    assert [member.name for member in choose_members([*shared, alone], far)] == ["0"]


def test_distilled_networks_are_scored_again_even_with_bad_luck() -> None:
    shared = find_finalists(evaluator_of(), [trial(n, 41 + n, 0.1) for n in range(RESCORED)])
    again = best_of_bands([*shared, distilled(7, 49, 0.4)])
    assert [finalist.trial.number for finalist in again] == [*range(RESCORED), 7]


def test_the_best_three_of_every_band_are_scored_again() -> None:
    rng = np.random.default_rng(2)
    trials = [trial(n, int(size), float(rng.random())) for n, size in enumerate(rng.integers(1, 101, size=120))]
    finalists = find_finalists(evaluator_of(), trials)
    for band in range(BANDS):
        here = {t.params["size"]: t for t in sorted(trials, key=lambda t: -t.values[0]) if inside(t, band)}
        best = sorted(here.values(), key=lambda t: t.values[0])[:RESCORED]
        assert {f.trial.number for f in finalists if f.band == band} == {t.number for t in best}
    assert [f.size for f in finalists] == sorted(f.size for f in finalists)


def inside(made: FrozenTrial, band: int) -> bool:
    return band / BANDS < made.values[1] / 100 <= (band + 1) / BANDS


def test_a_border_belongs_to_the_smaller_band() -> None:
    sizes = {10: 0, 11: 1, 50: 4, 51: 5, 100: 9, 1: 0}
    finalists = find_finalists(evaluator_of(), [trial(n, size, 0.1) for n, size in enumerate(sizes)])
    assert {round(100 * f.size): f.band for f in finalists} == sizes


def test_trials_that_failed_or_are_worse_than_guessing_are_left_out() -> None:
    hopeless, good = trial(1, 5, 1.2), trial(2, 30, 0.2)
    failed = create_trial(state=optuna.trial.TrialState.PRUNED)
    assert [f.name for f in find_finalists(evaluator_of(), [hopeless, good, failed])] == ["2"]
    assert [f.name for f in find_finalists(evaluator_of(), [hopeless])] == ["1"]  # unless there is no other


def test_without_halves_the_pareto_front_stays() -> None:
    trials = lucky_study()
    assert [f.name for f in find_finalists(evaluator_of(halves=False), trials)] == [
        str(t.number) for t in front(trials)
    ]


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table_file(tmp_path_factory.mktemp("rows") / "train.csv", 400)


@pytest.mark.parametrize("method", ["weight-sharing", "standard"])
def test_a_real_run(method: str, tmp_path: Path, bert: Path, many_rows: Path, capfd: Any) -> None:
    run = compressed(tmp_path / "run", model=str(bert), train=many_rows, trials=16, method=method)
    result = run.result
    assert result["selection"] == {
        **{"rule": "halves", "search_rows": 30, "holdout_rows": 30, "bands": 10, "bands_of": HALF, "note": None},
        "rescored": result["selection"]["rescored"],
    }
    assert result["original"]["loss"]["value"] == result["original"]["test_loss"]["value"] == 0.0
    for member in result["front"]:
        assert member["validation_rows"] == 30 and member["test_rows"] == 60
        lost = member["validation_error"] - result["original"]["validation_error"]
        assert member["loss"]["value"] == pytest.approx(lost)
    largest = run.front[-1]["trial"]
    capfd.readouterr()
    assert main(words_of("select", tmp_path / "run", params="100%")) == 0
    shown = capfd.readouterr().out
    assert f"selected: trial {largest}," in shown
    assert "loses" in shown and ", 30 rows)" in shown and ", 60 rows)" in shown
    whole, limit = result["original"]["flops"], 0.6
    pick = run.select(flops=limit)
    assert pick.entry["flops"] <= limit * whole and pick.entry["validation_rows"] == 30
    assert "re-scored on 30 validation rows that did not search" in pick.note
    known = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"rescored.npz", "picked.json"} <= known
    page = (tmp_path / "run" / "report.html").read_text()
    assert "30 validation rows searched, 30 others re-scored" in page


def test_all_rows_on_request_and_for_few_rows(tmp_path: Path, bert: Path, many_rows: Path) -> None:
    wanted = compressed(tmp_path / "all", model=str(bert), train=many_rows, selection="all").result
    assert wanted["selection"]["rule"] == "all" and wanted["selection"]["note"] is None
    assert wanted["selection"]["search_rows"] == wanted["selection"]["holdout_rows"] == 60
    few = compressed(tmp_path / "few", model=str(bert), train=many_rows, validation_rows=39).result
    assert few["selection"]["rule"] == "all"
    assert few["selection"]["note"].startswith("39 validation rows are too few")
    for result in (wanted, few):
        assert all(member["validation_error"] == member["search_error"] for member in result["front"])
