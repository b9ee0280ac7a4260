"""A sub-network as a network of its own."""

import torch
from torch import nn

from archwright.networks.pruned import PrunedConfig, PrunedNetwork
from archwright.subnet.keep import Keep, count, positions, sizes
from archwright.subnet.slicing import head_features, head_size_of


def extract(model: PrunedNetwork, keep: Keep) -> PrunedNetwork:
    """A new, ordinary model with small tensors of its own that computes what the sub-network computes."""
    config = pruned_config(model.config, keep)
    with torch.device("meta"):  # no time for weights that are replaced at once
        small = type(model)(config)
    small.load_state_dict(extracted_state(model, keep), assign=True)
    for name, buffer in model.backbone.named_buffers():
        owner, _, leaf = name.rpartition(".")
        setattr(small.backbone.get_submodule(owner), leaf, buffer.clone())
    return small.to(model.dtype).train(model.training)


def pruned_config(config: PrunedConfig, keep: Keep) -> PrunedConfig:
    """The config of the extracted network: layers that are gone are not in it."""
    values = config.to_dict()
    values["layers"] = [list(pair) for pair in sizes(keep) if any(pair)]
    return PrunedConfig.from_dict(values)


def extracted_state(model: PrunedNetwork, keep: Keep) -> dict[str, torch.Tensor]:
    """The state dict of the extracted network, in tensors of its own."""
    family = model.config.family
    root = f"backbone.{family.layers}."
    state = {k: v.detach().clone() for k, v in model.state_dict().items() if not k.startswith(root)}
    layers = model.backbone.get_submodule(family.layers)
    left = [(layer, part) for layer, part in zip(layers, keep, strict=True) if count(part.heads) or count(part.units)]
    for place, (layer, part) in enumerate(left):
        inner = list(positions(head_features(part.heads, head_size_of(layer)))) if count(part.heads) else []
        units = list(positions(part.units))
        rows = {family.query: inner, family.key: inner, family.value: inner, family.up: units}
        cols = {family.mix: inner, family.down: units}
        gone = (() if inner else tuple(family.without_attention)) + (() if units else tuple(family.without_ffn))
        for name, tensor in layer_state(layer, rows=rows, cols=cols, gone=gone).items():
            state[f"{root}{place}.{name}"] = tensor
    return state


def layer_state(
    layer: nn.Module, *, rows: dict[str, list[int]], cols: dict[str, list[int]], gone: tuple[str, ...]
) -> dict[str, torch.Tensor]:
    state = {}
    for name, tensor in layer.state_dict().items():
        owner = name.rpartition(".")[0]
        if any(owner == path or owner.startswith(f"{path}.") for path in gone):
            continue
        if owner in rows:
            tensor = tensor[rows[owner]]
        elif owner in cols and tensor.dim() > 1:
            tensor = tensor[:, cols[owner]]
        state[name] = tensor.detach().clone()
    return state
