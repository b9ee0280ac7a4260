"""Presets say what the papers say."""

from typing import Any

import pytest

from archwright.errors import BadInput
from archwright.training.pipeline import edge_losses
from archwright.training.recipes import PRESETS, merge_recipe

STATED: list[tuple[str, str, str | None, dict[str, Any]]] = [
    ("wpca", "pretraining", None, {"batch_size": 256, "learning_rate": 1e-4}),
    ("wpca", "finetuning", "glue/RTE", {"batch_size": 32, "learning_rate": 5e-5, "epochs": 10, "warmup": 0.1}),
    ("wpca", "finetuning", "glue/CoLA", {"epochs": 50, "learning_rate": 5e-5}),
    ("wpca", "finetuning", "squad", {"epochs": 10, "learning_rate": 1e-4, "weight_decay": 0.01}),
    ("electra-flexibert", "pretraining", None, {"steps": 100_000, "batch_size": 128, "learning_rate": 5e-4}),
    ("electra-flexibert", "pretraining", None, {"warmup": 0.1, "eps": 1e-6, "generator_size": 0.25}),
    ("electra-flexibert", "pretraining", None, {"discriminator_weight": 50.0, "max_length": 128}),
    ("electra-flexibert", "finetuning", "glue/MRPC", {"epochs": 3, "learning_rate": 3e-4, "layer_decay": 0.8}),
    ("electra-flexibert", "finetuning", "glue/RTE", {"epochs": 10, "batch_size": 32, "eps": 1e-6}),
    ("electra-flexibert", "finetuning", "glue/STS-B", {"epochs": 10}),
    ("spos", "pretraining", None, {"epochs": 10, "batch_size": 256, "learning_rate": 1e-4}),
    ("spos", "finetuning", "glue/MNLI", {"epochs": 10, "batch_size": 256, "learning_rate": 4e-4, "held_out": 0.1}),
    ("plm-pruning", "finetuning", "glue/RTE", {"epochs": 5, "batch_size": 4, "learning_rate": 2e-5}),
]


@pytest.mark.parametrize(("preset", "stage", "task", "values"), STATED)
def test_stated(preset: str, stage: str, task: str | None, values: dict[str, Any]) -> None:
    found = merge_recipe(preset, stage, task, {})
    assert {name: getattr(found, name) for name in values} == values
    assert found.betas == (0.9, 0.999)


def test_what_is_given_wins_and_steps_stand_for_epochs() -> None:
    found = merge_recipe("wpca", "finetuning", "glue/CoLA", {"steps": 7, "learning_rate": None, "batch_size": 8})
    assert (found.steps, found.epochs, found.batch_size, found.learning_rate) == (7, None, 8, 5e-5)
    found = merge_recipe("electra-flexibert", "pretraining", None, {"epochs": 2.0})
    assert (found.steps, found.epochs) == (None, 2.0)


def test_every_preset_can_fine_tune() -> None:
    for name in PRESETS:
        assert merge_recipe(name, "finetuning", None, {}).epochs
    with pytest.raises(BadInput, match="has no pretraining; take default, wpca, electra-flexibert, spos"):
        merge_recipe("plm-pruning", "pretraining", None, {})


@pytest.mark.parametrize(
    ("losses", "first", "last"),
    [([], None, None), ([3.0], 3.0, 3.0), ([9.0, 5.0, 1.0], 9.0, 1.0), ([4.0] * 20 + [2.0] * 10, 4.0, 2.0)],
)
def test_a_short_training_has_a_beginning_and_an_end(losses: list[float], first: Any, last: Any) -> None:
    assert edge_losses([{"loss": loss} for loss in losses]) == {"first": first, "last": last}
