"""Which heads, units and layers matter, measured on data, and a super-network put into that order."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.keep import Keep, LayerKeep
from archwright.subnet.slicing import head_features, head_size_of, subnetwork

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Logits and targets to a scalar."""


@dataclass(frozen=True)
class Order:
    """Best first: heads and units of every layer, and the layers themselves."""

    heads: tuple[tuple[int, ...], ...]
    units: tuple[tuple[int, ...], ...]
    layers: tuple[int, ...]


def taylor_order(model: PrunedNetwork, batches: Iterable[Any], loss: Loss) -> Order:
    """Heads and units by |activation x gradient|, layers by the cost of their removal (Molchanov et al. 2017)."""
    batches = list(batches)
    heads, units = taylor_scores(model, batches, loss)
    return Order(
        heads=tuple(tuple(row.argsort(descending=True, stable=True).tolist()) for row in heads),
        units=tuple(tuple(row.argsort(descending=True, stable=True).tolist()) for row in units),
        layers=layer_order(model, batches, loss),
    )


def taylor_scores(model: PrunedNetwork, batches: Iterable[Any], loss: Loss) -> tuple[torch.Tensor, torch.Tensor]:
    """Of every head (layers x heads) and unit (layers x units): mean over texts of |sum over tokens of a x g|."""
    family = model.config.family
    layers = list(model.backbone.get_submodule(family.layers))
    mixes = [layer.get_submodule(family.mix) for layer in layers]
    downs = [layer.get_submodule(family.down) for layer in layers]
    totals: dict[nn.Module, torch.Tensor] = {m: m.weight.new_zeros(m.in_features) for m in mixes + downs}
    sizes = {m: head_size_of(layer) for m, layer in zip(mixes, layers, strict=True)} | dict.fromkeys(downs, 1)
    texts = 0
    with evaluating(model), torch.enable_grad():
        for batch in batches:
            texts += len(batch.targets)
            seen = recorded_inputs(model, mixes + downs, batch, loss)
            for module, (activation, gradient) in seen.items():
                effect = (activation * gradient).sum(1)  # texts x features
                group = effect.unflatten(-1, (-1, sizes[module])).sum(-1).abs().sum(0)
                totals[module][: len(group)] += group
    heads = torch.stack([totals[m][: m.in_features // sizes[m]] for m in mixes])
    return heads / texts, torch.stack([totals[m] for m in downs]) / texts


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout, and afterwards in the mode of before."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def recorded_inputs(
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
    """Layers, the one to keep longest first: each time the layer goes whose removal raises the loss least."""
    full = [LayerKeep(*pair) for pair in model.config.layers]
    left = list(range(len(full)))
    removed: list[int] = []
    while len(left) > 1:
        with evaluating(model):
            costs = {layer: mean_loss(model, without(full, [*removed, layer]), batches, loss) for layer in left}
        removed.append(min(left, key=costs.__getitem__))
        left.remove(removed[-1])
    return (*left, *reversed(removed))


def without(full: list[LayerKeep], gone: list[int]) -> Keep:
    return tuple(LayerKeep(0, 0) if i in gone else layer for i, layer in enumerate(full))


def mean_loss(model: PrunedNetwork, keep: Keep, batches: list[Any], loss: Loss) -> float:
    with subnetwork(model, keep):
        total = sum(float(loss(model(**b.inputs).logits, b.targets)) * len(b.targets) for b in batches)
    return total / sum(len(b.targets) for b in batches)


@torch.no_grad()
def reorder(model: PrunedNetwork, order: Order) -> None:
    """Put the best heads and units first, in place; the network computes the same up to the order of summation."""
    family = model.config.family
    for layer, heads, units in zip(model.backbone.get_submodule(family.layers), order.heads, order.units, strict=True):
        inner = torch.tensor(head_features(heads, head_size_of(layer)))
        for path in (family.query, family.key, family.value):
            permute(layer.get_submodule(path), rows=inner)
        permute(layer.get_submodule(family.mix), cols=inner)
        permute(layer.get_submodule(family.up), rows=torch.tensor(units))
        permute(layer.get_submodule(family.down), cols=torch.tensor(units))


def permute(linear: nn.Module, *, rows: torch.Tensor | None = None, cols: torch.Tensor | None = None) -> None:
    if rows is not None:
        linear.weight.copy_(linear.weight[rows])
        linear.bias.copy_(linear.bias[rows])
    if cols is not None:
        linear.weight.copy_(linear.weight[:, cols])
