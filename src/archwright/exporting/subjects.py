"""What an export needs to know of a network, whatever it is: pruned, or as `train` wrote it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel

from archwright.errors import BadInput
from archwright.networks.cells import CellForCausalLM
from archwright.networks.flexibert import FlexiBertModel, FlexiBertNetwork
from archwright.networks.load import max_length_of, supernet_config
from archwright.networks.lts_gpt2 import LtsGpt2ForCausalLM
from archwright.networks.nlu import NluModel, NluNetwork
from archwright.networks.pruned import PrunedNetwork


@dataclass(frozen=True)
class Subject:
    """A network from outside."""

    kind: str
    """What it answers: one of KINDS."""
    family: str
    layers: list[list[int]]
    """Heads and units of every layer; an operator without heads has none."""
    causal: bool
    """Whether each token sees only those before it."""
    room: int | None
    """How many tokens a text may have; None: as many as one likes."""
    pooling: str = ""
    recurrent: bool = False
    """Whether it is a loop over tokens, in which 8-bit weights with scales for blocks cannot stand."""
    stock: bool = False
    """Whether classes of transformers' own can have such layers."""


def of_pruned(network: Any) -> Subject:
    config, family = network.config, network.config.family
    room = max_length_of(network)
    name = config.backbone["model_type"]
    return Subject(config.kind, name, config.layers, family.causal, room, config.pooling, stock=family.stock)


PRETRAINED = {"mlm": "mlm", "electra": "electra"}
"""What an encoder answers by the loss it was pre-trained with; with any other, and without a head, its states."""


def of_encoder(network: Any) -> Subject:
    config = network.config
    kind = PRETRAINED.get(config.loss, "features") if hasattr(network, "head") else "features"
    return Subject(kind, config.model_type, supernet_config(config).layers, False, config.max_position_embeddings)


def of_gpt2(network: Any) -> Subject:
    config = network.config
    layers = [[heads, units] for heads, units in zip(config.n_head, config.d_inner, strict=True)]
    return Subject("lm", config.model_type, layers, True, config.n_positions)


def of_cells(network: Any) -> Subject:
    config = network.config
    return Subject("lm", config.model_type, [[0, units] for _, units in config.sizes()], True, None, recurrent=True)


SUBJECTS: dict[type, Callable[[Any], Subject]] = {
    PrunedNetwork: of_pruned,
    NluNetwork: of_encoder,
    FlexiBertNetwork: of_encoder,
    NluModel: of_encoder,
    FlexiBertModel: of_encoder,
    LtsGpt2ForCausalLM: of_gpt2,
    CellForCausalLM: of_cells,
}


def subject(network: PreTrainedModel) -> Subject:
    found = next((read for kind, read in SUBJECTS.items() if isinstance(network, kind)), None)
    if found is None:
        raise BadInput(f"an export needs a network of ours, got {type(network).__name__}; it is a checkpoint already.")
    return found(network)
