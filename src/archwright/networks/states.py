"""State dicts between stock networks and ours, where the two name or lay out their tensors differently."""

import torch

from archwright.networks.families import Family

State = dict[str, torch.Tensor]


def from_stock(state: State, family: Family) -> State:
    """A stock backbone's tensors as ours has them: GPT-2's transposed, its joint projection in three."""
    if not family.joint:
        return state
    ours: State = {}
    for name, tensor in state.items():
        owner, _, leaf = name.rpartition(".")
        if owner.endswith(family.joint):
            root = owner.removesuffix(family.joint)
            paths = (family.query, family.key, family.value)
            pieces = zip(paths, upright(tensor).chunk(3), strict=True)
            ours |= {f"{root}{path}.{leaf}": piece.clone() for path, piece in pieces}
        else:
            ours[name] = upright(tensor) if transposed(owner, family) else tensor
    return ours


def to_stock(state: State, family: Family) -> State:
    """The way back, for tensors that fit into a stock backbone."""
    if not family.joint:
        return state
    stock: State = {}
    for name, tensor in state.items():
        owner, _, leaf = name.rpartition(".")
        if owner.endswith(family.query):
            root = owner.removesuffix(family.query)
            parts = [state[f"{root}{path}.{leaf}"] for path in (family.query, family.key, family.value)]
            stock[f"{root}{family.joint}.{leaf}"] = upright(torch.cat(parts))
        elif not owner.endswith((family.key, family.value)):
            stock[name] = upright(tensor) if transposed(owner, family) else tensor
    return stock


def transposed(owner: str, family: Family) -> bool:
    """Whether the stock layer keeps this linear's weight as inputs x outputs."""
    return owner.endswith((family.mix, family.up, family.down))


def upright(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.T.contiguous() if tensor.dim() > 1 else tensor
