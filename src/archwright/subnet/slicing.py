"""A sub-network inside its super-network: the same Parameters, computed only where they are kept.

`masked_subnetwork` at the end is the papers' way, the whole network with zeros: slower, kept as the yardstick.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn

from archwright.networks.families.family import AttentionShape
from archwright.networks.pruned import PlacedLayer, PrunedConfig, PrunedNetwork, find_path
from archwright.subnet.spec import LayerSpec, Part, SubnetSpec, as_part, count, positions


class SlicedLinear(nn.Linear):
    """A linear of which only some rows (outputs) and columns (inputs) take part."""

    rows: int | torch.Tensor | None
    cols: int | torch.Tensor | None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = None if self.bias is None else select(self.bias, 0, self.rows)
        return nn.functional.linear(x, select(select(self.weight, 0, self.rows), 1, self.cols), bias)


class FrozenSlice(nn.Linear):
    """The same without gradients: what was picked is copied once, not for every batch."""

    picked: tuple[torch.Tensor, torch.Tensor | None]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, *self.picked)


def select(tensor: torch.Tensor, dim: int, part: int | torch.Tensor | None) -> torch.Tensor:
    if part is None:
        return tensor
    return tensor.narrow(dim, 0, part) if isinstance(part, int) else tensor.index_select(dim, part)


class AttentionSlice(NamedTuple):
    """What is kept of an attention: features of the queries (what is mixed), of keys and values, and the shape left."""

    queries: Part
    keys: Part
    shape: AttentionShape


def attention_slice(config: PrunedConfig, shape: AttentionShape, heads: Part) -> AttentionSlice:
    """The features of these removable heads in a layer of this shape."""
    rule, chosen = config.heads_go_by, positions(heads)

    def features(heads: Part) -> Part:
        if isinstance(heads, int):
            return heads * shape.size
        return tuple(head * shape.size + i for head in heads for i in range(shape.size))

    queries, keys = (features(as_part(find(shape, chosen))) for find in (rule.query_heads, rule.key_heads))
    return AttentionSlice(queries, keys, rule.with_units(shape, len(chosen)))


def head_owners(config: PrunedConfig, shape: AttentionShape) -> list[int]:
    """For every query feature of a layer of this shape: the removable head it belongs to."""
    owners = [0] * shape.inner
    for head in range(config.heads_go_by.units(shape)):
        for feature in positions(attention_slice(config, shape, (head,)).queries):
            owners[feature] = head
    return owners


class LayerSlice(NamedTuple):
    """What the linears of a layer keep, by path: features they write and features they read."""

    outputs: dict[str, Part]
    inputs: dict[str, Part]
    shape: AttentionShape | None
    """Of the attention that is left."""


def slice_layer(config: PrunedConfig, placed: PlacedLayer, part: LayerSpec) -> LayerSlice:
    """The linears that write and read these heads and units; those of a sub-layer with nothing left are not in it."""
    parts, shape = placed.parts, None
    outputs: dict[str, Part] = {}
    inputs: dict[str, Part] = {}
    if count(part.heads):
        queries, keys, shape = attention_slice(config, placed.shape, part.heads)
        outputs |= dict.fromkeys(parts.query_writers, queries) | dict.fromkeys(parts.key_writers, keys)
        inputs[parts.mix] = queries
    if count(part.units):
        outputs |= dict.fromkeys(parts.unit_writers, part.units)
        inputs[parts.down] = part.units
    return LayerSlice(outputs, inputs, shape)


@contextmanager
def subnetwork(model: PrunedNetwork, spec: SubnetSpec) -> Iterator[PrunedNetwork]:
    """The model computes only what `spec` names; gradients reach the super-network's own Parameters."""
    with ExitStack() as undo:
        for placed, part in remove_layers(model, spec, undo):
            outputs, inputs, shape = slice_layer(model.config, placed, part)
            for path, features in outputs.items():
                slice_linear(placed.layer.get_submodule(path), undo, outputs=features)
            for path, features in inputs.items():
                slice_linear(placed.layer.get_submodule(path), undo, inputs=features)
            if shape is not None:
                for path, number in placed.parts.follows.items():
                    set_until(*find_path(placed.layer, path), number(shape), undo)
                if placed.parts.head_places:
                    owner, name = find_path(placed.layer, placed.parts.head_places)
                    set_until(owner, name, getattr(owner, name)[list(positions(part.heads))], undo)
            put_stand_ins(placed, part, undo)
        yield model


def remove_layers(model: PrunedNetwork, spec: SubnetSpec, undo: ExitStack) -> list[tuple[PlacedLayer, LayerSpec]]:
    """Take the layers that are gone out of the model and return the others, with what each keeps.

    A layer that is run at several places keeps the same at all of them, and is returned once.
    """
    claim(model, undo)
    family = model.config.family
    rows = zip(model.placed_layers(), spec, strict=True)
    left = [(placed, part) for placed, part in rows if any(map(count, part))]
    if len(left) < len(spec):
        swap(model.backbone, family.layers, nn.ModuleList([placed.layer for placed, _ in left]), undo)
    if family.causal:
        renumber(model, spec, left, undo)
    return left_once(left)


