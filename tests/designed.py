"""Tiny networks of the design spaces, whose layers differ: their configs, and super-networks of them."""

from collections.abc import Mapping

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.networks.flexibert.network import FlexiBertModel
from archwright.networks.load import network_class, supernet_config
from archwright.networks.nlu.config import NluConfig
from archwright.networks.nlu.network import NluModel
from archwright.networks.pruned import PrunedNetwork
from tests.tiny import LABELS, TinyBatch, randomise

SMALL = {"vocab_size": 40, "max_position_embeddings": 24, "embedding_size": 6}
MIXED = [["SA/SDP", 2, [10]], ["SA/WMA", 4, [6, 7, 8]], ["LT/DFT", 2, [5]], ["DSC/5", 4, [9, 4, 7]], ["LT/DCT", 2, [3]]]
DESIGNED: Mapping[str, PreTrainedConfig] = {
    "nlu": NluConfig(layers=[["base", 10], ["mobile", 6], ["mobile", 14]], hidden_size=24, heads=3, **SMALL),
    "flexibert": FlexiBertConfig(layers=MIXED, hidden_size=16, **SMALL),
    "flexibert-bare": FlexiBertConfig(
        layers=[["SA/SDP", 2, [6], True], ["DSC/9", 2, [5], True], ["SA/WMA", 2, [4]]], hidden_size=16, **SMALL
    ),
}
"""Both blocks; every operator, stacks of one and three linears; layers without residual around the operator."""
BODIES: Mapping[str, type[PreTrainedModel]] = {
    "archwright_nlu": NluModel,
    "archwright_flexibert": FlexiBertModel,
}


def designed(
    name: str, *, kind: str = "classification", pooling: str = "cls", labels: tuple[str, ...] = LABELS, seed: int = 0
) -> PrunedNetwork:
    """A super-network in float64 and evaluation mode with weights that are all different."""
    config = supernet_config(DESIGNED[name], kind=kind, labels=labels, pooling=pooling)
    with torch.random.fork_rng(devices=[]):
        network = network_class(config.kind)(config)
    randomise(network, seed)
    return network.double().eval()


def body(name: str, *, seed: int = 0) -> PreTrainedModel:
    """The body alone, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        network = BODIES[DESIGNED[name].model_type](DESIGNED[name])
    randomise(network, seed)
    return network.eval()


def padded_batch(seed: int = 0, *, texts: int = 5, length: int = 9, labels: int = 3) -> TinyBatch:
    """Texts of different lengths in two segments."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, 40, (texts, length), generator=generator)
    lengths = torch.arange(texts) % (length - 1) + 2
    mask = (torch.arange(length) < lengths[:, None]).long()
    segments = (torch.arange(length) >= lengths[:, None] // 2).long()
    targets = torch.randint(0, labels, (texts,), generator=generator)
    return TinyBatch({"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}, targets)
