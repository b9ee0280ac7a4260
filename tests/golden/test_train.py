"""`train`: every lesson ends with the same weights and the same metrics."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.golden.compare import check, without
from tests.golden.weights import digest_file, digest_folder

Trained = Callable[[str], dict[str, Any]]
LESSONS = (
    "mlm-flexibert",
    "mlm-nlu",
    "mlm-lines",
    "electra",
    "lm-gpt2",
    "lm-rnn",
    "lm-llama",
    "distil",
    "distil-nlu",
    "finetune-bert",
    "finetune-trained",
    "finetune-teacher",
)
IN_FULL = ("mlm-flexibert", "finetune-teacher")
"""Every tensor of these is recorded; of the others a few numbers per file."""
KEPT = (
    "lesson", "preset", "seed", "parameters", "rows", "steps", "epochs", "processes", "batch_size", "schedule",
    "tokens", "losses", "validation", "vocabulary", "validation_rows", "generator_parameters", "layers", "metric",
    "note", "labels", "teacher_metrics",
)  # fmt: skip


def pick_lasting(document: dict[str, Any]) -> dict[str, Any]:
    """Everything that does not depend on the clock or the place."""
    return without({name: document[name] for name in KEPT if name in document}, ("seconds", "tokens_per_second"))


@pytest.mark.parametrize("name", LESSONS)
def test_the_metrics_are_the_same(name: str, trained: Trained) -> None:
    check("train", name, pick_lasting(trained(name)))


@pytest.mark.parametrize("name", LESSONS)
def test_the_weights_are_the_same(name: str, trained: Trained, place: Path) -> None:
    trained(name)
    folder = place / f"train-{name}"
    check("train_weights", name, digest_folder(folder))
    if name in IN_FULL:
        check("train_weights", f"{name}, model", digest_file(folder / "model" / "model.safetensors"))


def test_judging_alone_is_the_same(trained: Trained) -> None:
    document = trained("evaluate")
    assert document["evaluate_only"] is True
    check("train", "evaluate", pick_lasting(document))


def test_the_ablation_of_steps_is_the_same(trained: Trained) -> None:
    check("train", "ablate", without(trained("ablate")["ablation"], ("seconds",)))
