"""`compress --dry-run`: the phases of the real run with its counts, and nothing left behind."""

import json
from pathlib import Path
from typing import Any

import pytest

import archwright as aw
from archwright.cli.main import main
from archwright.compression.studies import estimate as module
from archwright.compression.studies.estimate import Phase, limit_phases
from archwright.errors import BadInput
from tests.compression.runs import QUICK, refusal, words_of

OPTIONS: dict[str, Any] = {**QUICK, "dry_run": True}


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One timed step: the tests are about what is counted."""
    monkeypatch.setattr(module, "TIMED_SECONDS", 0.0)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)


def test_the_phases_are_those_of_the_run(run: Any, given: dict[str, Any], tmp_path: Path, capfd: Any) -> None:
    options = {**given, **OPTIONS, "epochs": 6.0, "original_epochs": 6.0, "trials": 14, "json": tmp_path / "x.json"}
    assert main(words_of("compress", **options, out=tmp_path / "out")) == 0
    shown = capfd.readouterr().out
    found = json.loads((tmp_path / "x.json").read_text())
    assert found["schema"] == "archwright/estimate/1"
    assert set(found["seconds_by_phase"]) == {"load", *run.result["seconds_by_phase"]}
    assert found["seconds"] == pytest.approx(sum(found["seconds_by_phase"].values()))
    assert all(seconds >= 0 for seconds in found["seconds_by_phase"].values())
    plan = run.folder.note("plan")
    for phase, steps in (("original", plan["original"]), ("supernet", plan["supernet"])):
        (line,) = (line for line in shown.splitlines() if line.startswith(phase))
        assert f" {steps} steps of " in line
    assert "14 trials" in shown and "memory: " in shown and "nothing was trained or written" in shown
    on_disk = sum(path.stat().st_size for path in run.folder.path.rglob("model.safetensors"))
    assert on_disk <= found["disk_after_bytes"] < found["disk_bytes"] and found["memory_bytes"] > 10**7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["temporary", "x.json"]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_standard_nas_and_other_spaces(given: dict[str, Any], tmp_path: Path) -> None:
    found = aw.compress(**{**given, **OPTIONS, "method": "standard"})
    assert isinstance(found, module.RunEstimate)
    assert [phase.name for phase in found.phases] == ["load", "original", "order", "search", "rescore", "measure"]
    assert "6 networks of at most" in found.phases[3].about
    small = aw.compress(**{**given, **OPTIONS, "space": "small", "width": "75%"}).as_json()["seconds_by_phase"]
    assert list(small) == ["load", "original", "cut", "order", "supernet", "search", "rescore", "measure"]
    assert not (tmp_path / "runs").exists()


def test_minutes_shorten_what_the_run_would_shorten() -> None:
    class Data:
        class task:
            kind = "classification"

    names = ("load", "original", "order", "supernet", "candidates", "search", "measure")
    limited = limit_phases([Phase(name, 600.0, "x") for name in names], 10.0, Data)  # type: ignore[arg-type]
    seconds = {phase.name: phase.seconds for phase in limited}
    assert (seconds["original"], seconds["candidates"], seconds["search"]) == (150.0, 240.0, 30.0)
    quick = [Phase(name, 1.0, "x") for name in names]
    assert limit_phases(quick, 10.0, Data) == quick  # type: ignore[arg-type]
    assert limited[1].about == "x, shortened by --minutes"


def test_what_a_run_refuses_is_refused(given: dict[str, Any], tmp_path: Path, capfd: Any) -> None:
    for more, rule in (
        ({"method": "magnitude"}, "--dry-run estimates single runs of weight-sharing and standard"),
        ({"compare": ("standard",)}, "got --compare"),
        ({"length": 500}, "--length must be at most"),
        ({"params": "0.01%"}, "--params"),
    ):
        code, line = refusal(capfd, words_of("compress", **{**given, **OPTIONS, **more}))
        assert code == 2 and rule in line
    with pytest.raises(BadInput, match="has no column"):
        aw.compress(**{**OPTIONS, "train": [{"body": "x", "label": 1}] * 20, "text_pair_column": "y"})
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]
