"""Least squares: weights that bring what a student computes to what its teacher does."""

import torch
from torch import nn
from torch.nn.functional import layer_norm

RIDGE = 1e-2
"""Of least squares, times the mean square of a feature: how firmly weights stay where the teacher's would be."""


def fit_linear(linear: nn.Linear, features: torch.Tensor, targets: torch.Tensor) -> None:
    """Ridge regression of the targets on the features, towards the weights that the linear has already."""
    missing = (targets - linear(features)).double()
    ones = torch.ones(len(features), 1, dtype=torch.float64, device=features.device)
    known = torch.cat([features.double(), ones], dim=1)
    gram = known.T @ known
    gram.diagonal().add_(RIDGE * gram.diagonal().mean())
    change = torch.linalg.solve(gram, known.T @ missing).T  # outputs x (inputs and one)
    linear.weight += change[:, :-1].to(linear.weight)
    linear.bias += change[:, -1].to(linear.bias)


def fit_norm(norm: nn.LayerNorm, inputs: torch.Tensor, targets: torch.Tensor) -> None:
    """Gain and bias of every coordinate by least squares; a coordinate that never moves gets its mean."""
    normed = layer_norm(inputs.double(), norm.normalized_shape, eps=norm.eps)
    wanted = targets.double()
    centred = normed - normed.mean(0)
    gain = (centred * wanted).mean(0) / (centred.square().mean(0) + 1e-9)
    norm.weight.copy_(gain)
    norm.bias.copy_(wanted.mean(0) - gain * normed.mean(0))


def explained_variance(states: torch.Tensor, targets: torch.Tensor) -> float:
    spread = (targets - targets.mean(0)).square().sum()
    return float(1 - (states - targets).square().sum() / spread)
