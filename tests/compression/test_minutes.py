"""How --minutes is divided: when the search must end, and how many test rows are answered."""

from dataclasses import replace
from itertools import repeat
from typing import Any

import pytest

from archwright.compression import finetuning
from archwright.compression.budgets import minutes
from archwright.compression.context import RunContext
from archwright.compression.finetuning import finetune_original, seconds_per_step
from archwright.compression.methods import load_evaluator
from archwright.compression.run import FinishedRun
from archwright.store import RunFolder
from archwright.tasks import TASK_KINDS
from tests.compression.runs import compressed

NOW = 1000.0


@pytest.fixture(scope="module")
def limited_run(tmp_path_factory: pytest.TempPathFactory, given: dict[str, Any]) -> FinishedRun:
    return compressed(tmp_path_factory.mktemp("limited") / "run", **given, minutes=10.0)


@pytest.fixture(scope="module")
def unlimited_run(tmp_path_factory: pytest.TempPathFactory, given: dict[str, Any]) -> FinishedRun:
    return compressed(tmp_path_factory.mktemp("unlimited") / "run", **given)


@pytest.fixture
def context(limited_run: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> RunContext:
    """Of a run with --minutes 10, where a token takes 10 ms and 1,000 s have passed."""
    monkeypatch.setattr(minutes, "seconds_per_token", lambda network, rows: 0.01)
    monkeypatch.setattr(minutes, "monotonic", lambda: NOW)
    return load_evaluator(limited_run.folder).context


def test_the_search_leaves_time_for_what_follows(context: RunContext) -> None:
    tokens = minutes.count_tokens(context.holdout_rows)
    deadline = minutes.search_deadline(context, finetune_original(context), start=NOW - 60, rescored=4)
    assert deadline == pytest.approx(NOW - 60 + 600 * 0.9 - 0.01 * tokens * (1 + 0.55 * 4))


@pytest.mark.parametrize("trains", [False, True])
def test_a_short_search_leaves_time_to_rescore_what_it_tries(context: RunContext, trains: bool) -> None:
    whole, tried = (0.01 * minutes.count_tokens(rows) for rows in (context.holdout_rows, context.search_rows))
    if trains:
        tried += 0.01 * 3 * context.config.supernet.epochs * len(context.task_data.encoded["train"].ids)
    start = NOW - 600 * 0.9 + whole + 40  # 40 s are left, far less than to re-score a million
    deadline = minutes.search_deadline(context, finetune_original(context), start=start, rescored=10**6, trains=trains)
    assert deadline == pytest.approx(NOW + max(30, 40 * tried / (tried + whole)))


def test_the_search_has_a_twentieth_when_everything_took_longer(context: RunContext) -> None:
    deadline = minutes.search_deadline(context, finetune_original(context), start=NOW - 6000, rescored=4)
    assert deadline == NOW + 0.05 * 600


def test_candidates_of_a_resumed_run_have_what_is_left_of_their_time(
    context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = TASK_KINDS[context.task_data.task.kind].shares.candidates
    for before, left in (({}, 600 * share), ({"candidates": 150.0, "search": 9.0}, 600 * share - 150)):
        monkeypatch.setattr(RunFolder, "seconds", before)
        assert minutes.candidates_deadline(context) == pytest.approx(NOW + left)


def test_test_rows_are_cut_to_what_is_affordable_and_stay_the_same(
    context: RunContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    encoded, original = context.task_data.encoded["test"], finetune_original(context)
    (context.run.path / "tested.json").unlink(missing_ok=True)
    monkeypatch.setattr(minutes, "FEWEST_TESTED", 5)
    per_row = 0.07 * 600 / (2 + 0.55 * 4) / 7.5  # seconds, so that seven rows and a half are affordable
    monkeypatch.setattr(minutes, "seconds_per_token", lambda network, rows: per_row / encoded.lengths.mean())
    assert len(encoded) > 7
    chosen, same = minutes.tested_rows(context, original, members=4)
    assert (chosen.ids == same.ids).all()  # no vocabulary was cut
    assert len(chosen) == 7 and f"7 of {len(encoded)} test rows" in caplog.text
    monkeypatch.setattr(minutes, "seconds_per_token", lambda network, rows: 1e-9)
    again, _ = minutes.tested_rows(context, original, members=4)
    assert (again.ids == chosen.ids).all()


@pytest.fixture
def unlimited(unlimited_run: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> RunContext:
    """Of a run without --minutes whose test rows are more than usual, and are not chosen yet."""
    (unlimited_run.folder.path / "tested.json").unlink(missing_ok=True)
    monkeypatch.setattr(minutes, "USUALLY_TESTED", 5)
    monkeypatch.setattr(minutes, "TESTED_SHARE", 0.0)
    return load_evaluator(unlimited_run.folder).context


def test_more_test_rows_than_usual_are_cut_without_timing_anything(
    unlimited: RunContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(minutes, "seconds_per_token", None)  # whoever calls it fails
    rows = len(unlimited.task_data.encoded["test"])
    chosen, same = minutes.tested_rows(unlimited, finetune_original(unlimited), members=4)
    assert len(chosen) == len(same) == 5
    assert f"5 of {rows} test rows are tested" in caplog.text and f"--test-rows {rows} tests all" in caplog.text
    encoded = {split: rows for split, rows in unlimited.task_data.encoded.items() if split != "train"}
    finished = replace(unlimited, task_data=replace(unlimited.task_data, encoded=encoded))
    again, _ = minutes.tested_rows(finished, finetune_original(unlimited), members=4)
    assert (again.ids == chosen.ids).all()  # noted, for a finished run has no training rows


def test_a_quarter_of_the_training_rows_is_never_cut(unlimited: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minutes, "TESTED_SHARE", 100.0)
    chosen, _ = minutes.tested_rows(unlimited, finetune_original(unlimited), members=4)
    assert len(chosen) == len(unlimited.task_data.encoded["test"])


def test_test_rows_that_were_asked_for_are_tested(unlimited: RunContext) -> None:
    rows = len(unlimited.task_data.encoded["test"])
    config = replace(unlimited.config, data=replace(unlimited.config.data, test_rows=rows))
    chosen, _ = minutes.tested_rows(replace(unlimited, config=config), finetune_original(unlimited), members=4)
    assert len(chosen) == rows


@pytest.mark.parametrize(("minutes_given", "steps"), [(None, 12), (10.0, 12), (1.0, 3)])
def test_timing_a_step_takes_a_hundredth_of_the_minutes(
    minutes_given: float | None, steps: int, context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 0.25 s a step a hundredth of one minute is over after the third."""
    search = replace(context.config.search, minutes=minutes_given)
    context = replace(context, config=replace(context.config, search=search))
    clock, shares = [0.0], []

    def take_step(batch: Any, rng: Any, share: float) -> None:
        clock[0] += 0.25
        shares.append(share)

    monkeypatch.setattr(finetuning, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(finetuning, "islice", lambda batches, most: repeat(next(batches), most))
    seconds_per_step(context, finetune_original(context), take_step)
    assert len(shares) == 1 + steps
    assert max(shares) - min(shares) > 0.2  # not of one end of the training only
