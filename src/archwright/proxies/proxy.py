"""What a proxy is: a pure function of a probe with everything a reader wants to know about it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput, Failed

if TYPE_CHECKING:
    from archwright.probe import Probe

GRADIENT_FREE = frozenset({"forward"})


class Unscored(Failed):
    """This network has no value of this proxy: one line with the reason."""


def from_module(target: str) -> Callable[["Probe"], Any]:
    module, _, name = target.partition(":")
    found: Callable[[Probe], Any] = getattr(import_module(f"archwright.proxies.{module}"), name)
    return found


@dataclass(frozen=True)
class Proxy:
    """Higher is better, by what its paper claims; the sign is never turned afterwards."""

    target: str
    """module:function, imported when first used; (probe) -> float, or -> terms that are to be joined."""
    origin: str
    """count | published | own | discovered."""
    passes: tuple[str, ...]
    cite: str
    summary: str
    of: tuple[str, ...] = ()
    """Roles it looks at, of those whose outputs a recording can keep."""
    join: Callable[[Any], float] = float
    """Makes one number of what the function gives: float, total or average."""
    load: Callable[[str], Callable[["Probe"], Any]] = from_module

    @property
    def gradient_free(self) -> bool:
        return set(self.passes) <= GRADIENT_FREE

    def measure(self, probe: "Probe") -> float:
        """The score; raises Unscored with the reason where there is none, and where it is not finite."""
        for name in self.passes:
            if name not in probe.passes:
                raise BadInput(f"This proxy needs the {name} pass, which was not recorded; ask record for it.")
            if name in probe.failures:
                raise Unscored(probe.failures[name])
        score = self.join(probe.once((self.load, self.target), self.load(self.target)))
        if not math.isfinite(score):
            raise Unscored(f"The score is {score}, not a finite number.")
        return score

    def normalised(self) -> "Proxy":
        """The same divided by the number of modules (layers, linears, heads) it sums over."""
        return replace(self, join=average, summary=f"{self.summary}; mean instead of sum")


def total(terms: Any) -> float:
    return math.fsum(float(term) for term in terms)


def average(terms: Any) -> float:
    return total(terms) / len(terms)
