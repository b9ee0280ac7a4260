"""Which heads, units and layers matter, measured on data, and a super-network put into that order."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.slicing import head_owners, slice_layer, subnetwork
from archwright.subnet.spec import LayerSpec

SHALLOW = 6
"""Layers of a network whose layer order is found with all batches."""
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Logits and targets to a scalar."""
Scores = list[torch.Tensor]
"""One number for every head (or unit) of a layer, layer by layer; layers may have different numbers of them."""


@dataclass(frozen=True)
class ImportanceOrder:
    """Best first: heads and units of every layer, and the layers themselves."""

    heads: tuple[tuple[int, ...], ...]
    units: tuple[tuple[int, ...], ...]
    layers: tuple[int, ...]


def taylor_order(model: PrunedNetwork, batches: Iterable[Any], loss: Loss) -> ImportanceOrder:
    """Heads and units by |activation x gradient|, layers by the cost of their removal (Molchanov et al. 2017)."""
    batches = list(batches)
    heads, units = taylor_scores(model, batches, loss)
    return ImportanceOrder(
        heads=tuple(tuple(row.argsort(descending=True, stable=True).tolist()) for row in heads),
        units=tuple(tuple(row.argsort(descending=True, stable=True).tolist()) for row in units),
        layers=layer_order(model, batches, loss),
    )


def taylor_scores(model: PrunedNetwork, batches: Iterable[Any], loss: Loss) -> tuple[Scores, Scores]:
    """Of the heads and of the units of every layer: mean over texts of |sum over tokens of a x g|."""
    layers = model.placed_layers()
    mixes = [placed.layer.get_submodule(placed.parts.mix) if placed.heads else None for placed in layers]
    downs = [placed.layer.get_submodule(placed.parts.down) if placed.units else None for placed in layers]
    owners = {m: torch.arange(m.in_features, device=model.device) for m in downs if m is not None}
    for mix, placed in zip(mixes, layers, strict=True):
        if mix is not None:
            owners[mix] = torch.tensor(head_owners(model.config, placed.shape), device=model.device)
    totals = {m: m.weight.new_zeros(int(owner.max()) + 1) for m, owner in owners.items()}
    texts = 0
    with evaluating(model), torch.enable_grad():
        for batch in batches:
            texts += len(batch.targets)
            seen = record_inputs(model, list(owners), batch, loss)
            for module, (activation, gradient) in seen.items():
                # a text of several choices is several rows: texts x rows x tokens x features
                effect = (activation * gradient).unflatten(0, (len(batch.targets), -1)).sum((1, 2))
                part = effect.new_zeros(len(effect), len(totals[module])).index_add_(1, owners[module], effect)
                totals[module] += part.abs().sum(0)
    nothing = torch.zeros(0, device=model.device)
    heads, units = ([nothing if m is None else totals[m] / texts for m in part] for part in (mixes, downs))
    return heads, units


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; afterwards every module is in the mode it was in."""
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode


def record_inputs(
    model: PrunedNetwork, modules: list[nn.Module], batch: Any, loss: Loss
) -> dict[nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    """What went into each module and the gradient of the loss with respect to it; the weights get no gradient."""
    inputs: dict[nn.Module, torch.Tensor] = {}
    with ExitStack() as undo:
        for module in modules:
            hook = module.register_forward_pre_hook(lambda m, args: inputs.__setitem__(m, args[0]))
            undo.callback(hook.remove)
        value = loss(model(**batch.inputs).logits, batch.targets)
    gradients = torch.autograd.grad(value * len(batch.targets), list(inputs.values()))
    return {m: (x.detach(), g) for (m, x), g in zip(inputs.items(), gradients, strict=True)}


@torch.no_grad()
def layer_order(model: PrunedNetwork, batches: list[Any], loss: Loss) -> tuple[int, ...]:
    """Layers, the one to keep longest first: each time the layers go whose removal raises the loss least.

    One by one in networks of up to 11 layers; of deeper ones a sixth of what they have goes at a time, and as many
    fewer batches are looked at as the square of the depth is larger, so that the work stays the same.
    """
    full = [LayerSpec(*pair) for pair in model.config.layers]
    some = batches[: max(1, len(batches) * SHALLOW**2 // max(SHALLOW, len(full)) ** 2)]
    at_once = max(1, len(full) // SHALLOW)
    left = list(range(len(full)))
    removed: list[int] = []

    def loss_without(layers: list[int]) -> float:
        spec = tuple(LayerSpec(0, 0) if i in layers else layer for i, layer in enumerate(full))
        with subnetwork(model, spec):
            total = sum(float(loss(model(**b.inputs).logits, b.targets)) * len(b.targets) for b in some)
        return total / sum(len(b.targets) for b in some)

    while len(left) > 1:
        with evaluating(model):
            costs = {layer: loss_without([*removed, layer]) for layer in left}
        for layer in sorted(left, key=costs.__getitem__)[: min(at_once, len(left) - 1)]:
            removed.append(layer)
            left.remove(layer)
    return (*left, *reversed(removed))


@torch.no_grad()
def reorder(model: PrunedNetwork, order: ImportanceOrder) -> None:
    """Put the best heads and units first, in place; the network computes the same up to the order of summation."""
    for placed, heads, units in zip(model.placed_layers(), order.heads, order.units, strict=True):
        cut = slice_layer(model.config, placed, LayerSpec(heads, units))
        for path, features in cut.outputs.items():
            if not isinstance(features, int):  # a number: all of them, in the order they have
                linear = placed.layer.get_submodule(path)
                for tensor in (t for t in (linear.weight, linear.bias) if t is not None):
                    tensor.copy_(tensor[torch.tensor(features)])
        for path, features in cut.inputs.items():
            if not isinstance(features, int):
                weight = placed.layer.get_submodule(path).weight
                weight.copy_(weight[:, torch.tensor(features)])
