"""Weights in 8 or 4 bits, really packed: linears and embeddings that compute from the small numbers they store."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Protocol

import torch
from torch import Tensor, nn

from archwright.errors import BadInput
from archwright.networks.pruned import PrunedNetwork

GROUP = 64
"""Inputs that share a scale at 4 bits."""
STEPS = 18
"""A group's scale is so many times the row's smallest at most: 7 * 18 still fits into a signed byte."""
TINY = 1e-20
"""Instead of zero, as a divisor."""


class Packing(Protocol):
    """A matrix of which every row is whole numbers times the row's scale."""

    scales: Tensor
    """One per row, float32."""
    width: int
    """Columns of what `integers` gives: those of the matrix, and zeros that fill the last group."""

    def integers(self, rows: Tensor | None = None) -> Tensor:
        """These rows of whole numbers (None: all of them), signed bytes, rows x width."""
        ...


class Bytes(nn.Module):
    """One signed byte per weight; the scale of a row is its largest weight / 127."""

    def __init__(self, weight: Tensor):
        super().__init__()
        self.width = weight.shape[1]
        scales = (weight.abs().amax(1) / 127).clamp_min(TINY)
        self.register_buffer("values", torch.round(weight / scales[:, None]).to(torch.int8))
        self.register_buffer("scales", scales.float())

    def integers(self, rows: Tensor | None = None) -> Tensor:
        return self.values if rows is None else self.values[rows]


class Nibbles(nn.Module):
    """Two weights per byte, -7 to 7, and one byte per 64 of them: how many steps of the row's scale theirs has.

    So every weight is a signed byte times the row's scale again, and the same products serve 8 and 4 bits.
    """

    def __init__(self, weight: Tensor):
        super().__init__()
        filled = nn.functional.pad(weight, (0, -weight.shape[1] % GROUP)).unflatten(1, (-1, GROUP))
        self.width = filled.shape[1] * GROUP
        peaks = filled.abs().amax(2)  # rows x groups
        scales = (peaks.amax(1) / (7 * STEPS)).clamp_min(TINY)
        steps = torch.ceil(peaks / (7 * scales[:, None])).clamp(1, STEPS)
        whole = torch.round(filled / (scales[:, None] * steps)[:, :, None]).clamp(-7, 7).to(torch.int8).flatten(1)
        low, high = whole.chunk(2, dim=1)  # the first half of the columns lies in the low four bits
        self.register_buffer("pairs", (low & 15) | (high << 4))
        self.register_buffer("steps", steps.to(torch.int8))
        self.register_buffer("scales", scales.float())

    def integers(self, rows: Tensor | None = None) -> Tensor:
        pairs, steps = (self.pairs, self.steps) if rows is None else (self.pairs[rows], self.steps[rows])
        whole = pairs.new_empty(len(pairs), self.width)
        low, high = whole.chunk(2, dim=1)
        torch.bitwise_right_shift(pairs, 4, out=high)  # of a signed byte: the sign comes along
        torch.bitwise_left_shift(pairs, 4, out=low).bitwise_right_shift_(4)
        whole.unflatten(1, (-1, GROUP)).mul_(steps[:, :, None])
        return whole


PACKINGS: dict[int, type[nn.Module]] = {8: Bytes, 4: Nibbles}
"""Bits to packing."""

Product = Callable[[Tensor, Packing], Tensor]
"""Inputs (texts x width) and a packed matrix to their product, without bias."""


def float_product(x: Tensor, packed: Packing) -> Tensor:
    """Weights only: the whole numbers become floats for the product."""
    return nn.functional.linear(x, packed.integers().to(x.dtype)) * packed.scales.to(x.dtype)


def integer_product(x: Tensor, packed: Packing) -> Tensor:
    """Inputs become signed bytes too, with one scale per token, for the processor's own 8-bit products."""
    if packed.width == 1:  # one unit left: torch 2.13's integer product of a single column is 0
        return float_product(x, packed)
    scales = x.abs().amax(1, keepdim=True).clamp_min(TINY) / 127
    sums = torch._int_mm(torch.round(x / scales).to(torch.int8), packed.integers().T)
    return sums * scales * packed.scales.to(x.dtype)


PRODUCTS: dict[str, Product] = {"float": float_product, "int8": integer_product}


class PackedLinear(nn.Module):
    """nn.Linear on a packed matrix."""

    def __init__(self, linear: nn.Linear, packed: nn.Module, product: Product):
        super().__init__()
        self.in_features, self.out_features, self.product = linear.in_features, linear.out_features, product
        self.packed = packed
        self.bias = None if linear.bias is None else nn.Parameter(linear.bias.detach().clone(), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        rows = nn.functional.pad(x.flatten(0, -2), (0, self.packed.width - self.in_features))
        answers = self.product(rows, self.packed).unflatten(0, x.shape[:-1])
        return answers if self.bias is None else answers + self.bias


class PackedEmbedding(nn.Module):
    """nn.Embedding on a packed table: only the rows asked for are unpacked."""

    def __init__(self, table: nn.Embedding, packed: nn.Module):
        super().__init__()
        self.num_embeddings, self.embedding_dim = table.num_embeddings, table.embedding_dim
        self.padding_idx, self.dtype, self.packed = table.padding_idx, table.weight.dtype, packed

    def forward(self, ids: Tensor) -> Tensor:
        rows = ids.flatten()
        vectors = self.packed.integers(rows)[:, : self.embedding_dim].to(self.dtype)
        return (vectors * self.packed.scales[rows, None].to(self.dtype)).unflatten(0, ids.shape)


def quantize_weights(network: PrunedNetwork, bits: int, *, product: str = "float") -> PrunedNetwork:
    """A copy with all matrices packed, one that two modules share only once; 32 bits: the network itself."""
    if bits == 32:
        return network
    if bits not in PACKINGS or product not in PRODUCTS:
        known = f"bits must be 32 or one of {sorted(PACKINGS)} and product one of {', '.join(PRODUCTS)}"
        raise BadInput(f"{known}, got {bits}, {product!r}.")
    found = dict(matrices(network))
    copy = deepcopy(network, {id(module.weight): module.weight for module in found.values()})  # not the matrices
    packed: dict[int, nn.Module] = {}
    for path, module in found.items():
        if id(module.weight) not in packed:
            packed[id(module.weight)] = PACKINGS[bits](module.weight.detach())
        rows = packed[id(module.weight)]
        linear = isinstance(module, nn.Linear)
        small = PackedLinear(module, rows, PRODUCTS[product]) if linear else PackedEmbedding(module, rows)
        copy.set_submodule(path, small)
    return copy.eval()


def matrices(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Path and module of every linear and embedding table; each path, also where two lead to one module."""
    for path, module in network.named_modules(remove_duplicate=False):
        if type(module).forward in (nn.Linear.forward, nn.Embedding.forward):
            yield path, module


def stored_bytes(network: nn.Module) -> int:
    """Bytes of memory behind the network's weights, measured: what two modules share counts once."""
    stores = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in network.state_dict().values()}
    return sum(store.nbytes() for store in stores.values())
