"""Every proxy against the same number worked out by hand from the weights of a toy network."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from archwright.networks.roles import LayerSize
from archwright.probe import PASSES, Probe, record
from archwright.proxies import PROXIES, Proxy, Unscored
from archwright.proxies.scaling_law import law_score, law_terms
from tests.probe.toy import BATCH, COUNTS, HEADS, TIME, UNITS, WIDTH, Toy, toy, toy_batch
from tests.proxies.reference import (
    ATTENTION,
    FFN,
    LINEARS,
    Array,
    Reference,
    flows,
    hessian_products,
    input_gradient,
    reference,
)

SEED, NOISE_SEED = 5, 3
Golden = Callable[[Reference], float | list[float]]


@pytest.fixture(scope="module")
def network() -> Toy:
    return toy(SEED)


@pytest.fixture(scope="module")
def probe(network: Toy) -> Probe:
    generator = torch.Generator().manual_seed(NOISE_SEED)
    return record(network, toy_batch(), counts=COUNTS, passes=tuple(PASSES), loss="electra", generator=generator)


@pytest.fixture(scope="module")
def ref(network: Toy) -> Reference:
    return reference(network, toy_batch())


def nuclear(matrix: Array) -> float:
    return float(np.sqrt(np.clip(np.linalg.eigvalsh(matrix.T @ matrix), 0, None)).sum())


def kl(correlation: Array) -> float:
    return -sum(math.log(x + 1e-5) + 1 / (x + 1e-5) for x in np.clip(np.linalg.eigvalsh(correlation), 0, None))


def log_terms(outer: Callable[[float], float]) -> Golden:
    def terms(r: Reference) -> list[float]:
        return [
            sum(x * outer(math.log(abs(y))) for x, y in zip(w.flat, g.flat, strict=True) if y != 0)
            for w, g in r.linears()
        ]

    return terms


def fisher(r: Reference) -> list[float]:
    found = []
    for place in range(2):
        a, g = r.seen["activation", place], r.seen_gradients["activation", place]
        units = [sum((a[n, :, u] * g[n, :, u]).sum() ** 2 for n in range(BATCH)) / BATCH / 2 for u in range(UNITS)]
        found.append(sum(units))
    return found


def distances(r: Reference) -> list[float]:
    on = [(r.seen["activation", place] > 0).reshape(BATCH, -1) for place in range(2)]
    return [sum(int((a != b).sum()) for a, b in combinations(codes, 2)) for codes in on]


def agreement_of_tokens(r: Reference) -> list[float]:
    on = [r.seen["activation", place][0] > 0 for place in range(2)]
    return [sum(int((a == b).sum()) for a in codes for b in codes) for codes in on]


def nwot(r: Reference) -> float:
    on = np.concatenate([(r.seen["activation", place] > 0).reshape(BATCH, -1) for place in range(2)], axis=1)
    return math.log(np.linalg.det(np.array([[(a == b).sum() for b in on] for a in on], dtype=float)))


def heads_of(tensor: Array) -> list[Array]:
    part = WIDTH // HEADS
    return [tensor[..., head * part : (head + 1) * part] for head in range(HEADS)]


def confidence(r: Reference) -> list[float]:
    contexts = [head for place in range(2) for head in heads_of(r.seen["context", place])]
    return [float(np.mean([abs(head[n, t].max()) for n in range(BATCH) for t in range(TIME)])) for head in contexts]


def confidence_published(r: Reference) -> list[float]:
    made = [r.seen[name, place] for place in range(2) for name in ("query", "key", "value")]
    return [float(np.mean([x[n, :, d].max() for n in range(BATCH) for d in range(WIDTH)])) for x in made]


def softmax_peaks(r: Reference) -> list[list[float]]:
    tables = [r.seen["softmax", place] for place in range(2)]
    return [[float(np.mean([row.max() for n in t[:, h] for row in n])) for h in range(HEADS)] for t in tables]


def importance(r: Reference) -> list[float]:
    found = []
    for place in range(2):
        pairs = zip(heads_of(r.seen["context", place]), heads_of(r.seen_gradients["context", place]), strict=True)
        found += [sum(abs(float((a[n] * g[n]).sum())) for n in range(BATCH)) for a, g in pairs]
    return found


def importance_gradient(r: Reference) -> list[float]:
    return [float(abs(g).sum()) for place in range(2) for g in heads_of(r.seen_gradients["context", place])]


def diversity(r: Reference) -> list[float]:
    return [nuclear(g) * nuclear(w) for w, g in r.linears(ATTENTION)]


def ffn_saliency(r: Reference) -> list[float]:
    return [float(abs(w * g).sum()) for w, g in r.linears(FFN)]


def v_pca(r: Reference) -> list[float]:
    """By scikit-learn, whose rule is the smallest number that explains more than the share."""
    tokens = [r.seen["up", place].reshape(-1, UNITS) for place in range(2)]
    return [PCA(n_components=0.99, svd_solver="full").fit(x).n_components_ for x in tokens]


def reciprocals(r: Reference) -> list[float]:
    names = ("query", "key", "value")
    return [float(np.mean([np.mean((1 / (r.seen[n, place] + 1e-9)) ** 2) for n in names])) for place in range(2)]


def across_layers(r: Reference) -> list[float]:
    norms = np.array([math.sqrt((r.seen["activation", place] ** 2).sum()) for place in range(2)])
    shares = np.exp(norms - norms.max()) / np.exp(norms - norms.max()).sum()
    return [first + math.log(share) for first, share in zip(reciprocals(r), shares, strict=True)]


def lpzero_gpt2(r: Reference) -> float:
    def one(w: Array, g: Array) -> float:
        columns = np.exp(g) / np.exp(g).sum(axis=0)
        return float(np.mean(abs(w**2)) + np.mean(columns**2))

    return float(np.mean([np.mean([one(*r.linear(place, name)) for name in LINEARS]) for place in range(2)]))


def eznas(r: Reference) -> list[float]:
    def one(g: Array) -> float:
        volume = np.linalg.det(np.sign(g) @ np.sign(g).T)
        return 0.0 if volume < 0.5 else 1 / (1 + 1 / volume)

    return [one(g) for _, g in r.linears()]


def units_correlation(state: Array) -> Array:
    return np.corrcoef(state.reshape(-1, WIDTH).T)


def entering(state: Array) -> Array:
    return np.concatenate([np.zeros((BATCH, 1, WIDTH)), state[:, :-1]], axis=1)


def jacobian_covariance(jacobian: Array) -> float:
    return kl(np.corrcoef(jacobian.reshape(BATCH, -1)))


def jacobian_cosine(jacobian: Array) -> float:
    unit = [row / np.linalg.norm(row) for row in jacobian.reshape(BATCH, -1)]
    pairs = [abs(float(a @ b)) ** (1 / 20) for i, a in enumerate(unit) for j, b in enumerate(unit) if i != j]
    return 1 - sum(pairs) / (BATCH**2 - BATCH)


SUMMED: dict[str, Callable[[Reference], list[float]]] = {
    "grad_norm": lambda r: [math.sqrt((g**2).sum()) for _, g in r.linears()],
    "snip": lambda r: [float(abs(w * g).sum()) for w, g in r.linears()],
    "plain": lambda r: [float((w * g).sum()) for w, g in r.linears()],
    "synflow_loss": lambda r: [float((w * g).sum()) for w, g in r.linears()],
    "logsynflow": log_terms(lambda x: x),
    "logsynflow_absolute": log_terms(abs),
    "fisher": fisher,
    "fisher_product": lambda r: [
        float((r.seen["activation", k] * r.seen_gradients["activation", k]).sum()) for k in range(2)
    ],
    "synaptic_saliency": lambda r: [float((r.weights[name] * g).sum()) for name, g in r.gradients.items()],
    "synaptic_saliency_published": ffn_saliency,
    "synaptic_diversity": diversity,
    "synaptic_diversity_norm": lambda r: [math.sqrt((g**2).sum()) * nuclear(w) for w, g in r.linears(ATTENTION)],
    "dss": lambda r: diversity(r) + ffn_saliency(r),
    "activation_distance": distances,
    "activation_distance_published": agreement_of_tokens,
    "hidden_saliency": lambda r: [
        float(abs(r.seen["output", k] * r.seen_gradients["output", k]).sum()) for k in range(2)
    ],
    "attention_confidence": confidence,
    "attention_confidence_published": confidence_published,
    "softmax_confidence": lambda r: [head for layer in softmax_peaks(r) for head in layer],
    "softmax_confidence_published": lambda r: [sum(layer) / HEADS for layer in softmax_peaks(r)],
    "head_importance": importance,
    "head_importance_gradient": importance_gradient,
    "head_importance_published": lambda r: [float(abs(w * g).sum()) for w, g in r.linears(ATTENTION)],
    "v_pca": v_pca,
    "lpzero_flexibert": reciprocals,
    "lpzero_flexibert_layers": across_layers,
    "eznas": eznas,
}

WHOLE: dict[str, Callable[[Reference], float]] = {
    "nwot": nwot,
    "jacobian_covariance": lambda r: jacobian_covariance(r.inputs),
    "jacobian_cosine": lambda r: jacobian_cosine(r.inputs),
    "hidden_covariance_1": lambda r: kl(units_correlation(r.seen["output", 0])),
    "hidden_covariance_2": lambda r: kl(units_correlation(r.seen["output", 1])),
    "hidden_covariance_entering_1": lambda r: kl(units_correlation(entering(r.seen["output", 0]))),
    "hidden_covariance_entering_2": lambda r: kl(units_correlation(entering(r.seen["output", 1]))),
    "hidden_covariance": lambda r: sum(kl(units_correlation(r.seen["output", k])) for k in range(2)) / 2,
    "hidden_covariance_inputs": lambda r: (
        sum(kl(np.corrcoef(r.seen["output", k].reshape(BATCH, -1))) for k in range(2)) / 2
    ),
    "w_pca": lambda r: 1000 * sum(v_pca(r)),
    "w_pca_nonembedding": lambda r: 700 * sum(v_pca(r)),
    "lpzero_gpt2": lpzero_gpt2,
}

COUNTED = {
    "parameters": 1000,
    "nonembedding": 700,
    "attention_parameters": 300,
    "ffn_parameters": 400,
    "flops": 5000,
    "depth": 2,
    "depth_width": 2_000_004,
    "reach": pytest.approx(5.411646 + 4.852030, abs=1e-6),  # log(2 x 112) + log(2 x 64): no FFN in the last layer
}


def close(value: float) -> Any:
    return pytest.approx(value, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("name", SUMMED)
def test_sums_over_modules_and_their_normalised_forms(name: str, probe: Probe, ref: Reference) -> None:
    terms = SUMMED[name](ref)
    assert PROXIES[name].measure(probe) == close(math.fsum(terms))
    assert PROXIES[f"{name}_normalised"].measure(probe) == close(math.fsum(terms) / len(terms))


@pytest.mark.parametrize("name", WHOLE)
def test_scores_of_the_whole_network(name: str, probe: Probe, ref: Reference) -> None:
    # k = 1e-5 turns a zero eigenvalue into 1e5, whose last digits are those of k plus rounding
    assert PROXIES[name].measure(probe) == pytest.approx(WHOLE[name](ref), rel=1e-6)


@pytest.mark.parametrize("name", COUNTED)
def test_counts(name: str, probe: Probe) -> None:
    assert PROXIES[name].measure(probe) == COUNTED[name]


def test_depth_comes_before_width() -> None:
    def score(depth: int, width: int) -> float:
        counts = replace(COUNTS, depth=depth, width=width)
        return PROXIES["depth_width"].measure(record(toy(), toy_batch(), counts=counts, passes=()))

    assert score(2, 128) < score(2, 256) < score(4, 128)


def test_the_toy_shows_both_ends_of_eznas(ref: Reference) -> None:
    assert 0 < sum(eznas(ref)) < len(eznas(ref))


def test_synflow(network: Toy, probe: Probe) -> None:
    found = flows(network, TIME)
    assert PROXIES["synflow"].measure(probe) == close(sum(float((w * g).sum()) for w, g in found.values()))
    logs = sum(float((w * np.log1p(g)).sum()) for w, g in found.values())
    assert PROXIES["logsynflow_freerea"].measure(probe) == close(logs)
    assert PROXIES["synflow_normalised"].measure(probe) == close(PROXIES["synflow"].measure(probe) / 12)
    assert PROXIES["logsynflow_freerea_normalised"].measure(probe) == close(logs / 12)


def test_grasp(network: Toy, probe: Probe, ref: Reference) -> None:
    products = hessian_products(network, toy_batch())
    expected = -sum(float((ref.weights[name] * product).sum()) for name, product in products.items())
    assert PROXIES["grasp"].measure(probe) == pytest.approx(expected, rel=1e-5)
    assert PROXIES["grasp_normalised"].measure(probe) == pytest.approx(expected / 12, rel=1e-5)


@pytest.fixture(scope="module")
def noisy(network: Toy, ref: Reference) -> dict[float, Array]:
    """Input gradients with noise; the generator gives the random baseline first, then a draw per level."""
    generator = torch.Generator().manual_seed(NOISE_SEED)
    torch.rand((), generator=generator, dtype=torch.float64)
    spread = ref.embeddings.var(axis=0, ddof=1)
    found = {}
    for level in (0.1, 10.0, 100.0):
        normal = torch.randn((BATCH, TIME, WIDTH), generator=generator, dtype=torch.float64).numpy()
        moved = torch.from_numpy(ref.embeddings + level * spread * normal)
        found[level] = input_gradient(network, toy_batch(), moved)
    return found


SCORES = {"": jacobian_covariance, "_cosine": jacobian_cosine}


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize(("size", "level"), [("small", 0.1), ("large", 10.0)])
def test_noise(kind: str, size: str, level: float, probe: Probe, ref: Reference, noisy: dict[float, Array]) -> None:
    expected = 1 - abs(SCORES[kind](ref.inputs) - SCORES[kind](noisy[level]))
    assert PROXIES[f"{size}_noise_jacobian{kind}"].measure(probe) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", SCORES)
def test_more_noised(kind: str, probe: Probe, ref: Reference, noisy: dict[float, Array]) -> None:
    expected = math.prod(SCORES[kind](found) for found in (ref.inputs, *noisy.values()))
    assert PROXIES[f"more_noised_jacobian{kind}"].measure(probe) == pytest.approx(expected, rel=1e-6)


def test_random(probe: Probe) -> None:
    generator = torch.Generator().manual_seed(NOISE_SEED)
    assert PROXIES["random"].measure(probe) == float(torch.rand((), generator=generator, dtype=torch.float64))


def test_the_scaling_law_by_hand() -> None:
    counts = replace(COUNTS, layers=(LayerSize(2, 100, 300), LayerSize(4, 200, 700)))
    probe = record(toy(), toy_batch(), counts=counts, passes=())
    assert PROXIES["scaling_law"].measure(probe) == pytest.approx(math.log(700))
    terms = law_terms(counts)
    evenness = (math.log(400) + math.log(900)) / 2 - math.log(650)
    assert terms["evenness"] == pytest.approx(evenness)
    assert terms["lateness"] == pytest.approx((0.5 * math.log(900) - 0.5 * math.log(400)) / 2)
    assert terms["heads"] == pytest.approx(math.log(8) / 2)
    assert terms["mixing"] == pytest.approx(math.log(300 / 1300))
    weights = {"evenness": 0.5, "depth": 0.25, "width": 0.125}
    expected = math.log(700) + 0.5 * evenness + 0.25 * math.log(2) + 0.125 * math.log(4)
    assert law_score(terms, weights) == pytest.approx(expected)
    with pytest.raises(Unscored, match="sizes of its layers"):
        PROXIES["scaling_law"].measure(record(toy(), toy_batch(), counts=replace(COUNTS, layers=()), passes=()))


BY_HAND_ELSEWHERE = {
    "scaling_law",
    "random",
    "synflow",
    "logsynflow_freerea",
    "grasp",
    "hidden_covariance_3",
    "hidden_covariance_entering_3",
    *(f"{size}_noise_jacobian{kind}" for size in ("small", "large") for kind in SCORES),
    *(f"more_noised_jacobian{kind}" for kind in SCORES),
}


def test_no_listed_proxy_is_without_a_golden_number() -> None:
    tested = {*SUMMED, *WHOLE, *COUNTED, *BY_HAND_ELSEWHERE}
    tested |= {f"{name}_normalised" for name in tested}
    untested: dict[str, Proxy] = {name: proxy for name, proxy in PROXIES.items() if name not in tested}
    assert {proxy.origin for proxy in untested.values()} <= {"discovered"}  # formulas have numbers of their own
