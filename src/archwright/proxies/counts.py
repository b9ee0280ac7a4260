"""Counts, for which no network is run, and the random baseline."""

from typing import TYPE_CHECKING

from archwright.proxies.proxy import Unscored

if TYPE_CHECKING:
    from archwright.networks.roles import Counts
    from archwright.probe import Probe

WIDER_THAN_ANY = 1_000_000


def counts_of(probe: "Probe") -> "Counts":
    if probe.counts is None:
        raise Unscored("The architecture was not counted; give record its counts.")
    return probe.counts


def count(probe: "Probe", name: str) -> int:
    """The field of this name of the architecture's counts, such as its parameters."""
    number: int = getattr(counts_of(probe), name)
    return number


def depth_width(probe: "Probe") -> int:
    """Deeper first; of equally deep networks the wider."""
    counts = counts_of(probe)
    return counts.depth * WIDER_THAN_ANY + counts.width


def random(probe: "Probe") -> float:
    if probe.draw is None:
        raise Unscored("There is no random number; give record a generator.")
    return probe.draw
