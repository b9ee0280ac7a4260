"""Folders that an earlier archwright wrote (old_run.tar.gz) still open, export and go on."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSequenceClassification

import archwright as aw
from tests.golden.cli import inside, run_cli
from tests.golden.compare import check, without
from tests.golden.make_old_run import COMPRESS, SPACES, TRAIN, TRIALS, unpack
from tests.golden.weights import digest_folder

TIMED = ("latency_ms", "latency_rank", "seconds", "latency", "seconds_by_phase", "environment", "archwright")
ADDED = ("layers", "heads", "units")
"""Keys of a trial that versions after the old run write."""
AUTO = {"mlm": AutoModelForMaskedLM, "lm": AutoModelForCausalLM}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return unpack(tmp_path)


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for tests that only add folders."""
    return unpack(tmp_path_factory.mktemp("networks"))


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def stamps(folder: Path) -> dict[str, tuple[int, bytes]]:
    """When the weights were written, and what they are."""
    files = sorted(folder.rglob("*.safetensors"))
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_it_opens(old: Path) -> None:
    run, result = aw.open_run(old / "run"), read(old / "run" / "result.json")
    assert [entry["trial"] for entry in run.front] == [entry["trial"] for entry in result["front"]]
    check("old_run", "front", without(run.front, TIMED))


def test_a_network_is_selected_and_exported_compact(old: Path) -> None:
    with inside(old):
        document = run_cli(["select", "run", "--params", "50%", "--to", "compact", "--out", "smaller"])
    assert document["export"]["parameters"] == document["selected"]["parameters"]
    check("old_run", "selected", without({"selected": document["selected"]}, TIMED))
    check("old_run", "selected weights", digest_folder(old / "smaller"))


def test_a_network_is_exported_padded(old: Path) -> None:
    trial = read(old / "run" / "result.json")["front"][1]["trial"]
    with inside(old):
        run_cli(["export", "run", "--trial", trial, "--to", "hf-padded", "--out", "padded"])
    model = AutoModelForSequenceClassification.from_pretrained(old / "padded")
    assert model.config.model_type == "bert" and model.config.id2label == {0: "bad", 1: "good"}
    check("old_run", "padded weights", digest_folder(old / "padded"))


def test_the_same_command_again_does_nothing(old: Path) -> None:
    before, result = stamps(old / "run"), read(old / "run" / "result.json")
    with inside(old):
        document = run_cli([*COMPRESS, TRIALS])
    assert stamps(old / "run") == before
    assert without(document, TIMED) == without(result, TIMED)


def test_more_trials_go_on_from_the_old_ones(old: Path) -> None:
    """No trial is lost, nothing is trained again; what the search tries next is as before."""
    before, result = stamps(old / "run"), read(old / "run" / "result.json")
    with inside(old):
        document = run_cli([*COMPRESS, TRIALS + 3])
    assert stamps(old / "run") == before
    trials = without(document["trials"], (*TIMED, *ADDED))
    assert trials[:TRIALS] == without(result["trials"], TIMED)
    assert len(document["trials"]) == TRIALS + 3
    assert document["original"]["validation_error"] == result["original"]["validation_error"]
    check("old_run", "more trials", trials)


def test_a_lost_page_is_written_again_without_training(old: Path) -> None:
    before = stamps(old / "run")
    (old / "run" / "report.html").unlink()
    with inside(old):
        document = run_cli([*COMPRESS, TRIALS])
    assert stamps(old / "run") == before
    assert len(document["trials"]) == TRIALS
    assert "<html" in (old / "run" / "report.html").read_text()[:2000]


def test_other_options_are_refused(old: Path) -> None:
    with inside(old), pytest.raises(AssertionError, match="was begun with"):
        run_cli([*COMPRESS, TRIALS, "--seed", 5])


def test_a_trained_network_is_not_trained_again(old: Path) -> None:
    before, result = stamps(old / "trained"), read(old / "trained" / "result.json")
    with inside(old):
        assert run_cli(TRAIN) == result
    assert stamps(old / "trained") == before
    assert AutoModelForMaskedLM.from_pretrained(old / "trained" / "model").config.model_type == "bert"


def test_a_trained_network_goes_on_from_its_weights(old: Path) -> None:
    words = "train --model trained --train rows.csv --steps 5 --batch-size 8 --max-length 16 --threads 1 --out tuned"
    with inside(old):
        document = run_cli(words.split())
    kept = {name: document[name] for name in ("parameters", "steps", "losses", "validation")}
    check("old_run", "tuned", without(kept, TIMED))


@pytest.mark.parametrize("space", SPACES)
def test_a_network_of_a_space_answers_the_same(space: str, networks: Path) -> None:
    """By the code in its folder, and exported again by the code of today."""
    with inside(networks):
        run_cli(["export", space, "--to", "compact", "--out", f"{space}-again"])
    ids, logits = torch.tensor([[6, 7, 8, 9, 10, 6]]), []
    for folder in (networks / space / "model", networks / f"{space}-again"):
        model = AUTO[SPACES[space]].from_pretrained(folder, trust_remote_code=True).eval()
        with torch.no_grad():
            logits.append(model(input_ids=ids).logits[0, -2:, :8].tolist())
    check("old_run", f"logits of {space}", logits[0])
    check("old_run", f"logits of {space}", logits[1])


@pytest.mark.parametrize("space", SPACES)
def test_a_network_of_a_space_goes_on_learning(space: str, networks: Path) -> None:
    words = [
        "--precision",
        "float32",
        "--steps",
        "2",
        "--batch-size",
        "8",
        "--max-length",
        "16",
        "--threads",
        "1",
        "--validation-rows",
        "20",
        "--learning-rate",
        "1e-3",
    ]
    more = ["--lesson", SPACES[space], "--corpus", "text.txt", "--out", f"{space}-on"]
    with inside(networks):
        document = run_cli(["train", "--model", space, *more, *words])
    kept = {name: document[name] for name in ("parameters", "steps", "losses", "validation")}
    check("old_run", f"{space} goes on", without(kept, TIMED))
