"""A few numbers that tell one set of weights from another."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file


def digest_file(path: Path) -> dict[str, list[float]]:
    """Mean and mean size of every tensor, by name."""
    tensors = {name: tensor.double() for name, tensor in sorted(load_file(path).items())}
    return {name: describe(tensor) for name, tensor in tensors.items()}


def describe(tensor: torch.Tensor) -> list[float]:
    """The mean is given as a share of the mean size, moved by 1: a tolerance for it then means something."""
    size = float(tensor.abs().mean())
    return [1.0 + (float(tensor.mean()) / size if size else 0.0), size]


def digest_folder(folder: Path) -> dict[str, Any]:
    """Per file of weights: number of tensors and of values, mean size and mean square of the values."""
    found = {}
    for path in sorted(folder.rglob("*.safetensors")):
        values = torch.cat([tensor.double().flatten() for _, tensor in sorted(load_file(path).items())])
        numbers = {"values": len(values), "size": float(values.abs().mean()), "square": float(values.square().mean())}
        found[str(path.relative_to(folder))] = {"tensors": len(load_file(path)), **numbers}
    return found
