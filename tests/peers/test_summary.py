"""Tables, CSV and picture of `experiments/peers` from recorded answers; no network is trained or timed."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.peers import summary
from experiments.peers.decoder_summary import write_decoder_summary
from experiments.peers.job import Job
from experiments.peers.records import Record, TestSet, load_records, paired_difference
from experiments.peers.rows import Row, write_csv

ROWS = 200
WHOLE = [[12, 1536]] * 6


def logits(wrong: int, targets: np.ndarray) -> np.ndarray:
    """Answers of which the first `wrong` are wrong."""
    answers = np.where(np.arange(ROWS) < wrong, 1 - targets, targets)
    return np.eye(2)[answers]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two seeds of the original (10 wrong answers), archwright (12) and the first layers (20)."""
    targets = np.arange(ROWS) % 2
    for seed in (0, 1):
        place = tmp_path / "runs" / "toy" / f"seed-{seed}"
        (place / "rows").mkdir(parents=True)
        write_csv(place / "rows" / "test.csv", [Row(str(i), None, "ny"[i % 2]) for i in range(ROWS)])
        facts = {"labels": ["n", "y"], "positive": "y", "metric": "accuracy", "pairs": False}
        counts = {"train": 10, "validation": 10, "test": ROWS}
        (place / "rows" / "rows.json").write_text(json.dumps({**facts, "rows": counts}))

        def save(
            method: str, networks: list[dict[str, Any]], wrong: dict[str, int], place: Path = place, **more: Any
        ) -> None:
            job = Job(method, "toy", int(place.name[-1]), place / "rows", place / "original", place / method, 6.0)
            job.write()
            job.save(networks, {name: logits(count, targets) for name, count in wrong.items()}, **more)

        save("original", [{"name": "original", "share": 1.0, "layers": WHOLE}], {"original": 10})
        environment = {"commit": "abc", "cpu": "some"}
        (place / "original" / "original.json").write_text(json.dumps({"seconds": 1.0, "environment": environment}))
        half = {"name": "3-layers", "share": 0.507, "layers": WHOLE[:3], "seconds": 2.0, "steps": 5}
        save("first-layers", [half], {"3-layers": 20}, spent=50.0 + 20 * seed)
        small = {"name": "trial-1", "share": 0.19, "layers": [[2, 100]] * 6, "validation_error": 0.1}
        large = {"name": "trial-2", "share": 0.48, "layers": [[6, 700]] * 6, "validation_error": 0.05}
        picks = {"60": "trial-2", "50": "trial-2", "40": "trial-1", "30": "trial-1", "20": "trial-1"}
        phases = {"original": 30.0, "search": 40.0, "measure": 9.0}
        save("archwright", [small, large], {"trial-1": 16, "trial-2": 12}, picks=picks, seconds_by_phase=phases)
    times = [(WHOLE, 10.0), (WHOLE[:3], 5.0), ([[2, 100]] * 6, 4.0), ([[6, 700]] * 6, 6.0)]
    (tmp_path / "runs" / "latency.json").write_text(json.dumps(times))
    return tmp_path / "runs"


def test_summary_of_recorded_answers(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "HERE", tmp_path)
    monkeypatch.setattr(summary, "FIGURE", tmp_path / "peers.png")
    summary.write_summary(runs, tmp_path)
    page = (tmp_path / "summary.md").read_text()
    assert "original 5.0, 5.0 % by seed" in page
    losses = {line.split(" | ")[0][2:]: line for line in page.splitlines() if "%)" in line}
    assert losses["archwright"].count("+1.0 [") == 2 and losses["archwright"].count("+3.0 [") == 3
    assert "+5.0 [" in losses["first-layers"] and losses["first-layers"].rstrip(" |").endswith("-")
    assert "| first-layers | 2 | 60 |" in page and "| archwright | 2 | 70 |" in page
    (against,) = (line for line in page.splitlines() if line.startswith("| first-layers | -4.0"))
    assert against.count("-4.0 [") == 2
    assert "Fewer than 3 seeds, so nothing is settled: archwright (2), first-layers (2)." in page
    assert "Took more" not in page
    assert "Better than archwright beyond the interval: none." in page
    assert (
        "| archwright | first-layers, 3 layers | 2 | 50 % | -2.0 [" in page
    )  # at its latency only the smaller one of ours fits
    assert 0 < (tmp_path / "peers.png").stat().st_size < 200_000
    with open(tmp_path / "results.csv") as file:
        rows = {(row["method"], row["seed"], row["network"]): row for row in csv.DictReader(file)}
    assert rows["archwright", "1", "trial-2"]["picked_for"] == "60 50"
    assert rows["archwright", "1", "trial-2"]["lost_points"] == "1.0"
    assert rows["first-layers", "0", "3-layers"]["latency_ratio"] == "0.5"
    assert rows["first-layers", "0", "3-layers"]["commit"] == "abc"


