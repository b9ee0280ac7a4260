"""Hyperparameters that go together, as papers state them; what the user gives beside a preset wins. Loads no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from archwright.errors import BadInput


@dataclass(frozen=True)
class Recipe:
    """How one training is done."""

    steps: int | None = None
    """Optimizer updates; None: by epochs."""
    epochs: float | None = None
    batch_size: int = 32
    learning_rate: float = 1e-4
    warmup: float = 0.1
    weight_decay: float = 0.01
    layer_decay: float = 1.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    max_length: int = 128
    held_out: float = 0.0
    """Share of a task's training rows that is not trained on but validates."""
    generator_size: float = 0.25
    """Width of ELECTRA's generator, as a share of the discriminator's."""
    discriminator_weight: float = 50.0
    """Of its loss, against 1 for the generator's."""
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is otherwise for some tasks, by their name."""


@dataclass(frozen=True)
class RecipePreset:
    """The recipes of one paper; a stage it does not have is None."""

    description: str
    pretraining: Recipe | None
    finetuning: Recipe | None


PRESETS: dict[str, RecipePreset] = {
    "default": RecipePreset(
        "for little text, few rows and a CPU",
        Recipe(steps=1000, learning_rate=5e-4),
        Recipe(epochs=3, learning_rate=1e-4),
    ),
    "wpca": RecipePreset(
        "W-PCA: text in batches of 256 at 1e-4; tasks 10 epochs of 32 at 5e-5, SQuAD 1e-4, CoLA 50 epochs",
        Recipe(steps=100_000, batch_size=256, learning_rate=1e-4),
        Recipe(epochs=10, learning_rate=5e-5, tasks={"glue/CoLA": {"epochs": 50.0}, "squad": {"learning_rate": 1e-4}}),
    ),
    "electra-flexibert": RecipePreset(
        "FlexiBERT benchmark: 100k steps of 128 at 5e-4; tasks 3 epochs at 3e-4, RTE and STS-B 10, layer decay 0.8",
        Recipe(steps=100_000, batch_size=128, learning_rate=5e-4, eps=1e-6),
        Recipe(
            epochs=3,
            learning_rate=3e-4,
            layer_decay=0.8,
            eps=1e-6,
            tasks={"glue/RTE": {"epochs": 10.0}, "glue/STS-B": {"epochs": 10.0}},
        ),
    ),
    "spos": RecipePreset(
        "one-shot super-network of W-PCA's Appendix E.2: 10 epochs of 256 at 1e-4, then 10 at 4e-4 on 90 % of train",
        Recipe(epochs=10, batch_size=256, learning_rate=1e-4),
        Recipe(epochs=10, batch_size=256, learning_rate=4e-4, held_out=0.1),
    ),
    "plm-pruning": RecipePreset(
        "Klein et al. 2024: 5 epochs of 4 at 2e-5, 30 % of train validate; it begins from trained weights",
        None,
        Recipe(epochs=5, batch_size=4, learning_rate=2e-5, held_out=0.3),
    ),
}
"""W-PCA says nothing about the length of its pre-training; 100,000 steps are those of the FlexiBERT benchmark."""


def merge_recipe(preset: str, stage: str, task: str | None, given: Mapping[str, Any]) -> Recipe:
    """The recipe of a preset for a stage and a task, with what the user gave (None: nothing) over it."""
    recipe: Recipe | None = getattr(PRESETS[preset], stage)
    if recipe is None:
        able = ", ".join(name for name, other in PRESETS.items() if getattr(other, stage))
        raise BadInput(f"the preset {preset} has no {stage}; take {able}.")
    names = {f.name for f in fields(Recipe)}
    special = recipe.tasks.get(task or "", {})
    said = {name: value for name, value in given.items() if name in names and value is not None}
    length = {name: None for name in ("steps", "epochs") if {"steps", "epochs"} & set(said)}
    if "steps" in said and "epochs" in said:
        raise BadInput(f"give --steps or --epochs, not both, got {said['steps']} and {said['epochs']}.")
    return replace(recipe, **{**special, **length, **said})
