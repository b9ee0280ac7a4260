"""Scores over the steps of pre-training."""

from pathlib import Path
from typing import Any

import pytest

from archwright.errors import BadInput
from archwright.training.ablation import published_stability
from tests.training.pipeline.runs import QUICK, trained


def test_architectures_over_steps(text: Path, rows: Path, bert: Path, tmp_path: Path) -> None:
    words: dict[str, Any] = {**QUICK, "space": "flexibert", "tokenizer": "words", "corpus": text, "lesson": "mlm"}
    words |= {"ablate_steps": (0, 3, 6), "random": 3, "batch_size": 4}
    document = trained(tmp_path / "run", **words).as_json()
    found = document["ablation"]
    assert [moment["steps"] for moment in found["moments"]] == [0, 3, 6]
    assert found["moments"][-1]["spearman"] == pytest.approx(1.0)
    assert found["moments"][2]["mean"] > found["moments"][0]["mean"]
    assert len(found["architectures"]) == 3
    again = trained(tmp_path / "run", **words).as_json()
    assert again["ablation"] == found
    assert "3 architectures over the steps" in (tmp_path / "run" / "report.html").read_text()


def test_a_task_that_cannot_be_is_found_before_any_training(
    text: Path, rows: Path, minilm: Path, tmp_path: Path
) -> None:
    words: dict[str, Any] = {**QUICK, "space": "flexibert", "tokenizer": str(minilm), "corpus": text, "lesson": "mlm"}
    words |= {"ablate_steps": (0, 2), "random": 3, "batch_size": 8, "train": rows, "train_rows": 6, "max_length": 48}
    with pytest.raises(BadInput, match="6 rows, fewer than the 8 of one update"):
        trained(tmp_path / "run", **words)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_with_a_task_each_is_fine_tuned(text: Path, rows: Path, minilm: Path, tmp_path: Path) -> None:
    words: dict[str, Any] = {**QUICK, "space": "flexibert", "tokenizer": str(minilm), "corpus": text, "lesson": "mlm"}
    words |= {"ablate_steps": (0, 2), "random": 3, "batch_size": 4, "train": rows, "train_rows": 16, "max_length": 48}
    words |= {"steps": None, "learning_rate": None, "corpus_validation": text}
    found = trained(tmp_path / "run", **{k: v for k, v in words.items() if v is not None}).as_json()["ablation"]
    scores = [score for one in found["architectures"] for score in one["scores"].values()]
    assert all(0 <= score <= 1 for score in scores)
    assert (tmp_path / "run" / "architecture-0" / "task-2" / "model").exists()


def test_the_published_table(data_dir: Path) -> None:
    found = published_stability()
    assert found is not None
    assert found["copies"] == {50_000: 500_000, 100_000: 1_000_000}  # of every architecture and task
    assert len(found["moments"]) == 19
    by_step = {moment["steps"]: moment["spearman"] for moment in found["moments"]}
    assert by_step[1_000_000] == pytest.approx(1.0)
    assert by_step[0] == pytest.approx(0.285, abs=1e-3)
    assert min(rho for step, rho in by_step.items() if step >= 150_000) == pytest.approx(0.842, abs=1e-3)
    assert found["settled_at"] == 800_000
