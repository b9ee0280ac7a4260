"""Muon (Jordan 2024): the momentum of a matrix is made nearly orthogonal before it becomes the step."""

from collections.abc import Iterable

import torch

MOMENTUM, DECAY, ROUNDS = 0.95, 0.01, 5
POLYNOMIAL = (3.4445, -4.7750, 2.0315)
"""Of an odd polynomial that brings all singular values near 1 in a few rounds."""


class Muon:
    """Matrices of one shape are done together, which matters where they are as small as here."""

    def __init__(self, weights: Iterable[torch.nn.Parameter]):
        self.shapes: dict[tuple[int, ...], list[torch.nn.Parameter]] = {}
        for weight in weights:
            self.shapes.setdefault(tuple(weight.shape), []).append(weight)
        self.momenta = {shape: torch.zeros(len(group), *shape) for shape, group in self.shapes.items()}

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for (rows, columns), weights in self.shapes.items():
            gradient = torch.stack([weight.grad for weight in weights if weight.grad is not None])
            momentum = self.momenta[rows, columns].mul_(MOMENTUM).add_(gradient)
            directions = orthogonal(gradient + MOMENTUM * momentum)
            scale = rate * max(1.0, rows / columns) ** 0.5
            for weight, direction in zip(weights, directions, strict=True):
                weight.mul_(1 - rate * DECAY).add_(direction, alpha=-scale)


def orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """Batch x rows x columns with the same singular vectors, and singular values around 1."""
    tall = matrices.shape[1] > matrices.shape[2]
    found = matrices.mT if tall else matrices
    found = found / (found.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = POLYNOMIAL
    for _ in range(ROUNDS):
        square = found @ found.mT
        found = a * found + (b * square + c * square @ square) @ found
    return found.mT if tall else found
