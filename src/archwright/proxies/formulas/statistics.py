"""Numbers of many chains on the tensors of a network at once, from which the score of any formula is quick arithmetic.

Chains are arranged as a tree, so that what they begin with is computed once. Every tensor is read in blocks that stay
in the cache, in one pass, and in one more for each operation in a row that needs the whole tensor. Single precision
where the network has it, sums in double; what that may have spoilt is computed again in double.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Protocol

import numpy as np
import torch

from archwright.probe import Probe
from archwright.proxies.formulas.inputs import FORMULA_INPUTS, INPUTS
from archwright.proxies.formulas.kernels import (
    FLAT,
    SMALL,
    Accumulate,
    Kernel,
    Moments,
    add_exact_moments,
    add_moments,
    blocks,
)
from archwright.proxies.formulas.operations import UNARY, Chain, apply_to_number
from archwright.proxies.formulas.simplification import PRUNED, ZERO, canonical_chain

Array = np.ndarray[Any, np.dtype[np.float64]]

SPOILT = frozenset({("zscore", "inverse"), *product(("square", "sigmoid"), ("log", "abslog"))})
"""Always in double: reciprocals of what the mean nearly cancels, logarithms of what may be too small for single."""


class TensorSource(Protocol):
    """A tensor of a probe, or of a file."""

    @property
    def key(self) -> tuple[int, str]:
        """The same for the same tensor."""

    def read(self) -> torch.Tensor:
        """The tensor."""


Numbers = dict[tuple[int, str], Array]
"""Numbers of the tensors read so far by their key: inputs may share tensors."""


@dataclass
class Node:
    """The tensor after some operations, what has to be summed of it, and the operations that follow."""

    prefix: Chain
    sweep: int
    """Pass over the tensor in which its moments are summed: those of whole tensors before it come in earlier ones."""
    sums: dict[Accumulate, None] = field(default_factory=dict)
    children: "dict[str, Node]" = field(default_factory=dict)

    @property
    def sweeps(self) -> set[int]:
        """Passes in which it, or what comes after it, is needed."""
        return {self.sweep}.union(*(node.sweeps for node in self.children.values()))

    def child(self, name: str) -> "Node":
        """The node after one more operation."""
        whole = UNARY[name].whole
        if name not in self.children:
            self.children[name] = Node((*self.prefix, name), self.sweep + (whole is not None))
            self.sums |= dict.fromkeys(whole or ())
        return self.children[name]


@dataclass(frozen=True, eq=False)
class End:
    """Where the tensor of a chain ends, the operation whose mean is taken there, and what is done to that number."""

    chain: Chain
    node: Node
    last: str
    rest: Chain

    def number(self, moments: dict[Chain, Moments]) -> float:
        return apply_to_number(UNARY[self.last].mean(moments[self.node.prefix]), self.rest)

    def doubtful(self, x: float, moments: dict[Chain, Moments]) -> bool:
        """Whether single precision may not have been enough for this number."""
        if self.chain == ZERO:
            return False
        if not SMALL < abs(x) < math.inf or SPOILT & set(zip(self.chain, self.chain[1:], strict=False)):
            return True
        operand = moments[self.node.prefix]
        if self.last == "log_softmax" and abs(UNARY[self.last].mean(operand)) < FLAT * abs(operand.mean):
            return True  # little is left of the mean when the softmax's own is taken off
        steps = (*self.node.prefix, self.last)
        flat = (moments[steps[:at]].flat for at, name in enumerate(steps) if UNARY[name].differences)
        beyond = (moments[steps[:at]].squares_out_of_range for at, name in enumerate(steps) if UNARY[name].squares)
        return any(flat) or any(beyond)


@dataclass(frozen=True, eq=False)
class Step:
    """A node to be visited in a block, after its parent."""

    node: Node
    kernel: Kernel | None
    """Makes its tensor of its parent's; None for the root."""
    summed: bool
    """Whether its moments are summed in this pass."""


