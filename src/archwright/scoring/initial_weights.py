"""What is done to the initial weights of a space before a network is scored (--initial)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from archwright.registry import Registry

if TYPE_CHECKING:
    from torch import nn


def keep_weights(network: "nn.Module") -> None:
    """as networks of the space are trained"""


def scale_glorot(network: "nn.Module") -> None:
    """variance 2 / (inputs + outputs) in every linear"""
    import torch

    with torch.no_grad():  # so that the signal does not depend on the width
        for module in network.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.mul_((2 / sum(module.weight.shape)) ** 0.5 / module.weight.std())


INITIALS: Registry["Callable[[nn.Module], None]"] = Registry(
    "scale of initial weights", {"own": keep_weights, "glorot": scale_glorot}
)
"""First lines of docstrings are the help of --initial."""
