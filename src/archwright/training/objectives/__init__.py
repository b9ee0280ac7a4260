"""What a network can be taught by `train`: one file per objective. Loads no torch."""

from typing import TYPE_CHECKING

from archwright.configs.training import ObjectiveOptions
from archwright.errors import BadInput
from archwright.registry import Lazy, Registry

if TYPE_CHECKING:
    from archwright.training.plan import TrainingObjective

FILES = "archwright.training.objectives"
OBJECTIVES: "Registry[TrainingObjective]" = Registry(
    "training objective",
    {
        "mlm": Lazy(
            f"{FILES}.mlm:OBJECTIVE",
            "masked language modelling on text: 15 % of the tokens are guessed (Devlin et al. 2019)",
        ),
        "electra": Lazy(
            f"{FILES}.electra:OBJECTIVE",
            "replaced-token detection on text, beside a generator of a quarter of the width (Clark et al. 2020)",
        ),
        "lm": Lazy(f"{FILES}.causal:OBJECTIVE", "the next token of a text, for decoders and recurrent cells"),
        "distil": Lazy(
            f"{FILES}.distill:OBJECTIVE",
            "layers of a teacher on text: attention, hidden states, embeddings (W-PCA, Appendix C, gamma 0)",
        ),
        "finetune": Lazy(
            f"{FILES}.finetune:OBJECTIVE",
            "a task; with a teacher its layers and answers instead of the labels (gamma 1)",
        ),
    },
    group="archwright.training_objectives",
)


def objective_name(options: ObjectiveOptions) -> str:
    """The objective asked for, or the only one that the data allows."""
    if options.lesson is None and options.corpus is not None:
        names = ", ".join(name for name in OBJECTIVES if OBJECTIVES[name].head is not None)
        raise BadInput(f"--corpus can be learnt in several ways; choose one with --lesson: {names}.")
    return options.lesson or "finetune"
