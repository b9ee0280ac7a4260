"""The networks of ours that can be exported: pruned, or as `train` wrote them. One record per class of network."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel

from archwright.errors import BadInput
from archwright.exporting.kinds import WITHOUT_TASK
from archwright.networks.cells.model import CellForCausalLM
from archwright.networks.flexibert.network import FlexiBertModel, FlexiBertNetwork
from archwright.networks.load import max_length_of, supernet_config
from archwright.networks.lts_gpt2 import LtsGpt2ForCausalLM
from archwright.networks.nlu.network import NluModel, NluNetwork
from archwright.networks.pruned import PrunedNetwork
from archwright.networks.stock_heads import stock_head


@dataclass(frozen=True)
class NetworkTraits:
    """What an export needs to know of a network."""

    kind: str
    """What it answers: a kind of task, or one of WITHOUT_TASK."""
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


@dataclass(frozen=True)
class ExportableNetwork:
    """A class of networks, those derived from it included."""

    network: type[PreTrainedModel]
    describe: Callable[[Any], NetworkTraits]
    auto_classes: Callable[[Any], Mapping[str, type]]
    """Auto classes of transformers, and the class of ours that each of them gives for this network."""


def describe_pruned(network: PrunedNetwork) -> NetworkTraits:
    config, family = network.config, network.config.family
    name, room = config.backbone["model_type"], max_length_of(network)
    return NetworkTraits(config.kind, name, config.layers, family.causal, room, config.pooling, stock=family.stock)


def describe_encoder(network: PreTrainedModel) -> NetworkTraits:
    config = network.config
    kind = config.loss if hasattr(network, "head") and config.loss in WITHOUT_TASK else "features"
    layers, room = supernet_config(config).layers, config.max_position_embeddings
    return NetworkTraits(kind, config.model_type, layers, causal=False, room=room)


def describe_gpt2(network: LtsGpt2ForCausalLM) -> NetworkTraits:
    config = network.config
    layers = [[heads, units] for heads, units in zip(config.n_head, config.d_inner, strict=True)]
    return NetworkTraits("lm", config.model_type, layers, causal=True, room=config.n_positions)


def describe_cells(network: CellForCausalLM) -> NetworkTraits:
    layers = [[0, units] for _, units in network.config.sizes()]
    return NetworkTraits("lm", network.config.model_type, layers, causal=True, room=None, recurrent=True)


def exportable_encoder(network: type[PreTrainedModel], body: type[PreTrainedModel]) -> ExportableNetwork:
    """An encoder with the head it was pre-trained with; AutoModel gives its body."""

    def auto_classes(encoder: PreTrainedModel) -> Mapping[str, type]:
        loss = encoder.config.loss
        return {"AutoModel": body} | ({WITHOUT_TASK[loss].auto: type(encoder)} if loss in WITHOUT_TASK else {})

    return ExportableNetwork(network, describe_encoder, auto_classes)


EXPORTABLE = (
    ExportableNetwork(
        PrunedNetwork, describe_pruned, lambda network: {stock_head(network.config.kind).auto.__name__: type(network)}
    ),
    exportable_encoder(NluNetwork, NluModel),
    exportable_encoder(FlexiBertNetwork, FlexiBertModel),
    ExportableNetwork(NluModel, describe_encoder, lambda network: {"AutoModel": type(network)}),
    ExportableNetwork(FlexiBertModel, describe_encoder, lambda network: {"AutoModel": type(network)}),
    ExportableNetwork(LtsGpt2ForCausalLM, describe_gpt2, lambda network: {"AutoModelForCausalLM": type(network)}),
    ExportableNetwork(CellForCausalLM, describe_cells, lambda network: {"AutoModelForCausalLM": type(network)}),
)


def find_exportable(network: PreTrainedModel) -> ExportableNetwork | None:
    """The record of a network of ours; None for one of another's."""
    return next((record for record in EXPORTABLE if isinstance(network, record.network)), None)


def network_traits(network: PreTrainedModel) -> NetworkTraits:
    record = find_exportable(network)
    if record is None:
        raise BadInput(f"an export needs a network of ours, got {type(network).__name__}; it is a checkpoint already.")
    return record.describe(network)
