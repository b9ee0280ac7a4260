"""Every way to smaller networks that `compress` knows; one extractor, evaluation and budget for all. Loads no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput

if TYPE_CHECKING:
    from archwright.compression.context import RunContext
    from archwright.compression.search import SubnetEvaluator

NAS_SPACES = ("small", "layer", "medium", "large")


@dataclass(frozen=True)
class Method:
    """How a front is found. `module` has two functions, named below, that are imported when the method runs."""

    description: str
    module: str
    prepare: str
    """Brief -> None: puts what the search needs (trained networks, lists of designs) into the run folder."""
    evaluator: str
    """Brief -> Ground: what to search on, from the run folder alone, so that workers can join."""
    spaces: tuple[str, ...]
    """Those it can serve, its usual one first."""
    samplers: bool = False
    """Whether a sampler looks for designs; otherwise the method itself lists them."""
    shared: bool = False
    """Whether all networks share the weights of a super-network."""
    alone: bool = False
    """Whether every network is trained by itself."""
    unused: tuple[str, ...] = ()
    """Options of the training that mean nothing here."""

    def prepared(self, context: "RunContext") -> None:
        self._function(self.prepare)(context)

    def ground_of(self, context: "RunContext") -> "SubnetEvaluator":
        found: SubnetEvaluator = self._function(self.evaluator)(context)
        return found

    def _function(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module(f"archwright.compression.methods.{self.module}"), name)
        return found


SUPERNET_ONLY = ("strategy", "temperature", "start")
ONE_SHOT = (*SUPERNET_ONLY, "epochs", "order", "min_epochs")

METHODS: dict[str, Method] = {
    "weight-sharing": Method(
        "weight-sharing NAS: one super-network is fine-tuned, its sub-networks are searched",
        "weight_sharing",
        "trained_supernet",
        "shared_ground",
        NAS_SPACES,
        samplers=True,
        shared=True,
        unused=("min_epochs",),
    ),
    "standard": Method(
        "standard NAS: each sub-network is fine-tuned by itself from the pre-trained weights",
        "standard",
        "trained_original",
        "standard_ground",
        NAS_SPACES,
        samplers=True,
        alone=True,
        unused=SUPERNET_ONLY,
    ),
    "head-pruning": Method(
        "heads go by the gradient of the loss, greedily; no training after (Michel et al. 2019)",
        "one_shot",
        "listed_by_heads",
        "oneshot_ground",
        ("large",),
        unused=ONE_SHOT,
    ),
    "retraining-free": Method(
        "Fisher mask search, rearrangement and mask tuning; no training after (Kwon et al. 2022)",
        "retraining_free",
        "listed_by_fisher",
        "tuned_ground",
        ("large",),
        unused=ONE_SHOT,
    ),
    "layer-dropping": Method(
        "the top layers go, the rest is fine-tuned from the pre-trained weights (Sajjad et al. 2022)",
        "standard",
        "listed_layers",
        "dropping_ground",
        ("layer",),
        alone=True,
        unused=(*SUPERNET_ONLY, "order", "min_epochs"),
    ),
    "magnitude": Method(
        "heads and units with the smallest weights go; no training after",
        "one_shot",
        "listed_by_magnitude",
        "oneshot_ground",
        ("large",),
        unused=ONE_SHOT,
    ),
    "random": Method(
        "random heads and units go; no training after",
        "one_shot",
        "listed_at_random",
        "oneshot_ground",
        ("large",),
        unused=ONE_SHOT,
    ),
}


def space_for(name: str, space: str | None) -> str:
    """The space that the method works in; BadInput for one that it cannot serve."""
    method = METHODS[name]
    if space is not None and space not in method.spaces:
        able = ", ".join(other for other, one in METHODS.items() if space in one.spaces)
        raise BadInput(
            f"--space must be {' or '.join(method.spaces)} for --method {name}, got {space!r}; leave --space out, or "
            f"take a method that serves it: {able}."
        )
    return space or method.spaces[0]