def left_once(left: list[tuple[PlacedLayer, LayerSpec]]) -> list[tuple[PlacedLayer, LayerSpec]]:
    """Every layer once, with what it keeps; an error where it should keep different things at different places."""
    parts: dict[nn.Module, tuple[PlacedLayer, LayerSpec]] = {}
    for placed, part in left:
        _, first = parts.setdefault(placed.layer, (placed, part))
        if part != first:
            raise ValueError(f"a shared layer keeps the same wherever it is run, got {first} and {part}.")
    return list(parts.values())


def renumber(
    model: PrunedNetwork, spec: SubnetSpec, left: list[tuple[PlacedLayer, LayerSpec]], undo: ExitStack
) -> None:
    """Tell a decoder which layers it has now: masks go by a layer's place, a cache by its place among attentions."""
    config = model.config
    staying = [i for i, part in enumerate(spec) if count(part.heads) or count(part.units)]
    set_until(config, "places", [config.places[i] for i in staying], undo)
    set_until(config, "layers", [[count(spec[i].heads), count(spec[i].units)] for i in staying], undo)
    types = getattr(model.backbone.config, "layer_types", None)
    if types:
        set_until(model.backbone.config, "layer_types", [types[i] for i in staying], undo)
    attending = [placed.layer for placed, part in left if count(part.heads)]
    for slot, layer in enumerate(attending):
        set_until(layer.get_submodule(config.family.attention), "layer_idx", slot, undo)


def set_until(owner: Any, name: str, value: Any, undo: ExitStack) -> None:
    """Set an attribute until `undo`."""
    undo.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)


def claim(model: PrunedNetwork, undo: ExitStack) -> None:
    """One sub-network at a time: a second one would silently be cut out of the first."""
    if "claimed" in model.__dict__:
        raise RuntimeError("a sub-network of this model is already active; leave its `with` block first.")
    model.__dict__["claimed"] = True
    undo.callback(model.__dict__.pop, "claimed")


def put_stand_ins(placed: PlacedLayer, part: LayerSpec, undo: ExitStack) -> None:
    """Put stand-ins where nothing of a sub-layer is left."""
    for path, module in placed.parts.without_attention.items() if not count(part.heads) else ():
        swap(placed.layer, path, module(), undo)
    for path, module in placed.parts.without_ffn.items() if not count(part.units) else ():
        swap(placed.layer, path, module(), undo)


def slice_linear(
    linear: nn.Module, undo: ExitStack, *, outputs: Part | None = None, inputs: Part | None = None
) -> None:
    """Turn an ordinary linear into a sliced one until `undo`; nothing is copied and nothing is registered.

    Of a linear with low-rank adapters of peft beside it, the adapters' linears are sliced too: the first one reads
    what it reads, the second one writes what it writes.
    """
    if hasattr(linear, "base_layer"):
        slice_linear(linear.base_layer, undo, outputs=outputs, inputs=inputs)
        for part in linear.lora_A.values():
            slice_linear(part, undo, inputs=inputs)
        for part in linear.lora_B.values():
            slice_linear(part, undo, outputs=outputs)
        return
    if type(linear) not in (nn.Linear, SlicedLinear, FrozenSlice):
        raise TypeError(f"only ordinary linears can be sliced, got {type(linear).__name__}.")

    def index(part: Part | None, full: int) -> int | torch.Tensor | None:
        if part is None or part == full:
            return None
        return part if isinstance(part, int) else torch.tensor(part, device=linear.weight.device)

    rows, cols = index(outputs, linear.out_features), index(inputs, linear.in_features)
    if rows is None and cols is None:
        return
    if torch.is_grad_enabled():
        vars(linear).update(rows=rows, cols=cols)
        linear.__class__ = SlicedLinear
        undo.callback(restore, linear, ("rows", "cols"))
    else:
        bias = None if linear.bias is None else select(linear.bias, 0, rows)
        vars(linear).update(picked=(select(select(linear.weight, 0, rows), 1, cols), bias))
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


@contextmanager
def masked_subnetwork(model: PrunedNetwork, spec: SubnetSpec) -> Iterator[PrunedNetwork]:
    """The model with heads and units outside `spec` set to zero just before the linear that reads them."""
    with ExitStack() as undo:
        for placed, part in remove_layers(model, spec, undo):
            for path, features in slice_layer(model.config, placed, part).inputs.items():
                mask_input(placed.layer.get_submodule(path), features, undo)
            put_stand_ins(placed, part, undo)
        yield model


def mask_input(linear: nn.Module, features: Part, undo: ExitStack) -> None:
    mask = torch.zeros(linear.in_features, dtype=linear.weight.dtype)
    mask[list(positions(features))] = 1
    handle = linear.register_forward_pre_hook(lambda _, inputs: (inputs[0] * mask.to(inputs[0].device),))
    undo.callback(handle.remove)


@contextmanager
def zeroed_subnetwork(model: PrunedNetwork, spec: SubnetSpec) -> Iterator[PrunedNetwork]:
    """The public code's way, for timing only: every layer is computed, and what is gone is multiplied by zero.

    Where a sub-layer has nothing left its LayerNorm still acts, so the answer is not that of `masked_subnetwork`.
    """
    with ExitStack() as undo:
        for placed, part in zip(model.placed_layers(), spec, strict=True):
            left = slice_layer(model.config, placed, part).inputs
            for path in ([placed.parts.mix] if placed.heads else []) + [placed.parts.down]:
                mask_input(placed.layer.get_submodule(path), left.get(path, 0), undo)
        yield model
