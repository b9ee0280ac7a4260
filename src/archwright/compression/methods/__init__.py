"""Every way to smaller networks that `compress` knows; one extractor, evaluation and budget for all. Loads no torch."""

from typing import TYPE_CHECKING

from archwright.errors import BadInput
from archwright.registry import Lazy, Registry

if TYPE_CHECKING:
    from archwright.compression.evaluator import SubnetEvaluator
    from archwright.compression.methods.method import Method
    from archwright.store import RunFolder

HERE = "archwright.compression.methods"
METHODS: "Registry[Method]" = Registry(
    "method",
    {
        "weight-sharing": Lazy(
            f"{HERE}.weight_sharing:WEIGHT_SHARING",
            "weight-sharing NAS: one super-network is fine-tuned, its sub-networks are searched",
        ),
        "standard": Lazy(
            f"{HERE}.standard:STANDARD",
            "standard NAS: each sub-network is fine-tuned by itself from the pre-trained weights",
        ),
        "head-pruning": Lazy(
            f"{HERE}.one_shot:HEAD_PRUNING",
            "heads go by the gradient of the loss, greedily; no training after (Michel et al. 2019)",
        ),
        "retraining-free": Lazy(
            f"{HERE}.retraining_free:RETRAINING_FREE",
            "Fisher mask search, rearrangement and mask tuning; no training after (Kwon et al. 2022)",
        ),
        "layer-dropping": Lazy(
            f"{HERE}.layer_dropping:LAYER_DROPPING",
            "the top layers go, the rest is fine-tuned from the pre-trained weights (Sajjad et al. 2022)",
        ),
        "magnitude": Lazy(
            f"{HERE}.one_shot:MAGNITUDE", "heads and units with the smallest weights go; no training after"
        ),
        "random": Lazy(f"{HERE}.one_shot:RANDOM", "random heads and units go; no training after"),
    },
    group="archwright.methods",
)


def space_for(name: str, space: str | None) -> str:
    """The space that the method works in; BadInput for one that it cannot serve."""
    method = METHODS[name]
    if space is not None and space not in method.spaces:
        able = ", ".join(other for other in METHODS if space in METHODS[other].spaces)
        raise BadInput(
            f"--space must be {' or '.join(method.spaces)} for --method {name}, got {space!r}; leave --space out, or "
            f"take a method that serves it: {able}."
        )
    return space or method.spaces[0]


def load_evaluator(folder: "RunFolder", *, device: str = "cpu", training: bool = True) -> "SubnetEvaluator":
    """The evaluator of a run that has begun; without `training` that of a finished run, from its folder alone."""
    from archwright.compression.context import load_context  # loads torch

    context = load_context(folder, device=device, training=training)
    return METHODS[context.config.supernet.method].build_evaluator(context)
