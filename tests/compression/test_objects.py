"""Objects of a Python program as input, and results that a notebook shows."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

import archwright as aw
from archwright.compression.objects import folder_fingerprint, write_objects
from archwright.errors import BadInput
from tests.compression.runs import QUICK, front_of


class Log(aw.Callback):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.steps: dict[str, list[int]] = {}
        self.trials: dict[int, Mapping[str, float]] = {}
        self.results: list[Mapping[str, Any]] = []

    def on_phase(self, phase: str) -> None:
        self.phases.append(phase)

    def on_step(self, training: str, step: int, numbers: Mapping[str, float]) -> None:
        assert numbers["loss"] > 0 and numbers["learning_rate"] >= 0 and numbers["tokens_per_second"] > 0
        self.steps.setdefault(training, []).append(step)

    def on_trial(self, trial: int, numbers: Mapping[str, float]) -> None:
        self.trials[trial] = numbers

    def on_end(self, result: Mapping[str, Any]) -> None:
        self.results.append(result)


@pytest.fixture(scope="module")
def objects(bert: Path, rows: Path) -> dict[str, Any]:
    """Model, tokenizer and rows as a program has them, with the file as a path for comparison."""
    return {
        "model": AutoModel.from_pretrained(bert),
        "tokenizer": AutoTokenizer.from_pretrained(bert),
        "train": pandas.read_csv(rows),
    }


def test_objects_give_the_run_that_files_give(objects: dict[str, Any], given: dict[str, Any], tmp_path: Path) -> None:
    options = {**QUICK, "trials": 3}
    log, out = Log(), tmp_path / "run"
    run = aw.compress(**options, **objects, out=out, callbacks=[log])
    inputs = sorted(path.name for path in (out / "inputs").iterdir())
    assert [name.rpartition("-")[0] for name in inputs] == ["bert", "tokenizer", "train"]
    files = aw.compress(**options, **given, out=tmp_path / "files")
    assert front_of(run.result) == front_of(files.result)

    # What the callback was told.
    assert log.phases == ["original", "order", "supernet", "candidates", "search", "rescore", "measure"]
    assert log.steps["training the super-network"] == list(range(run.folder.note("plan")["supernet"]))
    assert sorted(log.trials) == sorted(row["trial"] for row in run.result["trials"])
    told = {row["trial"]: row["validation_error"] for row in run.result["trials"]}
    assert all(set(n) == {"validation_error", "nonembedding_parameters"} for n in log.trials.values())
    assert {trial: numbers["validation_error"] for trial, numbers in log.trials.items()} == told
    assert log.results == [run.result]

    # The same content goes on with the same run, whatever it is called and however rows are held.
    again = objects | {"train": datasets.Dataset.from_pandas(objects["train"])}
    again["model"].config._name_or_path = "/somewhere/else/bert"
    assert aw.compress(**options, **again, out=out).result == run.result
    assert sorted(path.name for path in (out / "inputs").iterdir()) == inputs

    # Other content is refused like another option, and nothing of it stays.
    other = objects | {"train": objects["train"].to_dict("records")[:-1]}
    with pytest.raises(BadInput, match="was begun with train="):
        aw.compress(**options, **other, out=out)
    assert sorted(path.name for path in (out / "inputs").iterdir()) == inputs
    # A run folder has all it needs, wherever it is.
    moved = Path(shutil.move(out, tmp_path / "moved"))
    written = aw.export(moved, trial=run.front[0]["trial"], to="compact")
    assert written.parity.parameters == run.front[0]["parameters"]


def written_rows(value: Any, tmp_path: Path, name: str = "train") -> list[dict[str, Any]]:
    """What would be read in place of the object."""
    with write_objects({name: value, "out": tmp_path / "run"}) as options:
        lines = Path(options[name]).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_rows_of_all_kinds_are_the_same_rows(tmp_path: Path) -> None:
    rows = [{"text": "café\n2", "label": "b", "score": 0.5}, {"text": "x", "label": "a", "score": None}]
    frame = pandas.DataFrame(rows)
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["a", "b"]),
            "score": datasets.Value("float64"),
        }
    )
    table = datasets.Dataset.from_list([{**rows[0], "label": 1}, {**rows[1], "label": 0}], features=features)
    for value in (rows, tuple(rows), frame, table):
        assert written_rows(value, tmp_path, "validation") == rows
    scalars = [{"text": "x", "label": np.int64(3), "score": np.float32(0.5), "vector": np.arange(2)}]
    assert written_rows(scalars, tmp_path) == [{"text": "x", "label": 3, "score": 0.5, "vector": [0, 1]}]
    assert list(tmp_path.iterdir()) == []  # no run began in the block


WRONG = {
    "number": ({"train": 3}, "train must be a file, a datasets.Dataset"),
    "texts": ({"train": ["good", "bad"]}, "train must be a file, a datasets.Dataset"),
    "splits": ({"train": {"train": [], "test": []}}, r"give one of them, such as train=splits\['train'\]"),
    "nothing": ({"test": []}, "test must have rows, got none"),
    "objects inside": ({"train": [{"text": object()}]}, "row 1 of train must hold texts and numbers"),
    "half a character": ({"train": [{"text": "\ud83d"}]}, "row 1 of train must hold texts and numbers"),
    "plain module": ({"model": torch.nn.Linear(1, 1)}, "model must be a folder, a hub id or an object of transformers"),
    "callback": ({"callbacks": [print]}, "a callback needs the methods of archwright.Callback"),
}


@pytest.mark.parametrize(("options", "rule"), WRONG.values(), ids=WRONG)
def test_wrong_objects_are_one_line_and_leave_nothing(
    options: dict[str, Any], rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=rule) as refused:
        aw.compress(**options)
    assert "\n" not in str(refused.value) and list(tmp_path.iterdir()) == []


def test_a_refused_run_leaves_no_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="has no column 'body'"):
        aw.compress(train=[{"text": f"text {n}", "label": n % 2} for n in range(20)], text_column="body")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine" / "inputs").mkdir(parents=True)
    (tmp_path / "mine" / "inputs" / "note.txt").write_text("keep")
    with pytest.raises(BadInput, match="has no column 'body'"):
        aw.compress(train=[{"text": f"text {n}", "label": n % 2} for n in range(20)], text_column="body", out="mine")
    assert [path.name for path in (tmp_path / "mine").rglob("*")] == ["inputs", "note.txt"]


def test_a_fingerprint_is_of_the_content(bert: Path, tmp_path: Path) -> None:
    model = AutoModel.from_pretrained(bert)
    prints = []
    for name in ("a", "b", "c"):
        model.config._name_or_path = name
        if name == "c":
            next(model.parameters()).data[0, 0] += 1
        model.save_pretrained(tmp_path / name)
        prints.append(folder_fingerprint(tmp_path / name))
    assert prints[0] == prints[1] != prints[2]


def test_a_result_in_a_notebook(run: Any) -> None:
    front, result = run.front, run.result
    assert isinstance(front, list) and front == result["front"] and front[0]["trial"] == result["front"][0]["trial"]
    frame = front.to_pandas()
    assert list(frame.index) == [entry["trial"] for entry in front]
    assert list(frame["latency_ms"]) == [entry["latency_ms"]["median"] for entry in front]
    assert list(frame["test_loss_high"]) == [entry["test_loss"]["high"] for entry in front]
    assert "config" not in frame and frame["keeps"].str.startswith("keeps ").all()
    pick = run.select(params="100%")
    named = aw.select(run.folder.path, params="100%", latency_ms=1e6)
    assert repr(pick) == repr(named).splitlines()[0] and repr(pick).startswith("selected: trial ")
    assert "next: archwright export" in repr(named)
    for shown in (run, front, pick, named):
        page, text = shown._repr_html_(), repr(shown)
        assert page.startswith("<svg" if shown is run else "<table>") and page.count("<tr>") == page.count("</tr>") > 2
        assert "HA==" not in page + text and "{'" not in page + text and "config" not in page + text
    assert repr(run).startswith(f"FinishedRun('{run.folder.path}'): ")
    assert all(str(entry["trial"]) in repr(front) for entry in front)


def test_a_front_as_a_figure(run: Any) -> None:
    figure = run.plot()
    (points,) = (trace for trace in figure.data if trace.mode == "markers" and trace.name == "front")
    assert list(points.x) == [entry["nonembedding_share"] for entry in run.front]
    assert list(points.y) == [entry["test_error"] for entry in run.front]
    by_time = run.plot(error="validation_error", size="latency")
    assert by_time.layout.xaxis.title.text == "measured latency, median"
    with pytest.raises(BadInput, match="size must be one of share"):
        run.plot(size="weight")
