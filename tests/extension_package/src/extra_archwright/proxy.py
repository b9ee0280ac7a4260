"""A proxy: how different the tokens of a text still are after the last layer."""

from archwright.probe import Probe
from archwright.proxies import Proxy, Unscored


def token_spread(probe: Probe) -> float:
    """1 - mean cosine between two tokens of a text; deep networks tend to make all tokens alike (Dong et al. 2021)."""
    output = probe.layers[-1].output
    if output is None:
        raise Unscored("the last layer has no output.")
    units = output.value / output.value.norm(dim=-1, keepdim=True)  # texts x tokens x width
    tokens = units.shape[1]
    cosines = (units @ units.mT).sum() - len(units) * tokens  # without each token with itself
    return 1.0 - float(cosines) / (len(units) * tokens * (tokens - 1))


TOKEN_SPREAD = Proxy(
    "token_spread",
    "how different tokens are after the last layer, 1 - mean cosine",
    token_spread,
    citation="Dong et al. 2021",
    passes=("forward",),
    roles=("output",),
)
