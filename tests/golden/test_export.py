"""Every kind of export answers the same, loaded by transformers or onnxruntime without archwright."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from tests.golden.build import VOCABULARY
from tests.golden.cli import ROOT, inside, run_cli
from tests.golden.compare import TRAINED, check, check_still_there

Make = Callable[[str], dict[str, Any]]
IDS = [[1, 6, 22, 9, 24, 5, 2], [1, 11, 18, 7, 2, 0, 0], [1, 26, 13, 5, 19, 2, 0]]
MASK = [[int(token > 0) for token in row] for row in IDS]
TYPED = {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": [[0] * 7] * 3}
PLAIN = {"input_ids": [[6, 22, 9, 24, 5, 17]], "attention_mask": [[1] * 6]}
ENCODER = "AutoModelForSequenceClassification"
DECODER = "AutoModelForCausalLM"
EXPORTS: dict[str, tuple[str, int, str]] = {
    "encoder hf": ("layer-dropping", 2, "hf"),
    "encoder hf-padded": ("weight-sharing", 6, "hf-padded"),
    "encoder compact": ("weight-sharing", 6, "compact"),
    "encoder compact original": ("weight-sharing", -1, "compact"),
    "encoder compact tuned": ("retraining-free", 6, "compact"),
    "encoder onnx": ("weight-sharing", 6, "onnx"),
    "decoder hf": ("lm", -1, "hf"),
    "decoder hf-padded": ("lm", 1, "hf-padded"),
    "decoder compact": ("lm", 1, "compact"),
    "decoder onnx": ("lm", 1, "onnx"),
}
"""Name to run, trial and format."""
INT8 = "encoder onnx"
TRAINED_AS = {
    "mlm-flexibert": "AutoModelForMaskedLM",
    "mlm-nlu": "AutoModelForMaskedLM",
    "electra": "AutoModelForPreTraining",
    "lm-gpt2": DECODER,
    "lm-rnn": DECODER,
    "finetune-trained": ENCODER,
    "finetune-bert": ENCODER,
}
QUANTIZED = (0.02, 0.02)
"""A weight that is rounded the other way moves more than rounding errors do."""
PARITY = ("format", "family", "layers", "pooling", "parameters", "stored_parameters")


@pytest.fixture(scope="session")
def exported(compressed: Make, place: Path) -> dict[str, dict[str, Any]]:
    """Parity reports by name; the folders are place/export/NAME."""
    reports = {}
    for name, (run, trial, form) in EXPORTS.items():
        compressed(run)
        more = ["--int8"] if name == INT8 else []
        with inside(place):
            words = ["export", run, f"--trial={trial}", "--to", form, "--out", Path("export", name), *more]
            reports[name] = run_cli(words)
    return reports


@pytest.fixture(scope="session")
def answers(exported: dict[str, dict[str, Any]], trained: Make, place: Path) -> dict[str, Any]:
    """Logits by name, from one process that cannot import archwright."""
    jobs: dict[str, Any] = {}
    for name, (_, _, form) in EXPORTS.items():
        side, auto, inputs = name.split()[0], ENCODER, TYPED
        if side == "decoder":
            auto, inputs = DECODER, PLAIN
        path = place / "export" / name
        if form == "onnx":
            path = path / "model.onnx"
        jobs[name] = {"path": str(path), "auto": auto, "inputs": inputs, "remote": form == "compact"}
    jobs["encoder int8"] = {**jobs[INT8], "path": str(place / "export" / INT8 / "model_int8.onnx")}
    for name, auto in TRAINED_AS.items():
        trained(name)
        path = place / f"train-{name}" / "model"
        jobs[f"trained {name}"] = {"path": str(path), "auto": auto, "inputs": PLAIN, "remote": True}
    asked, told = place / "jobs.json", place / "answers.json"
    asked.write_text(json.dumps(jobs))
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    script = ROOT / "tests" / "golden" / "load_exports.py"
    words = [sys.executable, str(script), str(asked), str(told)]
    done = subprocess.run(words, env=surroundings, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(told.read_text())


@pytest.mark.parametrize("name", [*EXPORTS, *(f"trained {name}" for name in TRAINED_AS)])
def test_the_logits_are_the_same(name: str, answers: dict[str, Any]) -> None:
    logits = answers[name]
    by_token = isinstance(logits[0][0], list)
    check("logits", name, [row[-2:] for row in logits] if by_token else logits, TRAINED)


def test_the_logits_of_the_quantized_network_are_the_same(answers: dict[str, Any]) -> None:
    check("logits", "encoder int8", answers["encoder int8"], QUANTIZED)


def test_formats_of_one_network_agree(answers: dict[str, Any]) -> None:
    for side, forms in {"encoder": ("hf-padded", "onnx"), "decoder": ("hf-padded", "onnx")}.items():
        flat = [value for row in answers[f"{side} compact"] for value in flatten(row)]
        for form in forms:
            other = [value for row in answers[f"{side} {form}"] for value in flatten(row)]
            assert other == pytest.approx(flat, rel=1e-3, abs=1e-4)


def flatten(value: Any) -> list[float]:
    return [one for part in value for one in flatten(part)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", EXPORTS)
def test_the_parity_report_is_the_same(name: str, exported: dict[str, dict[str, Any]], place: Path) -> None:
    report = exported[name]
    folder = place / "export" / name
    written = json.loads((folder / "parity.json").read_text())
    assert written["difference"] == report["difference"]
    check("parity", name, {key: report[key] for key in PARITY})
    check_still_there("files", name, [path.name for path in folder.iterdir()])


@pytest.mark.parametrize("name", ["encoder compact", "decoder onnx"])
def test_the_tokenizer_came_along(name: str, exported: dict[str, dict[str, Any]], place: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(place / "export" / name)
    words = ["the", "good", "film"]
    ids = tokenizer(" ".join(words))["input_ids"]
    assert [token for token in ids if token > 4] == [VOCABULARY.index(word) for word in words]
