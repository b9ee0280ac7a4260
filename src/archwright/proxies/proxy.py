"""What a proxy is: a pure function of a probe with everything that the program and a reader must know about it.

Modules with proxies use `lazy_torch`, so that names, descriptions and needs of all are known without loading torch.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from archwright.errors import BadInput, Failed

if TYPE_CHECKING:
    from archwright.probe import Probe

PASSES = ("forward", "loss", "inputs", "noise", "synflow", "hessian")
ROLES = ("output", "pre_activation", "activations", "projections", "context", "probabilities")
"""As the probe names them; written out here because its room loads torch."""
FORWARD, LOSS, INPUTS, NOISE = ("forward",), ("loss",), ("inputs",), ("inputs", "noise")
GRADIENT_FREE = frozenset(FORWARD)
"""Passes that run nothing backwards."""

DEAR_PASSES = frozenset({"noise", "hessian"})
"""Passes that take longer than all others together."""

SERIANNI = "Serianni and Kalita 2023"
ABDELFATTAH = "Abdelfattah et al. 2021"
MELLOR = "Mellor et al. 2021"
ZHOU = "Zhou et al. 2022"
LPZERO = "LPZero"

Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item")
Result = TypeVar("Result")


class Unscored(Failed):
    """This network has no value of this proxy: one line with the reason."""


@dataclass(frozen=True)
class Proxy:
    """Higher is better, by what its paper claims; the sign is never turned afterwards.

    A package adds one with an entry point of the group `archwright.proxies` whose object is such a record.
    """

    name: str
    description: str
    function: Callable[..., Any]
    """(probe, *arguments) -> float, or -> terms that `join` makes a number of; pickled with requests that other
    processes score."""
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
    closed_form: bool = False
    """Whether it reads nothing but `probe.counts`: it is then known of all rows of a benchmark, without any network."""
    on_request: bool = False
    """Whether it is left out unless it is named, because it takes many times what others take."""

    @property
    def is_default(self) -> bool:
        """Whether it is among the proxies that are taken when none are named."""
        return not self.on_request and not DEAR_PASSES & set(self.passes)

    @property
    def gradient_free(self) -> bool:
        return set(self.passes) <= GRADIENT_FREE

    def terms(self, probe: "Probe") -> Any:
        """What the function gives, computed once per probe, also where several proxies share it."""
        return probe.once((self.function, self.arguments), lambda probe: self.function(probe, *self.arguments))

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


def total(terms: Any) -> float:
    return math.fsum(float(term) for term in terms)


def average(terms: Any) -> float:
    return total(terms) / len(terms)


RECORDS: list[Proxy] = []
"""Those that `proxy` has recorded."""


def proxy(
    description: str,
    citation: str = "",
    passes: tuple[str, ...] = (),
    *,
    roles: tuple[str, ...] = (),
    join: Callable[[Any], float] = float,
    origin: str = "published",
    name: str = "",
    arguments: tuple[Any, ...] = (),
    revision: int = 1,
    closed_form: bool = False,
    on_request: bool = False,
) -> Callable[[Function], Function]:
    """Records the function that is defined below it as the proxy of its name, or of another with these arguments.

    Raise `revision` whenever the numbers change: kept scores of other revisions are then taken anew.
    """

    def record(function: Function) -> Function:
        named = name or function.__name__
        values = (named, description, function, arguments, citation, passes, roles, origin, join, revision)
        RECORDS.append(Proxy(*values, closed_form=closed_form, on_request=on_request))
        return function

    return record


def once_per_probe(function: "Callable[[Probe], Result]") -> "Callable[[Probe], Result]":
    """An intermediate result that several proxies need, computed once per probe."""

    @wraps(function)
    def compute(probe: "Probe") -> Result:
        return probe.once(function, function)

    return compute


def require(items: Iterable[Item], reason: str) -> list[Item]:
    """These as a list; Unscored with the reason where there are none."""
    present = list(items)
    if not present:
        raise Unscored(reason)
    return present


def passes_of(proxies: Iterable[Proxy]) -> tuple[str, ...]:
    """Passes that `record` has to run for these proxies."""
    return tuple(dict.fromkeys(name for proxy in proxies for name in proxy.passes))


def roles_of(proxies: Iterable[Proxy]) -> tuple[str, ...]:
    """Roles that `record` has to keep for these proxies."""
    return tuple(dict.fromkeys(name for proxy in proxies for name in proxy.roles))
