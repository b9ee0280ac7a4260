"""A sub-network as a network of its own."""

import copy

import torch

from archwright.networks.load import put_unsaved_buffers
from archwright.networks.pruned import PlacedLayer, PrunedConfig, PrunedNetwork
from archwright.subnet.slicing import left_once, slice_layer
from archwright.subnet.spec import LayerSpec, SubnetSpec, count, positions

State = dict[str, torch.Tensor]


def extract(model: PrunedNetwork, spec: SubnetSpec) -> PrunedNetwork:
    """A new, ordinary model with small tensors of its own that computes what the sub-network computes."""
    config = pruned_config(model.config, spec)
    with torch.device("meta"):  # no time for weights that are replaced at once
        small = type(model)(config)
    small.load_state_dict(extracted_state(model, spec), assign=True)
    small.tie_weights()
    put_unsaved_buffers(small.backbone, model.backbone)
    if model.can_generate():
        small.generation_config = copy.deepcopy(model.generation_config)
    return small.train(model.training)


def pruned_config(config: PrunedConfig, spec: SubnetSpec) -> PrunedConfig:
    """The config of the extracted network: layers that are gone are not in it."""
    values = config.to_dict()
    left = [(place, part) for place, part in zip(config.places, spec, strict=True) if any(map(count, part))]
    values["layers"] = [[count(part.heads), count(part.units)] for _, part in left]
    values["places"] = [place for place, _ in left]
    return PrunedConfig.from_dict(values)


def extracted_state(model: PrunedNetwork, spec: SubnetSpec) -> State:
    """The state dict of the extracted network, in tensors of its own."""
    root = f"backbone.{model.config.family.layers}."
    state = clone_state({k: v for k, v in model.state_dict().items() if not k.startswith(root)})
    rows = zip(model.placed_layers(), spec, strict=True)
    left = [(placed, part) for placed, part in rows if any(map(count, part))]
    for number, (placed, part) in enumerate(left_once(left)):
        for name, tensor in layer_state(placed, model.config, part).items():
            state[f"{root}{number}.{name}"] = tensor
    return state


def clone_state(state: State) -> State:
    """Tensors of its own; those that share their memory, as tied embeddings do, share it in the copy too."""
    copies: dict[int, torch.Tensor] = {}
    for tensor in state.values():
        if tensor.data_ptr() not in copies:
            copies[tensor.data_ptr()] = tensor.detach().clone()
    return {name: copies[tensor.data_ptr()] for name, tensor in state.items()}


def layer_state(placed: PlacedLayer, config: PrunedConfig, part: LayerSpec) -> State:
    """What is left of a layer."""
    cut, parts = slice_layer(config, placed, part), placed.parts
    removed = [] if count(part.heads) else list(parts.without_attention)
    removed += [] if count(part.units) else list(parts.without_ffn)
    state = {}
    for name, tensor in placed.layer.state_dict().items():
        owner = name.rpartition(".")[0]
        if any(owner == path or owner.startswith(f"{path}.") for path in removed):
            continue
        if name == parts.head_places:
            tensor = tensor[list(positions(part.heads))]
        elif owner in cut.outputs:
            tensor = tensor[list(positions(cut.outputs[owner]))]
        elif owner in cut.inputs and tensor.dim() > 1:
            tensor = tensor[:, list(positions(cut.inputs[owner]))]
        state[name] = tensor.detach().clone()
    return state
