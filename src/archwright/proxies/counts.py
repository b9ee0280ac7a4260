"""Counts, for which no network is run, and the random baseline."""

import math
from functools import partial
from typing import TYPE_CHECKING

from archwright.proxies.proxy import Unscored, proxy, require

if TYPE_CHECKING:
    from archwright.probe import Probe

WIDER_THAN_ANY = 1_000_000


def count(probe: "Probe", name: str) -> int:
    """The field of this name of the architecture's counts, such as its parameters."""
    if probe.counts is None:
        raise Unscored("The architecture was not counted; give record its counts.")
    number: int = getattr(probe.counts, name)
    return number


counted = partial(proxy, origin="count", closed_form=True)
counted("parameters, all", name="parameters", arguments=("parameters",))(count)
counted("parameters without embeddings", name="nonembedding", arguments=("nonembedding",))(count)
counted("parameters of attention", name="attention_parameters", arguments=("attention",))(count)
counted("parameters of FFNs", name="ffn_parameters", arguments=("ffn",))(count)
counted("FLOPs of a forward pass", name="flops", arguments=("flops",))(count)
counted("number of layers", name="depth", arguments=("depth",))(count)


@counted("number of layers, then width")
def depth_width(probe: "Probe") -> int:
    """Deeper first; of equally deep networks the wider."""
    return count(probe, "depth") * WIDER_THAN_ANY + count(probe, "width")


@proxy("log(heads x weights of the linears) over layers, of the last layer those of attention alone", origin="own")
def reach(probe: "Probe") -> float:
    """What can still be mixed between tokens: behind the last FFN no attention follows.

    It fits FlexiBERT as it was trained, and is no law: see docs/gallery.md. Layers without heads count nothing.
    """
    terms = []
    for layer in probe.layers:
        linears = layer.attention if layer is probe.layers[-1] else layer.linears
        weights = sum(linear.value.numel() for linear in linears)
        if layer.heads and weights:
            terms.append(math.log(layer.heads * weights))
    return math.fsum(require(terms, "No layer of this network has heads."))


@proxy("a random number, the baseline of baselines", origin="own")
def random(probe: "Probe") -> float:
    if probe.draw is None:
        raise Unscored("There is no random number; give record a generator.")
    return probe.draw
