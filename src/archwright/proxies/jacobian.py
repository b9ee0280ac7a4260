"""The Jacobian: gradient of the loss at the input embeddings, one row per example."""

import torch

from archwright.probe import Probe, shared
from archwright.proxies.proxy import Unscored
from archwright.proxies.spectra import correlation_spectrum, divergence_score

SMALL_NOISE, LARGE_NOISE = 0.1, 10.0


def rows(jacobian: torch.Tensor | None) -> torch.Tensor:
    """examples x (time * width), in double precision."""
    if jacobian is None:
        raise Unscored("The loss does not depend on the input embeddings.")
    if len(jacobian) < 2:
        raise Unscored("Scores of the Jacobian compare examples; the batch has only one.")
    return jacobian.flatten(1).double()


def covariance_score(jacobian: torch.Tensor | None) -> float:
    """-sum(log(l + k) + 1 / (l + k)), l the eigenvalues of the correlation between examples (Mellor et al. 2021b)."""
    return divergence_score(correlation_spectrum(rows(jacobian)))


def cosine_score(jacobian: torch.Tensor | None) -> float:
    """1 - sum |Jn Jn^T - I|^(1/20) / (N^2 - N) (Celotti et al. 2020; training-free-nas Section 3.1)."""
    found = rows(jacobian)
    lengths = torch.linalg.vector_norm(found, dim=1, keepdim=True)
    if not bool((lengths > 0).all()):
        raise Unscored("The cosine is undefined: the gradient of an example is zero.")
    unit, n = found / lengths, len(found)
    off_diagonal = (unit @ unit.mT).fill_diagonal_(0.0)
    return 1 - float(off_diagonal.abs().pow(1 / 20).sum()) / (n * n - n)


@shared
def jacobian_covariance(probe: Probe) -> float:
    return covariance_score(probe.inputs)


@shared
def jacobian_cosine(probe: Probe) -> float:
    return cosine_score(probe.inputs)


def small_noise_jacobian(probe: Probe) -> float:
    return 1 - abs(jacobian_covariance(probe) - covariance_score(probe.noisy[SMALL_NOISE]))


def small_noise_jacobian_cosine(probe: Probe) -> float:
    return 1 - abs(jacobian_cosine(probe) - cosine_score(probe.noisy[SMALL_NOISE]))


def large_noise_jacobian(probe: Probe) -> float:
    return 1 - abs(jacobian_covariance(probe) - covariance_score(probe.noisy[LARGE_NOISE]))


def large_noise_jacobian_cosine(probe: Probe) -> float:
    return 1 - abs(jacobian_cosine(probe) - cosine_score(probe.noisy[LARGE_NOISE]))


def more_noised_jacobian(probe: Probe) -> float:
    """Product of the scores without noise and at all levels; covariance scores are negative, four give a plus."""
    score = jacobian_covariance(probe)
    for noisy in probe.noisy.values():
        score *= covariance_score(noisy)
    return score


def more_noised_jacobian_cosine(probe: Probe) -> float:
    score = jacobian_cosine(probe)
    for noisy in probe.noisy.values():
        score *= cosine_score(noisy)
    return score