class ChainTree:
    """Chains in canonical form by what they begin with."""

    def __init__(self, chains: Iterable[Chain]) -> None:
        self.root = Node((), 0)
        self.ends = {chain: self._insert(chain) for chain in dict.fromkeys(chains)}
        self._passes = [plan(self.root, sweep) for sweep in range(max(self.root.sweeps) + 1)]
        self._subtrees: dict[tuple[Chain, ...], ChainTree] = {}

    def _insert(self, chain: Chain) -> End:
        place = next((at for at, name in enumerate(chain) if UNARY[name].scalar), len(chain) - 1)
        if chain[place : place + 1] == ("negate",) and place:
            place -= 1  # the mean of -x is minus the mean
        node = self.root
        for name in chain[: max(place, 0)]:
            node = node.child(name)
        last = chain[place] if chain else "no_op"
        node.sums |= dict.fromkeys(UNARY[last].sums)
        return End(chain, node, last, chain[place + 1 :])

    def numbers(self, tensor: torch.Tensor) -> Array:
        """One per chain, in their order; infinity where there is none."""
        if tensor.dim() == 0:
            return infinite_where_missing([apply_to_number(float(tensor), chain) for chain in self.ends])
        moments = self._moments(tensor)
        numbers = infinite_where_missing([end.number(moments) for end in self.ends.values()])
        if tensor.dtype != torch.float64:
            pairs = enumerate(zip(self.ends.values(), numbers, strict=True))
            doubtful = {end.chain: at for at, (end, x) in pairs if end.doubtful(float(x), moments)}
            if doubtful:
                if tuple(doubtful) not in self._subtrees:
                    self._subtrees[tuple(doubtful)] = ChainTree(doubtful)
                numbers[list(doubtful.values())] = self._subtrees[tuple(doubtful)].numbers(tensor.double())
        return numbers

    def _moments(self, tensor: torch.Tensor) -> dict[Chain, Moments]:
        """Of all nodes, by prefix."""
        resolution = torch.finfo(tensor.dtype).eps
        moments: dict[Chain, Moments] = {}
        for steps in self._passes:
            prefixes = [step.node.prefix for step in steps if step.summed]
            moments |= {prefix: Moments(len(tensor), resolution) for prefix in prefixes}
            for block in blocks(tensor):
                add_block(block, steps, moments)
            for prefix in filter(None, prefixes):
                if fix := UNARY[prefix[-1]].fix:
                    fix(moments[prefix], moments[prefix[:-1]])
        return moments


def plan(node: Node, sweep: int) -> list[Step]:
    """Nodes that are needed in this pass, parents first."""
    if sweep not in node.sweeps:
        return []
    after = [step for child in node.children.values() for step in plan(child, sweep)]
    kernel = UNARY[node.prefix[-1]].kernel if node.prefix else None
    return [Step(node, kernel, node.sweep == sweep), *after]


def add_block(block: torch.Tensor, steps: list[Step], moments: dict[Chain, Moments]) -> None:
    """Adds what this block has to the moments."""
    depth = max(len(step.node.prefix) for step in steps)
    work, *results = (torch.empty_like(block) for _ in range(depth + 1))
    tensors = [block, *results]  # by the number of operations applied
    for step in steps:
        prefix = step.node.prefix
        if step.kernel:
            step.kernel(tensors[len(prefix) - 1], tensors[len(prefix)], moments[prefix[:-1]])
        if step.summed:
            for accumulate in (add_moments if prefix else add_exact_moments, *step.node.sums):
                accumulate(tensors[len(prefix)], work, moments[prefix])


def infinite_where_missing(numbers: Sequence[float] | Array) -> Array:
    values = np.asarray(numbers, dtype=np.float64)
    return np.where(np.isfinite(values), values, np.inf)


def statistics(probe: Probe, chains: Sequence[Chain], inputs: Sequence[str] = INPUTS) -> Array:
    """The number of every input, chain and layer: inputs x chains x layers, as `Formula.measure` has them.

    NaN where the layer does not have the role, and for `prune`; infinity where there is no finite number, so that a
    formula with it is invalid and not merely shorter. An input of the whole network has the same number in all layers.
    """
    canonical = [canonical_chain(tuple(chain)) for chain in chains]
    tree = ChainTree(chain for chain in canonical if chain != PRUNED)
    order = {chain: at for at, chain in enumerate(tree.ends)}
    known: Numbers = {}
    rows = [
        [
            layer_numbers(FORMULA_INPUTS[name].find(probe, layer), tree, known, summed=FORMULA_INPUTS[name].summed)
            for layer in probe.layers
        ]
        for name in inputs
    ]
    columns = [order.get(chain, len(order)) for chain in canonical]
    return np.ascontiguousarray(np.array(rows)[:, :, columns].swapaxes(1, 2))


def layer_numbers(tensors: Sequence[TensorSource], tree: ChainTree, known: Numbers, *, summed: bool = False) -> Array:
    """Mean or sum over the tensors of a role, one number per chain; NaN for `prune` behind them."""
    if not tensors:
        return np.full(len(tree.ends) + 1, np.nan)
    for source in tensors:
        if source.key not in known:
            known[source.key] = tree.numbers(source.read())
    gather = np.sum if summed else np.mean
    return np.append(infinite_where_missing(gather([known[source.key] for source in tensors], axis=0)), np.nan)


def layer_values(probe: Probe, name: str, chain: Chain) -> list[float]:
    """The number of this input and chain in every layer."""
    values: list[float] = statistics(probe, [chain], [name])[0, 0].tolist()
    return values