def test_a_method_that_took_longer_is_named(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "HERE", tmp_path)
    monkeypatch.setattr(summary, "FIGURE", tmp_path / "peers.png")
    file = runs / "toy" / "seed-1" / "archwright" / "networks.json"
    late = json.loads(file.read_text()) | {"seconds_by_phase": {"supernet": 450.0, "measure": 99.0}}
    file.write_text(json.dumps(late))
    summary.write_summary(runs, tmp_path)
    page = (tmp_path / "summary.md").read_text()
    assert "Took more than the time of the others: archwright (up to 125% of it)." in page


def test_a_size_may_be_exceeded_by_the_head_of_three_layers(runs: Path) -> None:
    (record,) = (r for r in load_records(runs) if (r.method, r.seed) == ("first-layers", 0))
    assert [record.pick(size) for size in (60, 50, 40)] == ["3-layers", "3-layers", None]


def test_an_empty_folder_has_no_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary.write_summary(tmp_path)
    assert "holds no finished method" in capsys.readouterr().out


def test_equal_answers_differ_by_nothing() -> None:
    test = TestSet("accuracy", np.arange(ROWS) % 2)
    answers = [np.zeros(ROWS), np.ones(ROWS)]
    difference = paired_difference(test, answers, answers, resamples=50)
    assert (difference.mean, difference.low, difference.high, difference.seeds) == (0, 0, 0, 2)


def test_pairing_by_rows_narrows_the_interval() -> None:
    """Two methods that err on the same rows differ far more surely than their errors are known."""
    rng = np.random.default_rng(0)
    targets = rng.integers(2, size=ROWS)
    first = np.where(rng.random(ROWS) < 0.3, 1 - targets, targets)
    second = first.copy()
    second[:2] = 1 - second[:2]
    difference = paired_difference(TestSet("accuracy", targets), [first], [second], resamples=300)
    assert difference.high - difference.low < 4
    alone = paired_difference(TestSet("accuracy", targets), [first], [targets], resamples=300)
    assert alone.high - alone.low > 9


def test_f1_is_about_the_positive_class() -> None:
    targets, answers = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    assert TestSet("f1", targets, positive=0).error(answers) == pytest.approx(1 - 4 / 5)
    assert TestSet("f1", targets, positive=1).error(answers) == pytest.approx(1 - 2 / 3)


def test_every_record_knows_its_job(runs: Path) -> None:
    records = load_records(runs)
    assert {(record.method, record.seed) for record in records} == {
        (method, seed) for method in ("original", "first-layers", "archwright") for seed in (0, 1)
    }
    assert all(isinstance(record, Record) and record.facts["minutes"] == 6.0 for record in records)


def test_perplexities_of_decoders_have_a_table_of_their_own(tmp_path: Path) -> None:
    place = tmp_path / "lm" / "seed-0"
    job = Job("optipfair-depth", "lm", 0, place / "rows", place / "original", place / "optipfair-depth", 12.0)
    job.write()
    networks = [
        {"name": "original", "share": 1.0, "perplexity": 40.0},
        {"name": "80%-calibrated", "share": 0.8, "perplexity": 300.0},
        {"name": "80%", "share": 0.8, "perplexity": 90.0},
    ]
    job.save(networks, {})
    write_decoder_summary(tmp_path, tmp_path)
    page = (tmp_path / "decoder.md").read_text()
    assert "| optipfair-depth, calibration only | 300.0 | 300.0 | - |" in page
    assert "| optipfair-depth | 90.0 | 90.0 | - |" in page and "original 40.0" in page
    assert load_records(tmp_path) == []
