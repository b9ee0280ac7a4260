"""What is left of a pruned network, as stock layers to be."""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor, nn

from archwright.exporting.kinds import KINDS
from archwright.networks.pruned import POOLINGS, PrunedNetwork, normed_mean

State = dict[str, Tensor]


@dataclass
class Block:
    """One stock layer to be: the numbers of the pruned layers whose attention and whose FFN stand in it, if any."""

    attention: int | None = None
    ffn: int | None = None

    @property
    def first(self) -> int:
        """The layer it begins with."""
        return next(place for place in (self.attention, self.ffn) if place is not None)


def paired(network: PrunedNetwork) -> list[Block]:
    """Sub-layers in as few stock layers as their order allows: an attention and the FFN of a later layer share one."""
    blocks: list[Block] = []
    for part in sublayers(network):
        if part.ffn is not None and blocks and blocks[-1].ffn is None:
            blocks[-1].ffn = part.ffn
        else:
            blocks.append(part)
    return blocks


def sublayers(network: PrunedNetwork) -> Iterator[Block]:
    """What is left, in the order in which it is computed: each block holds one sub-layer."""
    for place, (heads, units) in enumerate(network.config.layers):
        if heads:
            yield Block(attention=place)
        if units:
            yield Block(ffn=place)


def layer_of(network: PrunedNetwork, place: int | None) -> nn.Module | None:
    layers = network.backbone.get_submodule(network.config.family.layers)
    return None if place is None else layers[place]


def widest(network: PrunedNetwork) -> int:
    """Units of the layer with most of them."""
    return max((units for _, units in network.config.layers if units), default=1)


def most_heads(network: PrunedNetwork) -> int:
    return max((heads for heads, _ in network.config.layers), default=0)


def pools_mean(network: PrunedNetwork) -> bool:
    """Whether the head reads the mean of all tokens."""
    return KINDS[network.config.kind].pools and POOLINGS[network.config.pooling] is normed_mean


def other_tensors(network: PrunedNetwork) -> State:
    """The backbone's tensors outside of its layers."""
    root = f"{network.config.family.layers}."
    return {name: tensor for name, tensor in network.backbone.state_dict().items() if not name.startswith(root)}


def corner(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The tensor in the upper left corner of zeros; itself when it fills them."""
    if tensor.shape == shape:
        return tensor
    room = tensor.new_zeros(shape)
    room[tuple(slice(size) for size in tensor.shape)] = tensor
    return room
