"""A smaller hidden width: some channels of the residual stream of an encoder, the same ones everywhere."""

import copy
from typing import Any

import torch
from torch import nn

from archwright.errors import BadInput


def check_width(config: Any, width: int) -> None:
    """BadInput for a PrunedConfig whose networks cannot have this width."""
    family, whole = config.family, int(config.backbone[config.family.width])
    if not family.can_narrow:
        raise BadInput(
            "--width is for the encoders BERT, RoBERTa, XLM-RoBERTa, CamemBERT, MPNet, DistilBERT and ELECTRA, "
            f"got {config.backbone['model_type']}; leave it out."
        )
    if not 1 <= width < whole:
        raise BadInput(f"--width must be 1 to {whole - 1}, below the checkpoint's {whole}, got {width}.")


def narrow_stream(network: Any, width: int) -> None:
    """Gives what reads and writes the residual stream of an untrained network this width; heads keep their size."""
    backbone, family = network.backbone, network.config.family
    whole, root = int(network.config.backbone[family.width]), f"{family.layers}."
    for placed in network.placed_layers():
        layer, parts = placed.layer, placed.parts
        readers = (parts.query, parts.key, parts.value) if placed.heads else ()
        writers = (parts.mix,) if placed.heads else ()
        if placed.units:
            readers, writers = (*readers, parts.up), (*writers, parts.down)
        for path in readers:
            put_linear(layer, path, inputs=width)
        for path in writers:
            put_linear(layer, path, outputs=width)
        for path in (parts.attention_norm,) * bool(placed.heads) + (parts.ffn_norm,) * bool(placed.units):
            layer.set_submodule(path, nn.LayerNorm(width, eps=layer.get_submodule(path).eps))
    for path, module in list(backbone.named_modules()):
        if path.startswith(root):
            continue
        if isinstance(module, nn.Embedding) and module.embedding_dim == whole:
            backbone.set_submodule(path, nn.Embedding(module.num_embeddings, width, module.padding_idx))
        elif isinstance(module, nn.LayerNorm) and module.normalized_shape == (whole,):
            backbone.set_submodule(path, nn.LayerNorm(width, eps=module.eps))
        elif isinstance(module, nn.Linear) and module.out_features == whole:
            put_linear(backbone, path, outputs=width)


def put_linear(owner: nn.Module, path: str, *, inputs: int | None = None, outputs: int | None = None) -> None:
    old: Any = owner.get_submodule(path)
    new = nn.Linear(inputs or old.in_features, outputs or old.out_features, bias=old.bias is not None)
    owner.set_submodule(path, new)


def keep_channels(network: Any, channels: torch.Tensor) -> Any:
    """A new network with these channels of the residual stream only, in this order; its weights are copies."""
    config = copy.deepcopy(network.config)
    config.width = len(channels)
    check_width(config, config.width)
    with torch.device("meta"):  # no time for weights that are replaced at once
        small = type(network)(config)
    shapes, state = small.state_dict(), {}
    for name, tensor in network.state_dict().items():
        kept = tensor.detach()
        for dim, (before, after) in enumerate(zip(tensor.shape, shapes[name].shape, strict=True)):
            kept = kept if before == after else kept.index_select(dim, channels.to(kept.device))
        state[name] = kept.clone()
    small.load_state_dict(state, assign=True)
    for name, buffer in network.backbone.named_buffers():
        owner, _, leaf = name.rpartition(".")
        setattr(small.backbone.get_submodule(owner), leaf, buffer.clone())
    for name, parameter in network.named_parameters():
        small.get_parameter(name).requires_grad_(parameter.requires_grad)
    return small.train(network.training)
