"""How differently a network treats examples: which units are on (Mellor et al. 2021a), and eigenvalues of correlations,
in double precision: between examples in the Jacobian (the gradient of the loss at the input embeddings), and between
units in the hidden states of a layer (training-free-nas Sections 3.1 and 3.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from archwright.proxies.lazy_torch import torch
from archwright.proxies.proxy import (
    FORWARD,
    INPUTS,
    LOSS,
    LPZERO,
    MELLOR,
    NOISE,
    SERIANNI,
    Unscored,
    once_per_probe,
    proxy,
    require,
    total,
)

if TYPE_CHECKING:
    from archwright.probe import Probe

CELOTTI = f"Celotti et al. 2020; {SERIANNI}, Section 3.1"
SMALL = 1e-5
"""k of training-free-nas Section 3.5: keeps logarithm and reciprocal of an eigenvalue finite."""


def activations(probe: Probe) -> list[torch.Tensor]:
    values = (signal.value for layer in probe.layers for signal in layer.activations)
    return require(values, "No layer of this network has an activation function.")


def agreement(on: torch.Tensor) -> torch.Tensor:
    """In how many units every two of the rows (x units) agree: both on, or both off. ReLU, GELU, tanh and leaky ReLU
    are above zero where their input is."""
    code = on.float()
    return (code @ code.mT + (1 - code) @ (1 - code).mT).double()


@once_per_probe
def agreements(probe: Probe) -> list[tuple[torch.Tensor, int]]:
    """Between examples, all tokens side by side, and the number of units; one per activation function."""
    codes = [(value > 0).flatten(1) for value in activations(probe)]
    return [(agreement(code), code.shape[1]) for code in codes]


@proxy(
    "Hamming distance of which units are on, over pairs of examples", f"{MELLOR}a; {SERIANNI}, Section 3.3", FORWARD,
    roles=("activations",), join=total,
)  # fmt: skip
def activation_distance(probe: Probe) -> list[float]:
    return [float((units - kernel).sum()) / 2 for kernel, units in agreements(probe)]


@proxy(
    "agreement of which units are on, over pairs of tokens of the first example", f"{SERIANNI}, public code", FORWARD,
    roles=("activations",), join=total,
)  # fmt: skip
def activation_distance_published(probe: Probe) -> list[float]:
    """Its sign is that of the published column: more alike is higher."""
    return [float(agreement(value[0] > 0).sum()) for value in activations(probe)]


@proxy("|h dL/dh| over hidden states", f"{SERIANNI}, public code", LOSS, roles=("output",), join=total)
def hidden_saliency(probe: Probe) -> list[float]:
    """Not defined in the paper."""
    outputs = (layer.output for layer in probe.layers if layer.output is not None)
    signals: list[Any] = require(
        (signal for signal in outputs if signal.gradient is not None),
        "No hidden state of this network has a gradient of the loss.",
    )
    return [float((s.value * s.gradient).abs_().sum()) for s in signals]


def eigenvalues(symmetric: torch.Tensor) -> torch.Tensor:
    """Of a positive semi-definite matrix, descending; what rounding made negative is zero."""
    if not bool(symmetric.isfinite().all()):
        raise Unscored("A matrix whose eigenvalues are needed is not finite.")
    return torch.linalg.eigvalsh(symmetric.double()).clamp_min(0).flip(0)


def correlation_spectrum(rows: torch.Tensor) -> torch.Tensor:
    """Eigenvalues of the correlation between rows, by the smaller of the two Gram matrices."""
    rows = rows.double()
    centred = rows - rows.mean(dim=1, keepdim=True)
    lengths = torch.linalg.vector_norm(centred, dim=1, keepdim=True)
    if not bool((lengths > 0).all()):
        raise Unscored("A correlation is undefined: one of its variables is constant.")
    standard = centred / lengths
    few, many = sorted(standard.shape)
    if len(standard) == few:
        return eigenvalues(standard @ standard.mT)
    spectrum = eigenvalues(standard.mT @ standard)
    return torch.cat([spectrum, spectrum.new_zeros(many - few)])


def divergence_score(rows: torch.Tensor) -> float:
    """-sum(log(l + k) + 1 / (l + k)), l the eigenvalues of the correlation between rows: highest when nothing is
    correlated (Mellor et al. 2021b)."""
    shifted = correlation_spectrum(rows) + SMALL
    return -float((shifted.log() + 1 / shifted).sum())


def jacobian_rows(jacobian: torch.Tensor | None) -> torch.Tensor:
    """examples x (time * width), in double precision."""
    if jacobian is None:
        raise Unscored("The loss does not depend on the input embeddings.")
    if len(jacobian) < 2:
        raise Unscored("Scores of the Jacobian compare examples; the batch has only one.")
    return jacobian.flatten(1).double()


def covariance_score(jacobian: torch.Tensor | None) -> float:
    """Divergence of the correlation between examples (Mellor et al. 2021b)."""
    return divergence_score(jacobian_rows(jacobian))


def cosine_score(jacobian: torch.Tensor | None) -> float:
    """1 - sum |Jn Jn^T - I|^(1/20) / (N^2 - N) (Celotti et al. 2020; training-free-nas Section 3.1)."""
    rows = jacobian_rows(jacobian)
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    if not bool((lengths > 0).all()):
        raise Unscored("The cosine is undefined: the gradient of an example is zero.")
    unit, n = rows / lengths, len(rows)
    off_diagonal = (unit @ unit.mT).fill_diagonal_(0.0)
    return 1 - float(off_diagonal.abs().pow(1 / 20).sum()) / (n * n - n)


def jacobian_score(probe: Probe, score: JacobianScore) -> float:
    """Without noise, computed once for all proxies that begin with it."""
    return probe.once(score, lambda probe: score(probe.inputs))


def noise_change(probe: Probe, score: JacobianScore, level: float) -> float:
    """1 - |score without noise - score at this level of noise|."""
    return 1 - abs(jacobian_score(probe, score) - score(probe.noisy[level]))


def noise_product(probe: Probe, score: JacobianScore) -> float:
    """Product of the scores without noise and at all levels; covariance scores are negative, four give a plus."""
    result = jacobian_score(probe, score)
    for noisy in probe.noisy.values():
        result *= score(noisy)
    return result


JacobianScore = Callable[["torch.Tensor | None"], float]

proxy(
    "-sum(log(l + k) + 1/(l + k)) of the correlation between examples' input gradients",
    f"{MELLOR}b; {SERIANNI}, Section 3.1", INPUTS, name="jacobian_covariance", arguments=(covariance_score,),
)(jacobian_score)  # fmt: skip
proxy(
    "1 - sum |J J^T - I|^(1/20) / (N^2 - N), J normalised", CELOTTI, INPUTS,
    name="jacobian_cosine", arguments=(cosine_score,),
)(jacobian_score)  # fmt: skip
for size, level in (("small", 0.1), ("large", 10.0)):
    proxy(
        f"1 - |s(e) - s(e + {level:g} noise)|", CELOTTI, NOISE,
        name=f"{size}_noise_jacobian", arguments=(covariance_score, level),
    )(noise_change)  # fmt: skip
    proxy(
        "the same of the cosine", CELOTTI, NOISE,
        name=f"{size}_noise_jacobian_cosine", arguments=(cosine_score, level),
    )(noise_change)  # fmt: skip
proxy(
    "s(e) times s at noise 0.1, 10 and 100", CELOTTI, NOISE, name="more_noised_jacobian", arguments=(covariance_score,)
)(noise_product)
proxy("the same of the cosine", CELOTTI, NOISE, name="more_noised_jacobian_cosine", arguments=(cosine_score,))(
    noise_product
)


def hidden_states(probe: Probe) -> list[torch.Tensor]:
    """Hidden state after every layer, batch x time x width."""
    states = (layer.output.value for layer in probe.layers if layer.output is not None)
    return require(states, "No hidden state of this network was recorded.")


@once_per_probe
def unit_scores(probe: Probe) -> list[float | Unscored]:
    """Divergence of the correlation between units over all tokens, of every layer; where a layer has none, why."""
    scores: list[float | Unscored] = []
    for state in hidden_states(probe):
        try:
            scores.append(divergence_score(state.flatten(0, 1).mT))
        except Unscored as reason:
            scores.append(reason)
    return scores


def unit_score(probe: Probe, number: int) -> float:
    """Of the layer of this number, counted from 1."""
    scores = unit_scores(probe)
    check_layer(len(scores), number)
    score = scores[number - 1]
    if isinstance(score, Unscored):
        raise score
    return score


def check_layer(layers: int, number: int) -> None:
    if layers < number:
        raise Unscored(f"There is no layer {number}; the network has {layers}.")


def entering_unit_score(probe: Probe, number: int) -> float:
    """The same of the state that enters each step, zero at first, as the public RNN code has it."""
    states = hidden_states(probe)
    check_layer(len(states), number)
    state = states[number - 1]
    before = torch.cat([torch.zeros_like(state[:, :1]), state[:, :-1]], dim=1)
    return divergence_score(before.flatten(0, 1).mT)


for number in (1, 2, 3):
    proxy(
        f"-sum(log(l + k) + 1/(l + k)) of the correlation between hidden units, layer {number}",
        f"{SERIANNI}, Section 3.5", FORWARD, roles=("output",),
        name=f"hidden_covariance_{number}", arguments=(number,),
    )(unit_score)  # fmt: skip
for number in (1, 2, 3):
    proxy(
        f"the same of the state that enters each step, layer {number}", f"{SERIANNI}, public code", FORWARD,
        roles=("output",), name=f"hidden_covariance_entering_{number}", arguments=(number,),
    )(entering_unit_score)  # fmt: skip


@proxy("log|K|, K the agreement of examples", f"{MELLOR}a; {LPZERO} Eq. 3", FORWARD, roles=("activations",))
def nwot(probe: Probe) -> float:
    kernel = torch.stack([kernel for kernel, _ in agreements(probe)]).sum(dim=0)
    return float(torch.linalg.slogdet(kernel).logabsdet)


@proxy("the same, mean over all layers", f"{SERIANNI}, Section 3.5", FORWARD, roles=("output",), origin="own")
def hidden_covariance(probe: Probe) -> float:
    scores = [unit_score(probe, number + 1) for number in range(len(unit_scores(probe)))]
    return sum(scores) / len(scores)


@proxy(
    "the same of the correlation between examples, mean over layers", f"{SERIANNI}, Section 3.5, its text", FORWARD,
    roles=("output",),
)  # fmt: skip
def hidden_covariance_inputs(probe: Probe) -> float:
    states = hidden_states(probe)
    if len(states[0]) < 2:
        raise Unscored("A correlation between examples needs two; the batch has only one.")
    return sum(divergence_score(state.flatten(1)) for state in states) / len(states)
