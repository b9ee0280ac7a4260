"""Scores by layer: parts that add up, for every proxy of the registry and for the user's own."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from archwright.networks.roles import Counts, LayerSize
from archwright.probe import Layer, Probe, Signal, Weight
from archwright.proxies import PROXIES, Proxy
from archwright.proxies.proxy import average, total
from archwright.scoring.layer_scores import split_score

WIDTH = 6


def signal(generator: torch.Generator, *shape: int) -> Signal:
    return Signal(torch.randn(*shape, generator=generator), torch.randn(*shape, generator=generator))


def make_layer(generator: torch.Generator, heads: int) -> Layer:
    weights = [Weight(*(torch.randn(WIDTH, WIDTH, generator=generator) for _ in range(4))) for _ in range(3)]
    hidden = [signal(generator, 3, 5, WIDTH) for _ in range(4)]
    return Layer(
        attention=tuple(weights[:2]),
        ffn=(weights[2],),
        recurrent=(),
        output=hidden[0],
        pre_activation=hidden[1],
        ffn_input=None,
        first=None,
        activations=(hidden[2],),
        projections=(hidden[3],),
        context=hidden[0],
        probabilities=Signal(torch.rand(3, heads, 5, 5, generator=generator).softmax(-1)),
        heads=heads,
    )


@pytest.fixture
def probe() -> Probe:
    """Three layers, one of them without an FFN, and an embedding outside of them."""
    generator = torch.Generator().manual_seed(0)
    first, second, third = (make_layer(generator, heads) for heads in (2, 3, 3))
    layers = (first, second, replace(third, pre_activation=None, activations=()))
    outside = Weight(*(torch.randn(9, WIDTH, generator=generator) for _ in range(2)))
    numbers: dict[str, Any] = dict.fromkeys(Counts.__dataclass_fields__, 7)
    numbers["layers"] = tuple(LayerSize(heads, mixing=40, ffn=30) for heads in (2, 3, 3))
    return Probe(
        passes=frozenset(("forward", "loss", "inputs", "noise", "synflow", "hessian")),
        failures={},
        counts=Counts(**numbers),
        layers=layers,
        parameters=(outside, *(weight for layer in layers for weight in layer.linears)),
        inputs=torch.randn(3, 5, WIDTH, generator=generator),
        noisy={level: torch.randn(3, 5, WIDTH, generator=generator) for level in (0.1, 10.0, 100.0)},
        draw=0.3,
    )


ADDITIVE = ("v_pca", "w_pca", "w_pca_nonembedding", "snip", "grad_norm", "plain", "synflow", "softmax_confidence")
WHOLE = ("parameters", "depth_width", "random", "nwot", "jacobian_covariance")


@pytest.mark.parametrize("name", [*ADDITIVE, "hidden_covariance_inputs", "attention_confidence_normalised"])
def test_parts_add_up(probe: Probe, name: str) -> None:
    parts = split_score(PROXIES[name], probe)
    assert parts["note"] == "" and len(parts["layers"]) == 3
    assert math.isclose(math.fsum(parts["layers"]) + parts["rest"], PROXIES[name].measure(probe), rel_tol=1e-6)


def test_w_pca_is_the_count_times_the_components_of_each_layer(probe: Probe) -> None:
    v_pca, w_pca = (split_score(PROXIES[name], probe)["layers"] for name in ("v_pca", "w_pca"))
    assert w_pca == [7 * components for components in v_pca]
    assert v_pca[:2] == [float(components) for components in PROXIES["v_pca"].terms(probe)] and v_pca[2] == 0.0


def test_what_is_outside_of_the_layers_is_a_part_of_its_own(probe: Probe) -> None:
    parts = split_score(PROXIES["synaptic_saliency"], probe)
    embedding = probe.parameters[0]
    assert embedding.gradient is not None
    assert parts["rest"] == pytest.approx(float((embedding.value * embedding.gradient).sum()), rel=1e-5)


@pytest.mark.parametrize("name", [name for name in WHOLE if name in PROXIES])
def test_what_does_not_add_up_says_so(probe: Probe, name: str) -> None:
    parts = split_score(PROXIES[name], probe)
    assert parts["layers"] is None and name in parts["note"] and parts["score"] is not None


def test_every_proxy_has_parts_that_add_up_or_a_reason(probe: Probe) -> None:
    for name, proxy in PROXIES.items():
        parts = split_score(proxy, probe)
        if parts["layers"] is None:
            assert parts["note"], name
        else:
            assert math.fsum(parts["layers"]) + parts["rest"] == pytest.approx(parts["score"], rel=1e-4, abs=1e-4), name


def of_layers(function: Any, join: Any = float) -> Proxy:
    return Proxy("own", "", function, passes=("forward",), join=join)


def test_proxies_of_users(probe: Probe) -> None:
    by_terms = of_layers(lambda probe: [1.0 for layer in probe.layers for _ in range(layer.heads)], average)
    assert split_score(by_terms, probe)["layers"] == [2 / 8, 3 / 8, 3 / 8]
    summed = of_layers(lambda probe: [float(layer.heads) for layer in probe.layers], total)
    assert split_score(summed, probe)["layers"] == [2.0, 3.0, 3.0]
    third = of_layers(lambda probe: float(probe.layers[2].heads))
    assert split_score(third, probe)["layers"] is None
    largest = of_layers(lambda probe: max(float(layer.heads) for layer in probe.layers))
    assert split_score(largest, probe)["layers"] is None
