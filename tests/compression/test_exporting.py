"""`archwright export` of networks that `train` wrote: every network to every format it can have."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from archwright.commands.export import export
from archwright.compression.export import TEXTS, ExportResult
from archwright.configs import compress as o
from archwright.errors import BadInput
from archwright.exporting.compact import save_checkpoint
from tests.exporting.test_trained import MADE, words


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    for name, (auto, _, make) in MADE.items():
        save_checkpoint(make(), words(pairs="Causal" not in auto), root / name)
    return root


def run(
    source: Path, to: str, out: Path | None = None, *, int8: bool = False, against: str | None = None
) -> ExportResult:
    options = (
        o.SourceOptions(source),
        o.NetworkOptions(against=against),
        o.ExportOptions(to, int8),
        o.TargetOptions(out),
    )
    return export(o.ExportConfig(*options))


@pytest.mark.parametrize("name", MADE)
def test_every_network_can_be_compact(name: str, models: Path, tmp_path: Path) -> None:
    done = run(models / name, "compact", tmp_path / "out")
    assert done.parity.difference.largest == 0
    assert json.loads((tmp_path / "out" / "parity.json").read_text())["kind"] == done.parity.kind
    assert len(done.parity.difference.shapes) == 5


FAST = ("nlu-mlm", "cells")


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in MADE])
def test_every_network_can_be_onnx(name: str, models: Path, tmp_path: Path) -> None:
    done = run(models / name, "onnx", tmp_path / "out", int8=True)
    assert done.parity.difference.share <= 1e-4
    assert done.parity.int8 is not None
    assert math.isfinite(done.parity.int8.difference.largest)  # of random weights: how large says nothing
    script = (tmp_path / "out" / "README.md").read_text().split("```python\n")[1].split("```")[0]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    blind = 'import sys\nsys.modules["archwright"] = None\n'
    said = subprocess.run(
        [sys.executable, "-I", "-c", blind + script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )
    assert said.returncode == 0, said.stderr[-2000:]
    assert said.stdout.strip()


@pytest.mark.parametrize("to", ["hf", "hf-padded"])
@pytest.mark.parametrize("name", ["nlu-mlm", "flexibert-classes", "gpt2"])
def test_stock_classes_cannot_have_such_layers(name: str, to: str, models: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no stock class has; export to compact"):
        run(models / name, to, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_of_train_has_its_network_inside_and_is_timed_against_a_teacher(models: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (models / "nlu-classes").rename(tmp_path / "run" / "model")
    done = run(tmp_path / "run", "compact", against=str(models / "nlu-mlm"))
    (tmp_path / "run" / "model").rename(models / "nlu-classes")
    assert done.folder == tmp_path / "run" / "model-compact"
    assert done.parity.latency is not None
    assert done.parity.latency["ratio"] == done.parity.latency["median"] / done.parity.latency["original"]


def test_what_is_not_a_network(models: Path, tmp_path: Path) -> None:
    def said(folder: Path) -> str:
        with pytest.raises(BadInput) as error:
            run(folder, "compact", tmp_path / "out")
        assert not (tmp_path / "out").exists()
        return str(error.value)

    copied = {name: tmp_path / name for name in ("half", "nothing", "foreign", "broken", "short", "design")}
    for folder in copied.values():
        folder.mkdir()
    source = models / "nlu-mlm"
    config = json.loads((source / "config.json").read_text())
    (copied["half"] / "model.safetensors").write_bytes((source / "model.safetensors").read_bytes())
    (copied["foreign"] / "config.json").write_text(json.dumps(config | {"model_type": "made_up"}))
    (copied["broken"] / "config.json").write_text("{")
    (copied["short"] / "config.json").write_text(json.dumps(config))
    (copied["short"] / "model.safetensors").write_bytes((source / "model.safetensors").read_bytes()[:-100])
    (copied["design"] / "design.json").write_text("{}")
    assert "no config.json" in said(copied["half"])
    assert "nothing is no run of `train` or `compress` and no network" in said(copied["nothing"])
    assert "is no run" in said(tmp_path / "nowhere")
    assert "its training is not at its end" in said(as_run(copied["nothing"], command="train"))
    assert "'made_up'" in said(copied["foreign"])
    assert "config.json" in said(copied["broken"])
    assert "cannot be read" in said(copied["short"])
    assert "train it first" in said(copied["design"])


def test_the_texts_are_of_different_lengths() -> None:
    assert len({len(text) for text in TEXTS}) == len(TEXTS)


def as_run(folder: Path, **options: str) -> Path:
    """The folder as one that a command has begun."""
    (folder / "run.json").write_text(json.dumps({"id": "1", "options": options}))
    return folder


def test_a_compress_run_needs_a_trial(tmp_path: Path) -> None:
    as_run(tmp_path)
    with pytest.raises(BadInput, match="--trial is needed"):
        run(tmp_path, "compact")


def test_options_of_the_other_kind_of_folder_are_refused(models: Path, tmp_path: Path) -> None:
    for which in (o.NetworkOptions(trial=3), o.NetworkOptions(recovered=True)):
        with pytest.raises(BadInput, match="this folder has one"):
            export(
                o.ExportConfig(
                    o.SourceOptions(models / "nlu-mlm"),
                    which,
                    o.ExportOptions("compact"),
                    o.TargetOptions(tmp_path / "out"),
                ),
            )
    with pytest.raises(BadInput, match="--against is for trained networks"):
        export(
            o.ExportConfig(
                o.SourceOptions(as_run(tmp_path)),
                o.NetworkOptions(trial=0, against="minilm"),
                o.ExportOptions("compact"),
                o.TargetOptions(),
            ),
        )
    assert not (tmp_path / "out").exists()
