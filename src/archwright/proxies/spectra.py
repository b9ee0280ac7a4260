"""Eigenvalues, and the scores that are made of them; in double precision."""

import torch

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
    found = eigenvalues(standard.mT @ standard)
    return torch.cat([found, found.new_zeros(many - few)])


def divergence_score(spectrum: torch.Tensor, small: float = SMALL) -> float:
    """-sum(log(l + k) + 1 / (l + k)): highest when nothing is correlated (Mellor et al. 2021b)."""
    shifted = spectrum + small
    return -float((shifted.log() + 1 / shifted).sum())
