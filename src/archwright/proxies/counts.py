"""Counts, which look at no network at all, and the random baseline."""

from archwright.networks.roles import Counts
from archwright.probe import Probe
from archwright.proxies.proxy import Unscored

WIDER_THAN_ANY = 1_000_000


def counts_of(probe: Probe) -> Counts:
    if probe.counts is None:
        raise Unscored("The architecture was not counted; give record its counts.")
    return probe.counts


def parameters(probe: Probe) -> int:
    return counts_of(probe).parameters


def nonembedding(probe: Probe) -> int:
    return counts_of(probe).nonembedding


def attention_parameters(probe: Probe) -> int:
    return counts_of(probe).attention


def ffn_parameters(probe: Probe) -> int:
    return counts_of(probe).ffn


def flops(probe: Probe) -> int:
    return counts_of(probe).flops


def depth(probe: Probe) -> int:
    return counts_of(probe).depth


def depth_width(probe: Probe) -> int:
    """Deeper first; of equally deep networks the wider."""
    counts = counts_of(probe)
    return counts.depth * WIDER_THAN_ANY + counts.width


def random(probe: Probe) -> float:
    if probe.draw is None:
        raise Unscored("There is no random number; give record a generator.")
    return probe.draw
