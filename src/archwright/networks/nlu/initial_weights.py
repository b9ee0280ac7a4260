"""First weights of an NLU network, part by part: those of a part follow from the seed, its place and what it is.

So two architectures with a common beginning have bit-identical layers there, and whoever looks at many of one seed may
keep the hidden states behind the beginning that they share.
"""

from typing import TypeVar

import numpy as np
import torch
from torch import nn
from transformers.initialization import no_init_weights

from archwright.networks.nlu.config import BlockPlan, NluConfig
from archwright.networks.nlu.layers import BLOCKS, NluEmbeddings, NluLayer, layer_of
from archwright.networks.nlu.network import NluNetwork
from archwright.networks.pretraining import fill

EMBEDDINGS, HEAD, LAYER = range(3)
"""What a part is: the word after the seed from which its weights are drawn."""

Part = TypeVar("Part", bound=nn.Module)


def build_block(plan: NluConfig, place: int, choice: str, *, seed: int) -> NluLayer:
    """The layer that every network of this seed with this choice at this place has, in evaluation mode.

    Of `plan` only the sizes count that all layers share.
    """
    with no_init_weights():
        layer = layer_of(plan, BlockPlan.read(choice))
    return draw_weights(layer, plan, *layer_stream(place, BlockPlan.read(choice)), seed=seed)


def build_embeddings(plan: NluConfig, *, seed: int) -> NluEmbeddings:
    """Those of every network of this seed, in evaluation mode."""
    with no_init_weights():
        made = NluEmbeddings(plan)
    return draw_weights(made, plan, EMBEDDINGS, seed=seed)


def build_nlu(config: NluConfig, *, generator: torch.Generator) -> NluNetwork:
    """A network in evaluation mode, its parts those of the generator's seed.

    Nothing is drawn from the generator itself: given twice it makes the same network twice.
    """
    seed = generator.initial_seed()
    with torch.device(generator.device), no_init_weights():
        network = NluNetwork(config)
    draw_weights(network.encoder.embeddings, config, EMBEDDINGS, seed=seed)
    for place, (plan, layer) in enumerate(zip(config.plans, network.encoder.layers, strict=True)):
        draw_weights(layer, config, *layer_stream(place, plan), seed=seed)
    draw_weights(network.head, config, HEAD, seed=seed)
    return network.eval()


def layer_stream(place: int, plan: BlockPlan) -> tuple[int, ...]:
    return LAYER, place, list(BLOCKS).index(plan.block), plan.units


def draw_weights(part: Part, config: NluConfig, *words: int, seed: int) -> Part:
    """The same module with new weights; lookup tables come last, so that all else is the same for any vocabulary."""
    state = np.random.SeedSequence((seed % 2**64, *words)).generate_state(1, np.uint64)
    generator = torch.Generator(next(part.parameters()).device).manual_seed(int(state[0]) >> 1)
    for module in sorted(part.modules(), key=lambda module: isinstance(module, nn.Embedding)):
        fill(module, std=config.initializer_range, generator=generator)
    return part.eval()
