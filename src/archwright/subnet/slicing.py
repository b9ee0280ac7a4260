"""A sub-network inside its super-network: the same Parameters, computed only where they are kept."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from archwright.networks.pruned import Family, PrunedNetwork
from archwright.subnet.keep import Keep, LayerKeep, Part, count


class SlicedLinear(nn.Linear):
    """A linear of which only some rows (outputs) and columns (inputs) take part."""

    rows: int | torch.Tensor | None
    cols: int | torch.Tensor | None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = None if self.bias is None else narrowed(self.bias, 0, self.rows)
        return nn.functional.linear(x, narrowed(narrowed(self.weight, 0, self.rows), 1, self.cols), bias)


class FrozenSlice(nn.Linear):
    """The same without gradients: what was picked is copied once, not for every batch."""

    picked: tuple[torch.Tensor, torch.Tensor | None]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, *self.picked)


def narrowed(tensor: torch.Tensor, dim: int, part: int | torch.Tensor | None) -> torch.Tensor:
    if part is None:
        return tensor
    return tensor.narrow(dim, 0, part) if isinstance(part, int) else tensor.index_select(dim, part)


def head_features(heads: Part, head_size: int) -> Part:
    """The rows of q, k, v that belong to these heads."""
    if isinstance(heads, int):
        return heads * head_size
    return tuple(head * head_size + i for head in heads for i in range(head_size))


def as_index(part: Part, full: int, device: torch.device) -> int | torch.Tensor | None:
    if part == full:
        return None
    return part if isinstance(part, int) else torch.tensor(part, device=device)


@contextmanager
def subnetwork(model: PrunedNetwork, keep: Keep) -> Iterator[PrunedNetwork]:
    """The model computes only what `keep` names; gradients reach the super-network's own Parameters."""
    family = model.config.family
    with ExitStack() as undo:
        for layer, part in kept_layers(model, keep, undo):
            slice_attention(layer, family, part, undo)
            slice_ffn(layer, family, part, undo)
        yield model


def kept_layers(model: PrunedNetwork, keep: Keep, undo: ExitStack) -> list[tuple[nn.Module, LayerKeep]]:
    """Take the layers that are gone out of the model and return the others, each with what it keeps."""
    claim(model, undo)
    path = model.config.family.layers
    layers = model.backbone.get_submodule(path)
    left = [(layer, part) for layer, part in zip(layers, keep, strict=True) if count(part.heads) or count(part.units)]
    if len(left) < len(keep):
        swap(model.backbone, path, nn.ModuleList([layer for layer, _ in left]), undo)
    return left


def claim(model: PrunedNetwork, undo: ExitStack) -> None:
    """One sub-network at a time: a second one would silently be cut out of the first."""
    if "claimed" in model.__dict__:
        raise RuntimeError("a sub-network of this model is already active; leave its `with` block first.")
    model.__dict__["claimed"] = True
    undo.callback(model.__dict__.pop, "claimed")


def slice_attention(layer: nn.Module, family: Family, part: LayerKeep, undo: ExitStack) -> None:
    if not count(part.heads):
        for path, module in family.without_attention.items():
            swap(layer, path, module(), undo)
        return
    mix = layer.get_submodule(family.mix)
    inner = head_features(part.heads, head_size_of(layer))
    chosen = as_index(inner, mix.in_features, mix.weight.device)
    for path in (family.query, family.key, family.value):
        slice_linear(layer.get_submodule(path), chosen, None, undo)
    slice_linear(mix, None, chosen, undo)


def slice_ffn(layer: nn.Module, family: Family, part: LayerKeep, undo: ExitStack) -> None:
    if not count(part.units):
        for path, module in family.without_ffn.items():
            swap(layer, path, module(), undo)
        return
    up, down = layer.get_submodule(family.up), layer.get_submodule(family.down)
    chosen = as_index(part.units, up.out_features, up.weight.device)
    slice_linear(up, chosen, None, undo)
    slice_linear(down, None, chosen, undo)


def head_size_of(layer: nn.Module) -> int:
    return next(m.attention_head_size for m in layer.modules() if hasattr(m, "attention_head_size"))


def slice_linear(
    linear: nn.Module, rows: int | torch.Tensor | None, cols: int | torch.Tensor | None, undo: ExitStack
) -> None:
    """Turn an ordinary linear into a sliced one until `undo`; nothing is copied and nothing is registered."""
    if rows is None and cols is None:
        return
    if torch.is_grad_enabled():
        vars(linear).update(rows=rows, cols=cols)
        linear.__class__ = SlicedLinear
        undo.callback(restore, linear, ("rows", "cols"))
    else:
        bias = None if linear.bias is None else narrowed(linear.bias, 0, rows)
        vars(linear).update(picked=(narrowed(narrowed(linear.weight, 0, rows), 1, cols), bias))
        linear.__class__ = FrozenSlice
        undo.callback(restore, linear, ("picked",))


def restore(linear: nn.Module, names: tuple[str, ...]) -> None:
    linear.__class__ = nn.Linear
    for name in names:
        del vars(linear)[name]


def swap(root: nn.Module, path: str, module: nn.Module, undo: ExitStack) -> None:
    """Put `module` at `path` until `undo`."""
    undo.callback(root.set_submodule, path, root.get_submodule(path))
    module.training = root.training  # of the stand-in only: layers that move keep their own mode
    root.set_submodule(path, module)
