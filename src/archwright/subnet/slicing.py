"""A sub-network inside its super-network: the same Parameters, computed only where they are kept."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn

from archwright.networks.pruned import AttentionShape, Family, PrunedConfig, PrunedNetwork
from archwright.subnet.keep import Keep, LayerKeep, Part, count, positions, simplest


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


class Cut(NamedTuple):
    """What is kept of an attention: features of the queries (what is mixed), of keys and values, and the shape left."""

    queries: Part
    keys: Part
    shape: AttentionShape


def cut_heads(config: PrunedConfig, shape: AttentionShape, heads: Part) -> Cut:
    """The features of these removable heads in a layer of this shape."""
    rule, chosen = config.heads_go_by, positions(heads)
    queries, keys = (simplest(find(shape, chosen)) for find in (rule.query_heads, rule.key_heads))
    return Cut(head_features(queries, shape.size), head_features(keys, shape.size), rule.left(shape, len(chosen)))


def head_features(heads: Part, head_size: int) -> Part:
    """The features that belong to these heads."""
    if isinstance(heads, int):
        return heads * head_size
    return tuple(head * head_size + i for head in heads for i in range(head_size))


def head_owners(config: PrunedConfig, heads: int) -> list[int]:
    """For every query feature of a layer with so many removable heads: the one it belongs to."""
    shape = config.attention(heads)
    owners = [0] * shape.inner
    for head in range(heads):
        for feature in positions(cut_heads(config, shape, (head,)).queries):
            owners[feature] = head
    return owners


def as_index(part: Part, full: int, device: torch.device) -> int | torch.Tensor | None:
    if part == full:
        return None
    return part if isinstance(part, int) else torch.tensor(part, device=device)


@contextmanager
def subnetwork(model: PrunedNetwork, keep: Keep) -> Iterator[PrunedNetwork]:
    """The model computes only what `keep` names; gradients reach the super-network's own Parameters."""
    config = model.config
    with ExitStack() as undo:
        for layer, part, shape in kept_layers(model, keep, undo):
            if count(part.heads):
                slice_attention(layer, config.family, cut_heads(config, shape, part.heads), undo)
            if count(part.units):
                slice_ffn(layer, config.family, part.units, undo)
            leave_out(layer, config.family, part, undo)
        yield model


def kept_layers(model: PrunedNetwork, keep: Keep, undo: ExitStack) -> list[tuple[nn.Module, LayerKeep, AttentionShape]]:
    """Take the layers that are gone out of the model and return the others, with what each keeps and of what."""
    claim(model, undo)
    config, path = model.config, model.config.family.layers
    shapes = [config.attention(heads) for heads, _ in config.layers]
    rows = list(zip(model.backbone.get_submodule(path), keep, shapes, strict=True))
    left = [(layer, part, shape) for layer, part, shape in rows if count(part.heads) or count(part.units)]
    if len(left) < len(keep):
        swap(model.backbone, path, nn.ModuleList([layer for layer, _, _ in left]), undo)
    if config.family.causal:
        renumber(model, keep, left, undo)
    return left


def renumber(
    model: PrunedNetwork, keep: Keep, left: list[tuple[nn.Module, LayerKeep, AttentionShape]], undo: ExitStack
) -> None:
    """Tell a decoder which layers it has now: masks go by a layer's place, a cache by its place among attentions."""
    config = model.config
    staying = [i for i, part in enumerate(keep) if count(part.heads) or count(part.units)]
    note(config, "places", [config.places[i] for i in staying], undo)
    note(config, "layers", [[count(keep[i].heads), count(keep[i].units)] for i in staying], undo)
    types = getattr(model.backbone.config, "layer_types", None)
    if types:
        note(model.backbone.config, "layer_types", [types[i] for i in staying], undo)
    attending = [layer for layer, part, _ in left if count(part.heads)]
    for slot, layer in enumerate(attending):
        note(layer.get_submodule(config.family.attention), "layer_idx", slot, undo)


def note(owner: Any, name: str, value: Any, undo: ExitStack) -> None:
    """Set an attribute until `undo`."""
    undo.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)


def claim(model: PrunedNetwork, undo: ExitStack) -> None:
    """One sub-network at a time: a second one would silently be cut out of the first."""
    if "claimed" in model.__dict__:
        raise RuntimeError("a sub-network of this model is already active; leave its `with` block first.")
    model.__dict__["claimed"] = True
    undo.callback(model.__dict__.pop, "claimed")


def leave_out(layer: nn.Module, family: Family, part: LayerKeep, undo: ExitStack) -> None:
    """Put stand-ins where nothing of a sub-layer is left."""
    for path, module in family.without_attention.items() if not count(part.heads) else ():
        swap(layer, path, module(), undo)
    for path, module in family.without_ffn.items() if not count(part.units) else ():
        swap(layer, path, module(), undo)


def slice_attention(layer: nn.Module, family: Family, cut: Cut, undo: ExitStack) -> None:
    slice_outputs(layer, (family.query,), cut.queries, undo)
    slice_outputs(layer, (family.key, family.value), cut.keys, undo)
    slice_inputs(layer, family.mix, cut.queries, undo)
    for path, number in family.follows.items():
        owner, _, name = path.rpartition(".")
        note(layer.get_submodule(owner), name, number(cut.shape), undo)


def slice_ffn(layer: nn.Module, family: Family, units: Part, undo: ExitStack) -> None:
    slice_outputs(layer, tuple(filter(None, (family.up, family.gate))), units, undo)
    slice_inputs(layer, family.down, units, undo)


def slice_outputs(layer: nn.Module, paths: tuple[str, ...], part: Part, undo: ExitStack) -> None:
    for path in paths:
        linear = layer.get_submodule(path)
        slice_linear(linear, as_index(part, linear.out_features, linear.weight.device), None, undo)


def slice_inputs(layer: nn.Module, path: str, part: Part, undo: ExitStack) -> None:
    linear = layer.get_submodule(path)
    slice_linear(linear, None, as_index(part, linear.in_features, linear.weight.device), undo)


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
