"""What a proxy is: a pure function of a probe with everything that the program and a reader must know about it."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput, Failed

if TYPE_CHECKING:
    from archwright.probe import Probe

PASSES = ("forward", "loss", "inputs", "noise", "synflow", "hessian")
ROLES = ("output", "pre_activation", "activations", "projections", "context", "probabilities")
"""As the probe names them; written out here because its room loads torch."""
GRADIENT_FREE = frozenset({"forward"})
"""Passes that run nothing backwards."""


class Unscored(Failed):
    """This network has no value of this proxy: one line with the reason."""


@dataclass(frozen=True)
class Proxy:
    """Higher is better, by what its paper claims; the sign is never turned afterwards.

    A package adds one with an entry point of the group `archwright.proxies` whose object is such a record.
    """

    name: str
    description: str
    function: str | Callable[..., Any]
    """(probe, *arguments) -> float, or -> terms that `join` makes a number of; as module:name it is imported when first
    used. It is pickled with requests that other processes score."""
    arguments: tuple[Any, ...] = ()
    citation: str = ""
    passes: tuple[str, ...] = ()
    """Passes that `record` has to run."""
    roles: tuple[str, ...] = ()
    """Roles whose outputs `record` has to keep."""
    origin: str = "own"
    """count | published | own | discovered."""
    join: Callable[[Any], float] = float
    """Makes one number of what the function gives: float, total or average."""
    revision: int = 1
    """Raise it when the function gives another number for the same probe: kept scores are then computed again."""
    content: str = ""
    """Python source or formula that the function is made of: other content makes kept scores those of another proxy."""

    @property
    def gradient_free(self) -> bool:
        return set(self.passes) <= GRADIENT_FREE

    def terms(self, probe: "Probe") -> Any:
        """What the function gives, computed once per probe, also where several proxies share it."""

        def compute(probe: "Probe") -> Any:
            function = self.function
            if isinstance(function, str):
                module, _, name = function.partition(":")
                function = getattr(import_module(module), name)
            return function(probe, *self.arguments)

        return probe.once((self.function, self.arguments), compute)

    def measure(self, probe: "Probe") -> float:
        """The score; raises Unscored with the reason where there is none, and where it is not finite."""
        for name in self.passes:
            if name not in probe.passes:
                raise BadInput(f"This proxy needs the {name} pass, which was not recorded; ask record for it.")
            if name in probe.failures:
                raise Unscored(probe.failures[name])
        score = self.join(self.terms(probe))
        if not math.isfinite(score):
            raise Unscored(f"The score is {score}, not a finite number.")
        return score

    def mean_form(self) -> "Proxy":
        """The same divided by the number of modules (layers, linears, heads) it sums over."""
        description = f"{self.description}; mean instead of sum"
        return replace(self, name=f"{self.name}_normalised", join=average, description=description)


def passes_of(proxies: Iterable[Proxy]) -> tuple[str, ...]:
    """Passes that `record` has to run for these proxies."""
    return tuple(dict.fromkeys(name for proxy in proxies for name in proxy.passes))


def roles_of(proxies: Iterable[Proxy]) -> tuple[str, ...]:
    """Roles that `record` has to keep for these proxies."""
    return tuple(dict.fromkeys(name for proxy in proxies for name in proxy.roles))


def total(terms: Any) -> float:
    return math.fsum(float(term) for term in terms)


def average(terms: Any) -> float:
    return total(terms) / len(terms)
