"""The quantization study: every form of every network, measured once, and the front of them all."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods import load_evaluator
from archwright.compression.studies import quantization
from archwright.compression.studies.quantization import (
    FORMS,
    Form,
    join_sessions,
    study_quantization,
    typical_inputs,
)
from archwright.networks.load import load_saved_network
from archwright.objectives.quantize import quantize_weights as packed
from archwright.store import RunFolder

TORCH = [form for form in FORMS if "torch" in form.runtime]


@pytest.fixture(scope="module")
def studied(
    run: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[SubnetEvaluator, dict[str, Any], dict[str, Any]]:
    """A copy of the finished run, a part of its result, and the study of that."""
    folder = tmp_path_factory.mktemp("quantized") / "run"
    shutil.copytree(run.folder.path, folder)
    evaluator, part = load_evaluator(RunFolder(folder)), {**run.result, "front": run.front[:1]}
    return evaluator, part, study_quantization(evaluator, part)


def test_every_form_of_every_network(studied: Any) -> None:
    _, result, study = studied
    points = study["points"]
    keys = [(point["trial"], point["bits"], point["runtime"]) for point in points]
    assert keys == [(t, f.bits, f.runtime) for t in (-1, result["front"][0]["trial"]) for f in FORMS]
    assert len({point["name"] for point in points}) == len(points)
    for entry, part in ((result["original"], points[: len(FORMS)]), (result["front"][0], points[len(FORMS) :])):
        assert all(point["nonembedding_share"] == entry["nonembedding_share"] for point in part)
        assert [part[0][name] for name in ("validation_error", "test_error")] == [
            entry["validation_error"],
            entry["test_error"],
        ]
        size = {(point["bits"], point["runtime"]): point["bytes"] for point in part}
        assert size[32, "torch"] == 4 * entry["parameters"]
        assert size[4, "torch"] < size[8, "torch"] < 0.4 * size[32, "torch"]
        assert size[8, "torch"] == size[8, "torch int8"] and size[8, "onnxruntime"] < 0.5 * size[32, "onnxruntime"]
    for point in points:
        assert 0 < point["latency_ms"]["low"] <= point["latency_ms"]["median"] <= point["latency_ms"]["high"]


def test_errors_are_those_of_the_packed_networks(studied: Any) -> None:
    evaluator, result, study = studied
    network = evaluator.extract(result["front"][0]["config"])
    found = {(p["bits"], p["runtime"]): p for p in study["points"] if p["trial"] == result["front"][0]["trial"]}
    wanted = evaluator.context.task_data.error(packed(network, 4, product="int8"), evaluator.context.task_data.test)
    assert found[4, "torch int8"]["test_error"] == wanted
    assert found[32, "onnxruntime"]["validation_error"] == pytest.approx(found[32, "torch"]["validation_error"])


def test_the_joint_front_is_not_beaten(studied: Any) -> None:
    points = [(point["validation_error"], point["bytes"]) for point in studied[2]["points"]]
    beaten = [any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in points) for p in points]
    assert studied[2]["joint_front"] == [place for place, lost in enumerate(beaten) if not lost]


@pytest.mark.slow
def test_an_onnx_file_answers_like_its_network(studied: Any, tmp_path: Path) -> None:
    evaluator = studied[0]
    network = load_saved_network(evaluator.context.run.original)
    batch = evaluator.context.task_data.validation[0]
    names = tuple(batch.inputs)
    with torch.no_grad():
        wanted = network(**batch.inputs).logits
        assert torch.allclose(
            Form(32, "onnxruntime").build(network, names, tmp_path)[0](**batch.inputs).logits, wanted, atol=1e-4
        )
        small = Form(8, "onnxruntime").build(network, names, tmp_path)[0](**batch.inputs).logits
    assert not torch.equal(small, wanted) and torch.allclose(small, wanted, atol=0.3)


def test_what_was_measured_is_not_measured_again(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(run.folder.path, tmp_path / "run")
    evaluator, part = load_evaluator(RunFolder(tmp_path / "run")), {**run.result, "front": run.front[:2]}
    measure, seen = quantization.measure_forms, []

    def interrupted(*args: Any) -> Any:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(args)
        return measure(*args)

    monkeypatch.setattr(quantization, "measure_forms", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study_quantization(evaluator, part, TORCH)
    monkeypatch.setattr(quantization, "measure_forms", lambda *args: seen.append(args) or measure(*args))
    first = study_quantization(evaluator, part, TORCH)
    assert len(seen) == 3 and len(first["points"]) == 3 * len(TORCH)
    assert study_quantization(evaluator, part, TORCH) == first and len(seen) == 3


def test_milliseconds_are_shares_of_one_yardstick(studied: Any) -> None:
    share = {"median": 0.5, "low": 0.4, "high": 0.6}
    point = {"name": "x", "validation_error": 0.1, "bytes": 10}
    sessions = [
        {"yardstick_ms": 10.0, "points": [{**point, "latency_share": share}]},
        {"yardstick_ms": 30.0, "points": [{**point, "bytes": 5, "latency_share": share}]},
    ]
    found = join_sessions(sessions, studied[0].context)
    assert [p["latency_ms"]["median"] for p in found["points"]] == [10.0, 10.0]
    assert found["points"][0]["latency_ms"] == pytest.approx({"median": 10.0, "low": 8.0, "high": 12.0})
    assert found["joint_front"] == [1] and "latency_share" in sessions[0]["points"][0]


def test_inputs_are_those_of_the_tokenizer(studied: Any) -> None:
    network = load_saved_network(studied[0].context.run.original)
    inputs = typical_inputs(network, ("input_ids", "attention_mask"), 9, np.random.default_rng(0))
    assert list(inputs) == ["input_ids", "attention_mask"] and inputs["input_ids"].shape == (1, 9)
    more = typical_inputs(network, ("input_ids", "attention_mask", "other"), 9, np.random.default_rng(0))
    assert more["other"].shape == (1, 9) and not more["other"].any()
