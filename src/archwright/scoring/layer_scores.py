"""A score by layer: what each layer contributes, for proxies that add up over layers.

Nothing has to be declared: a proxy is asked about each layer as if it were the only one, with the counts of the whole
network (W-PCA multiplies by them), and about everything outside of the layers' linears. Where these numbers add up to
the score, or their mean is the score, they are its parts; where not, the proxy has none, and the document says so.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from archwright.probe import Probe
from archwright.proxies import Proxy, Unscored, passes_of, roles_of
from archwright.proxies.proxy import average, total
from archwright.scoring.request import ScoreRequest, record_network

CLOSE = 1e-6
"""By how much a sum of parts may differ from the score, as a share of their magnitudes."""
NO_PARTS = "{name} is no sum over layers: it says something about the network as a whole."


def score_layers(request: ScoreRequest) -> dict[str, dict[str, Any]]:
    """For each proxy: `score`, `layers` (their contributions in order, or None with a `note`), and the `rest`."""
    proxies = request.proxies
    probe = record_network(request, passes_of(proxies.values()), roles_of(proxies.values()))
    return {name: split_score(proxy, probe) for name, proxy in proxies.items()}


def split_score(proxy: Proxy, probe: Probe) -> dict[str, Any]:
    try:
        score = proxy.measure(probe)
    except Unscored as reason:
        return {"score": None, "layers": None, "rest": None, "note": str(reason)}
    parts = find_parts(proxy, probe, score)
    if parts is None:
        return {"score": score, "layers": None, "rest": None, "note": NO_PARTS.format(name=proxy.name)}
    layers, rest = parts
    return {"score": score, "layers": layers, "rest": rest, "note": ""}


def find_parts(proxy: Proxy, probe: Probe, score: float) -> tuple[list[float], float] | None:
    """Contributions of the layers and of the rest; None where they do not add up to the score."""
    if not probe.layers or not proxy.passes:
        return None
    inside = {id(weight) for weight in probe.linears}
    outside = tuple(weight for weight in probe.parameters if id(weight) not in inside)
    alone = [replace(probe, layers=(layer,), parameters=layer.linears, memo={}) for layer in probe.layers]
    others = replace(probe, layers=(), parameters=outside, memo={})
    try:
        if proxy.join is average:  # layers with more terms count for more
            count = len(proxy.terms(probe))
            layers = [total(terms_or_none(proxy, each)) / count for each in alone]
            return (layers, 0.0) if adds_up(layers, score) else None
        layers = [zero_if_unscored(lambda each=each: proxy.measure(each)) for each in alone]  # type: ignore[misc]
        if adds_up(layers, score):
            return layers, 0.0
        rest = zero_if_unscored(lambda: proxy.measure(others))
        if adds_up([*layers, rest], score):
            return layers, rest
        shares = [value / len(layers) for value in layers]
        is_mean = adds_up(shares, score) and any(value != score for value in layers)
        return (shares, 0.0) if is_mean else None
    except Exception:  # a proxy of the user's that reads a certain layer, say: it has no parts
        return None


def terms_or_none(proxy: Proxy, probe: Probe) -> Any:
    try:
        return proxy.terms(probe)
    except Unscored:
        return ()


def zero_if_unscored(measure: Callable[[], float]) -> float:
    """A layer without what the proxy looks at contributes nothing."""
    try:
        return measure()
    except Unscored:
        return 0.0


def adds_up(parts: list[float], score: float) -> bool:
    return abs(total(parts) - score) <= CLOSE * max(abs(score), total(map(abs, parts)))
