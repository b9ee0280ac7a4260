"""Eigenvalues of correlations, in double precision: between examples in the Jacobian (the gradient of the loss at the
input embeddings), and between units in the hidden states of a layer (training-free-nas Sections 3.1 and 3.5)."""

import torch

from archwright.probe import Probe, once_per_probe
from archwright.proxies.proxy import Unscored

SMALL = 1e-5
"""k of training-free-nas Section 3.5: keeps logarithm and reciprocal of an eigenvalue finite."""


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


@once_per_probe
def jacobian_covariance(probe: Probe) -> float:
    return covariance_score(probe.inputs)


@once_per_probe
def jacobian_cosine(probe: Probe) -> float:
    return cosine_score(probe.inputs)


def noise_change(probe: Probe, level: float) -> float:
    """1 - |score without noise - score at this level of noise|."""
    return 1 - abs(jacobian_covariance(probe) - covariance_score(probe.noisy[level]))


def noise_change_cosine(probe: Probe, level: float) -> float:
    return 1 - abs(jacobian_cosine(probe) - cosine_score(probe.noisy[level]))


def noise_product(probe: Probe) -> float:
    """Product of the scores without noise and at all levels; covariance scores are negative, four give a plus."""
    score = jacobian_covariance(probe)
    for noisy in probe.noisy.values():
        score *= covariance_score(noisy)
    return score


def noise_product_cosine(probe: Probe) -> float:
    score = jacobian_cosine(probe)
    for noisy in probe.noisy.values():
        score *= cosine_score(noisy)
    return score


def hidden_states(probe: Probe) -> list[torch.Tensor]:
    """Hidden state after every layer, batch x time x width."""
    states = [layer.output.value for layer in probe.layers if layer.output is not None]
    if not states:
        raise Unscored("No hidden state of this network was recorded.")
    return states


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


def mean_unit_score(probe: Probe) -> float:
    """Mean over layers."""
    scores = [unit_score(probe, number + 1) for number in range(len(unit_scores(probe)))]
    return sum(scores) / len(scores)


def entering_unit_score(probe: Probe, number: int) -> float:
    """The same of the state that enters each step, zero at first, as the public RNN code has it."""
    states = hidden_states(probe)
    check_layer(len(states), number)
    state = states[number - 1]
    before = torch.cat([torch.zeros_like(state[:, :1]), state[:, :-1]], dim=1)
    return divergence_score(before.flatten(0, 1).mT)


def mean_example_score(probe: Probe) -> float:
    """Correlation between examples, as the paper's text has it; mean over layers."""
    states = hidden_states(probe)
    if len(states[0]) < 2:
        raise Unscored("A correlation between examples needs two; the batch has only one.")
    return sum(divergence_score(state.flatten(1)) for state in states) / len(states)
