"""All architectures of the NLU space in one network (single path one-shot, Guo et al. 2020; W-PCA, Appendix E.2).

Every layer holds all blocks it may be; one of them runs. Training touches the path that ran and nothing else: the other
blocks have no gradient (None, not zeros), and torch's optimizers pass over such parameters whole: no step, no weight
decay, no change of moments. That needs `zero_grad(set_to_none=True)`, which is the default, between two paths.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers.initialization import no_init_weights

from archwright.errors import BadInput, Failed
from archwright.networks.nlu.config import BlockPlan, NluConfig
from archwright.networks.nlu.network import (
    EMBEDDINGS,
    HEAD,
    NluLayer,
    NluModel,
    NluNetwork,
    draw_weights,
    layer_of,
    layer_stream,
)
from archwright.networks.roles import LayerRoles

Design = Mapping[str, Any]
"""`block.0`, `block.1` and so on, each with the word of a block such as `base-132`."""


class NluSupernetConfig(NluConfig):
    """Sizes as in NluConfig; `paths` are the words of the blocks that each layer holds."""

    model_type = "archwright_nlu_supernet"

    def __init__(self, paths: Sequence[Sequence[str]] = (), **kwargs: Any):
        self.paths = [list(words) for words in paths]
        super().__init__(**kwargs)


class PathLayer(nn.Module):
    """All blocks of one layer; the `active` one runs."""

    def __init__(self, config: NluConfig, words: Sequence[str]):
        super().__init__()
        self.blocks = nn.ModuleDict({word: layer_of(config, BlockPlan.read(word)) for word in words})
        self.active: str | None = None

    @property
    def block(self) -> NluLayer:
        if self.active is None:
            raise Failed("a super-network runs one path at a time; call it inside `with path(supernet, config)`.")
        return self.blocks[self.active]

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.block(hidden, mask)

    def roles(self) -> LayerRoles:
        return self.block.roles()


class NluSupernet(NluNetwork):
    """Embeddings, every block of every layer, and the head of one pre-training loss.

    Its `encoder` gives what a body gives, so another head may be put on it: `path` finds the layers wherever they are.
    """

    config_class = NluSupernetConfig

    def __init__(self, config: NluSupernetConfig):
        super().__init__(config)
        self.encoder.layers.extend(PathLayer(config, words) for words in config.paths)
        self.post_init()


def build_nlu_supernet(config: NluSupernetConfig, *, generator: torch.Generator) -> NluSupernet:
    """In evaluation mode; each of its paths has the weights of `untrained` networks of the same seed."""
    seed = generator.initial_seed()
    with torch.device(generator.device), no_init_weights():
        supernet = NluSupernet(config)
    draw_weights(supernet.encoder.embeddings, config, EMBEDDINGS, seed=seed)
    for place, layer in enumerate(path_layers(supernet)):
        for word, block in layer.blocks.items():
            draw_weights(block, config, *layer_stream(place, BlockPlan.read(word)), seed=seed)
    draw_weights(supernet.head, config, HEAD, seed=seed)
    return supernet.eval()


def path_layers(network: nn.Module) -> list[PathLayer]:
    """In their order, wherever in the network they are."""
    return [module for module in network.modules() if isinstance(module, PathLayer)]


@contextmanager
def path(network: nn.Module, design: Design) -> Iterator[None]:
    """The layers inside the network run the blocks of this design; afterwards those they ran before."""
    layers = path_layers(network)
    words = path_words(layers, design)
    before = [layer.active for layer in layers]
    try:
        run(layers, words)
        yield
    finally:
        run(layers, before)


def run(layers: Sequence[PathLayer], words: Sequence[str | None]) -> None:
    for layer, word in zip(layers, words, strict=True):
        layer.active = word


def path_words(layers: Sequence[PathLayer], design: Design) -> list[str]:
    """The block of every layer; a block that is not there is refused."""
    words = [design[f"block.{place}"] for place in range(len(layers))]
    for place, (layer, word) in enumerate(zip(layers, words, strict=True)):
        if word not in layer.blocks:
            raise BadInput(
                f"block.{place} must be one of {', '.join(layer.blocks)} here, got {word!r}; take one of these."
            )
    return words


def extract_path(supernet: NluSupernet, design: Design) -> NluNetwork:
    """The path as an ordinary network with weights of its own, in the mode the super-network is in."""
    body = extract_path_body(supernet.encoder, design)
    with torch.device(supernet.device), no_init_weights():
        network = NluNetwork(body.config)
    network.encoder = body
    network.head.load_state_dict(supernet.head.state_dict())
    return network.train(supernet.training)


def extract_path_body(encoder: NluModel, design: Design) -> NluModel:
    """The same of the encoder alone, which may stand in a network with another head."""
    layers = path_layers(encoder)
    words = path_words(layers, design)
    with torch.device(encoder.device), no_init_weights():
        body = NluModel(NluConfig([BlockPlan.read(word) for word in words], **encoder.config.common_fields))
    body.embeddings.load_state_dict(encoder.embeddings.state_dict())
    for own, layer, word in zip(body.layers, layers, words, strict=True):
        own.load_state_dict(layer.blocks[word].state_dict())
    return body.train(encoder.training)
