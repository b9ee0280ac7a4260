"""A run is bound to its inputs while it goes on, and needs none of them when it is finished."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from archwright.cli.main import main
from archwright.compression.methods import load_evaluator
from archwright.store import RunFolder
from tests.compression.runs import QUICK, compressed, front_of, refusal, words_of

SMALL: dict[str, Any] = {**QUICK, "space": "small", "trials": 4}


@pytest.fixture
def own(tmp_path: Path, bert: Path, rows: Path) -> dict[str, Any]:
    """A model and rows that a test may spoil."""
    shutil.copytree(bert, tmp_path / "bert")
    shutil.copy(rows, tmp_path / "rows.csv")
    return {"model": str(tmp_path / "bert"), "train": tmp_path / "rows.csv"}


def flip_labels(rows: Path) -> None:
    swapped = {"bad": "good", "good": "bad"}
    lines = [line.split(",") for line in rows.read_text().splitlines()]
    rows.write_text("".join(",".join([*row[:2], swapped.get(row[2], row[2]), *row[3:]]) + "\n" for row in lines))


def test_other_rows_weights_or_tokens_under_the_same_path_are_refused(
    own: dict[str, Any], bert: Path, tmp_path: Path, capfd: Any
) -> None:
    run, model = tmp_path / "run", Path(own["model"])
    words = words_of("compress", **{**SMALL, **own, "trials": 6}, out=run, quiet=True)
    whole = compressed(run, **SMALL, **own).result

    text = own["train"].read_text()
    flip_labels(own["train"])
    code, line = refusal(capfd, words)
    assert code == 2 and "rows" in line and "rows.csv" in line and "--out" in line
    code, line = refusal(capfd, ["worker", str(run), "--quiet"])
    assert code == 2 and "rows" in line
    own["train"].write_text(text)

    weights = (model / "model.safetensors").read_bytes()
    other = {name: tensor + 1e-3 for name, tensor in load_file(model / "model.safetensors").items()}
    save_file(other, model / "model.safetensors", metadata={"format": "pt"})
    code, line = refusal(capfd, words)
    assert code == 2 and "other content of its model" in line
    (model / "model.safetensors").write_bytes(weights)

    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.add_tokens(["zzyzx"])  # which no row has
    tokenizer.save_pretrained(model)
    code, line = refusal(capfd, words)
    assert code == 2 and "other content of its tokenizer" in line
    for path in bert.iterdir():
        shutil.copy(path, model)  # at another time

    more = compressed(run, **{**SMALL, **own, "trials": 6}).result
    assert len(more["trials"]) == 6 and more["trials"][:4] == whole["trials"]


def test_a_run_without_digests_goes_on_and_says_so(
    own: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"
    compressed(run, **SMALL, **own)
    (run / "digests.json").unlink()
    with caplog.at_level(logging.WARNING):
        assert len(compressed(run, **{**SMALL, **own, "trials": 5}).result["trials"]) == 5
    assert "noted no digests" in caplog.text
    assert RunFolder(run).note("digests")["rows"]["digest"]


@pytest.mark.parametrize("method", ["weight-sharing", "standard"])
def test_a_finished_run_needs_nothing_outside_its_folder(
    method: str, own: dict[str, Any], tmp_path: Path, capfd: Any
) -> None:
    run = tmp_path / "run"
    options = {**SMALL, "method": method, "vocabulary": "task"} if method == "weight-sharing" else {**SMALL}
    finished = compressed(run, **{**options, "method": method, **own})
    trial = finished.front[0]["trial"]
    known = load_evaluator(finished.folder)
    alone = load_evaluator(finished.folder, training=False)
    assert known.context.task_data.trains and not alone.context.task_data.trains
    config = finished.front[0]["config"]
    for rows in ("holdout_rows", "original_holdout_rows", "search_rows"):
        there, here = (getattr(each.context, rows) for each in (known, alone))
        assert [batch.rows.tolist() for batch in there] == [batch.rows.tolist() for batch in here]
        assert all((a.inputs["input_ids"] == b.inputs["input_ids"]).all() for a, b in zip(there, here, strict=True))
    assert known.error(config, known.context.holdout_rows) == alone.error(config, alone.context.holdout_rows)

    shutil.rmtree(own["model"])
    own["train"].unlink()
    assert main(["select", str(run), "--params", "100%", "--quiet"]) == 0
    assert main(["select", str(run), "--flops", "100%", "--quiet"]) == 0
    assert main(["export", str(run), "--trial", str(trial), "--to", "compact", "--quiet"]) == 0
    assert main(["export", str(run), "--trial", "-1", "--to", "compact", "--quiet"]) == 0
    code, line = refusal(capfd, ["select", str(run), "--params", "100%", "--recover-epochs", "1", "--quiet"])
    assert code == 2 and "is gone" in line and "--recover-epochs" in line


def test_a_recovery_goes_on_from_its_checkpoint(
    own: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted in its middle; another one of other options does not take its checkpoint for its own."""
    run = tmp_path / "run"
    whole = compressed(run, **{**SMALL, **own, "checkpoint_seconds": 0.0})
    words = ["select", str(run), "--params", "100%", "--recover-epochs", "2", "--quiet"]
    assert main(words) == 0
    (network,) = (run / "recovered").iterdir()
    expected = (network / "model.safetensors").read_bytes()
    shutil.rmtree(run / "recovered")

    from archwright.compression import finetuning
    from archwright.training.loop import train_network

    def stopping(*arguments: Any, **options: Any) -> None:
        train_network(*arguments, **{**options, "stop": 3})
        raise KeyboardInterrupt

    monkeypatch.setattr(finetuning, "train_network", stopping)
    assert main(words) == 130
    assert len(list(run.glob("checkpoint-recovery-*"))) == 1
    monkeypatch.setattr(finetuning, "train_network", train_network)
    assert main(words) == 0
    assert (network / "model.safetensors").read_bytes() == expected
    assert list(run.glob("checkpoint-*")) == []
    assert front_of(whole.result)


def test_two_recoveries_at_once_are_refused(own: dict[str, Any], tmp_path: Path, capfd: Any) -> None:
    run = compressed(tmp_path / "run", **SMALL, **own)
    with run.folder.lock():
        code, line = refusal(
            capfd, ["select", str(run.folder.path), "--params", "100%", "--recover-epochs", "1", "--quiet"]
        )
    assert code == 2 and "another command works" in line
