"""Counts, for which no network is run, and the random baseline."""

from typing import TYPE_CHECKING

from archwright.proxies.proxy import Unscored, proxy

if TYPE_CHECKING:
    from archwright.probe import Probe

WIDER_THAN_ANY = 1_000_000


def count(probe: "Probe", name: str) -> int:
    """The field of this name of the architecture's counts, such as its parameters."""
    if probe.counts is None:
        raise Unscored("The architecture was not counted; give record its counts.")
    number: int = getattr(probe.counts, name)
    return number


proxy("parameters, all", origin="count", name="parameters", arguments=("parameters",))(count)
proxy("parameters without embeddings", origin="count", name="nonembedding", arguments=("nonembedding",))(count)
proxy("parameters of attention", origin="count", name="attention_parameters", arguments=("attention",))(count)
proxy("parameters of FFNs", origin="count", name="ffn_parameters", arguments=("ffn",))(count)
proxy("FLOPs of a forward pass", origin="count", name="flops", arguments=("flops",))(count)
proxy("number of layers", origin="count", name="depth", arguments=("depth",))(count)


@proxy("number of layers, then width", origin="count")
def depth_width(probe: "Probe") -> int:
    """Deeper first; of equally deep networks the wider."""
    return count(probe, "depth") * WIDER_THAN_ANY + count(probe, "width")


@proxy("a random number, the baseline of baselines", origin="own")
def random(probe: "Probe") -> float:
    if probe.draw is None:
        raise Unscored("There is no random number; give record a generator.")
    return probe.draw
