"""One AdamW for everything: which parameters decay, and how fast each layer learns."""

from typing import Any

import torch
from torch import nn

from archwright.networks.precision import LOW
from archwright.training.chunked_adamw import ChunkedAdamW
from archwright.training.schedule import Schedule, rate

PACKED = "adamw-8bit"
"""The optimizer whose moments are held in 8 bit; the other one is adamw."""


def build_optimizer(
    model: nn.Module, schedule: Schedule, kind: str = "adamw", *, seed: int = 0
) -> torch.optim.Optimizer:
    """AdamW; every group knows its `factor`, the share of the learning rate that its depth gets.

    Weights of lower precision than float32 are updated in float32 and rounded at random; the seed is for that.
    """
    groups = parameter_groups(model, schedule.weight_decay, schedule.layer_decay)
    how: dict[str, Any] = {"lr": schedule.learning_rate, "betas": schedule.betas, "eps": schedule.eps}
    low = any(parameter.dtype in LOW for group in groups for parameter in group["params"])
    if low or kind == PACKED:
        return ChunkedAdamW(groups, **how, packed=kind == PACKED, seed=seed)
    return torch.optim.AdamW(groups, **how, fused=True)


def set_rates(optimizer: torch.optim.Optimizer, step: int, schedule: Schedule) -> float:
    """Gives every group the learning rate of this step; returns that of the head."""
    now = schedule.learning_rate * rate(step, schedule)
    for group in optimizer.param_groups:
        group["lr"] = now * group["factor"]
    return now


def parameter_groups(model: nn.Module, decay: float, layer_decay: float) -> list[dict[str, Any]]:
    """Parameters by factor of the learning rate; matrices are decayed, biases and norms are not."""
    factors = rate_factors(model, layer_decay)
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    return [
        {"params": parameters, "weight_decay": decay if matrices else 0.0, "factor": factor}
        for factor in sorted(set(factors.values()))
        for matrices in (True, False)
        if (parameters := [p for name, p in trained if factors[name] == factor and (p.dim() > 1) is matrices])
    ]


def rate_factors(model: nn.Module, layer_decay: float) -> dict[str, float]:
    """Share of the learning rate by name of parameter: decay ** (layers + 2 - depth), as ELECTRA's fine-tuning has it.

    Embeddings have depth 0, layers 1, 2, and so on; the head learns at the full rate. So the last layer is two steps
    below the head. What is registered before the layers feeds them, what follows reads them.
    """
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    if layer_decay == 1.0:
        return dict.fromkeys(names, 1.0)
    path, layers = find_layers(model)
    factors, behind = {}, False
    for name in names:
        inside = name.startswith(f"{path}.")
        behind = behind or inside
        depth = int(name[len(path) + 1 :].split(".")[0]) + 1 if inside else layers + 2 if behind else 0
        factors[name] = layer_decay ** (layers + 2 - depth)
    return factors


def find_layers(model: nn.Module) -> tuple[str, int]:
    """Where the network has its layers, and how many: the list of modules with the most parameters."""
    lists = {name: module for name, module in model.named_modules() if isinstance(module, nn.ModuleList)}
    if not lists:
        raise ValueError(f"layer_decay needs a network with a list of layers, {type(model).__name__} has none.")
    path = max(lists, key=lambda name: sum(p.numel() for p in lists[name].parameters()))
    return path, len(lists[path])
