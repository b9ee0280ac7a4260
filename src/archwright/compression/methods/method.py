"""What the program must know about a method; its name and description are in the registry, for `--help`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from archwright.compression.context import RunContext
from archwright.compression.evaluator import SubnetEvaluator
from archwright.networks.pruned import PrunedNetwork
from archwright.search import Config
from archwright.spaces.subnetwork import large_config
from archwright.store import RunFolder
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.importance import ImportanceOrder
from archwright.subnet.spec import SubnetSpec

SUPERNET_ONLY = ("strategy", "teacher", "temperature", "start", "repair", "distil_epochs")
ONE_SHOT = (*SUPERNET_ONLY, "epochs", "order", "min_epochs")
"""Options of the training without a meaning: where there is no super-network, and where nothing is trained."""
FISHER_ONLY = ("fisher_trust",)
"""What only retraining-free pruning knows."""
RULE_ONLY = ("shares",)
"""What only methods know that prune to given sizes by a rule."""


@dataclass(frozen=True)
class Method:
    """One way from a fine-tuned original to a front of smaller networks."""

    spaces: tuple[str, ...]
    """Those it can serve, its usual one first."""
    prepare: Callable[[RunContext, PrunedNetwork, ImportanceOrder | None], None]
    """Puts what the search needs (a trained super-network, a list of configs) into the run folder."""
    build_evaluator: Callable[[RunContext], SubnetEvaluator]
    """From the run folder alone, so that workers can join."""
    samplers: bool = False
    """Whether a sampler looks for configs, in an order of importance; otherwise the method itself lists them."""
    shared: bool = False
    """Whether all networks share the weights of a super-network."""
    standalone: bool = False
    """Whether every network is trained by itself."""
    trains_together: bool = False
    """Whether `prepare` is for all processes that train together, not for the first one alone."""
    unused: tuple[str, ...] = ()
    """Options of the training that mean nothing here."""


def write_configs(run: RunFolder, configs: list[Config]) -> None:
    """The configs to evaluate, for methods that list them."""
    run.note("designs", {"configs": configs})


def write_subnets(context: RunContext, original: PrunedNetwork, specs: Iterable[SubnetSpec]) -> None:
    """The same for the whole network and these sub-networks of the space LARGE."""
    whole = read_anatomy(original.config)
    write_configs(context.run, [large_config(whole, spec) for spec in (whole.full, *specs)])


def read_configs(run: RunFolder) -> tuple[Config, ...]:
    return tuple(run.note("designs")["configs"])
