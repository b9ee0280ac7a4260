"""What a network can be taught by `train`; one file per kind of data. Loads no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from archwright.errors import BadInput


@dataclass(frozen=True)
class TrainingObjective:
    """One way to learn. `target` is imported when the lesson is given."""

    description: str
    target: str
    """module:function: Brief, Place -> Taught."""
    stage: str
    """Which half of a preset it follows: pretraining (text) or finetuning (a task)."""
    head: str | None = None
    """Head that a network learns with from text; None: it learns a task, which has a head of its own."""
    teacher: bool | None = False
    """Whether it needs a teacher; None: it may have one."""
    causal: bool = False
    """Whether a token sees those before it alone."""

    def __call__(self, *words: Any) -> Any:
        module, _, name = self.target.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function(*words)


TEXT = "archwright.training.objectives.pretraining"
OBJECTIVES: dict[str, TrainingObjective] = {
    "mlm": TrainingObjective(
        "masked language modelling on text: 15 % of the tokens are guessed (Devlin et al. 2019)",
        f"{TEXT}:masked_words",
        "pretraining",
        head="mlm",
    ),
    "electra": TrainingObjective(
        "replaced-token detection on text, beside a generator of a quarter of the width (Clark et al. 2020)",
        f"{TEXT}:replaced_words",
        "pretraining",
        head="electra",
    ),
    "lm": TrainingObjective(
        "the next token of a text, for decoders and recurrent cells",
        f"{TEXT}:next_words",
        "pretraining",
        head="lm",
        causal=True,
    ),
    "distil": TrainingObjective(
        "layers of a teacher on text: attention, hidden states, embeddings (W-PCA, Appendix C, gamma 0)",
        f"{TEXT}:layers_of_a_teacher",
        "pretraining",
        head="mlm",
        teacher=True,
    ),
    "finetune": TrainingObjective(
        "a task; with a teacher its layers and answers instead of the labels (gamma 1)",
        "archwright.training.objectives.finetune:task",
        "finetuning",
        teacher=None,
    ),
}
CAUSAL = {lesson.head for lesson in OBJECTIVES.values() if lesson.causal}
"""Heads of networks in which a token sees those before it alone."""
USUAL = "finetune"
"""The lesson where no text is given."""


def lesson_named(name: str | None, *, corpus: bool) -> str:
    """The lesson asked for, or the only one that the data allows."""
    if name is None and corpus:
        ways = ", ".join(key for key, lesson in OBJECTIVES.items() if lesson.head is not None)
        raise BadInput(f"--corpus can be learnt in several ways; choose one with --lesson: {ways}.")
    return name or USUAL
