"""Numbers of all chains at once, from which any formula is a moment's arithmetic.

Chains are arranged as a tree, so that what they begin with is worked out once, and every tensor is walked through in
blocks that stay in the cache. Single precision where the network has it, sums in double; what over- or underflows on
the way is done again in double.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from archwright.probe import Probe
from archwright.proxies.blocks import (
    MEANS,
    MEASURES,
    OF_THE_WHOLE,
    SMALL,
    STEPS,
    Measure,
    Moments,
    blocks,
    exact,
    sums,
)
from archwright.proxies.operations import UNARY
from archwright.proxies.scalars import through
from archwright.proxies.simplifying import PRUNED, ZERO, Chain, canonical_chain
from archwright.proxies.sources import INPUTS, SOURCES, Part

LARGEST_EXPONENT = 709.7
"""Beyond, double precision overflows."""

Array = np.ndarray[Any, np.dtype[np.float64]]


def statistics(probe: Probe, chains: Sequence[Chain], inputs: Sequence[str] = INPUTS) -> Array:
    """The number of every input, chain and layer: inputs x chains x layers, as `Formula.measure` has them.

    NaN where the layer does not have the role, and for `prune`; infinity where there is no finite number, so that a
    formula with it is invalid and not merely shorter. An input of the whole network has the same number in all layers.
    """
    canonical = [canonical_chain(tuple(chain)) for chain in chains]
    tree = Tree(chain for chain in canonical if chain != PRUNED)
    known: dict[tuple[int, str], Array] = {}
    rows = np.array(
        [[layer_row(SOURCES[name].find(probe, layer), tree, known) for layer in probe.layers] for name in inputs]
    )
    places = [len(tree.chains) if chain == PRUNED else tree.chains[chain] for chain in canonical]
    return np.ascontiguousarray(rows[:, :, places].swapaxes(1, 2))


def layer_values(probe: Probe, name: str, chain: Chain) -> list[float]:
    """The number of this input and chain in every layer; NaN where the layer does not have the role."""
    found: list[float] = statistics(probe, [chain], [name])[0, 0].tolist()
    return found


def layer_row(parts: Sequence[Part], tree: "Tree", known: dict[tuple[int, str], Array]) -> Array:
    """Mean over the tensors of a role, one number per chain and NaN for `prune` behind them."""
    if not parts:
        return np.full(len(tree.chains) + 1, np.nan)
    for part in parts:
        if part.key not in known:
            known[part.key] = tree.numbers(part.read())
    mean = np.mean([known[part.key] for part in parts], axis=0)
    return np.append(np.where(np.isfinite(mean), mean, np.inf), np.nan)


@dataclass
class Node:
    """The tensor that a chain has made so far, what is asked of it, and what goes on from there."""

    prefix: Chain
    turn: int
    """Walk through the tensor in which its moments are found: those of the whole that it needs come before."""
    measures: dict[Measure, None] = field(default_factory=dict)
    after: "dict[str, Node]" = field(default_factory=dict)

    @property
    def turns(self) -> set[int]:
        """Walks in which it, or what comes after it, is needed."""
        return {self.turn}.union(*(node.turns for node in self.after.values()))

    def next(self, name: str) -> "Node":
        """The node after one more operation."""
        whole = OF_THE_WHOLE.get(name)
        if name not in self.after:
            self.after[name] = Node((*self.prefix, name), self.turn + (whole is not None))
            self.measures |= dict.fromkeys(whole or ())
        return self.after[name]


class Tree:
    """Chains in canonical form by what they begin with."""

    def __init__(self, chains: Iterable[Chain]) -> None:
        self.chains: dict[Chain, int] = {}
        self.root = Node((), 0)
        self._ends: list[tuple[Node, str, Chain]] = []
        for chain in chains:
            if chain not in self.chains:
                self.chains[chain] = len(self.chains)
                self._ends.append(self._grown(chain))
        self._plans = [plan(self.root, turn) for turn in range(max(self.root.turns) + 1)]

    def _grown(self, chain: Chain) -> tuple[Node, str, Chain]:
        """Where the tensor ends, the operation whose mean is taken there, and what is done to that number."""
        place = next((at for at, name in enumerate(chain) if UNARY[name].scalar), max(len(chain) - 1, 0))
        last = chain[place] if chain else "no_op"
        node = self.root
        for name in chain[:place]:
            node = node.next(name)
        node.measures |= dict.fromkeys(MEASURES.get(last, ()))
        return node, last, chain[place + 1 :]

    def numbers(self, tensor: torch.Tensor) -> Array:
        """One per chain, in their order; infinity where there is none."""
        if tensor.dim() == 0:
            return finite([through(float(tensor), chain) for chain in self.chains])
        moments = self._moments(tensor)
        if tensor.dtype != torch.float64 and any(m.doubtful for m in moments.values()):
            moments = self._moments(tensor.double())
        found = [number(moments[node.prefix], last, rest) for node, last, rest in self._ends]
        if tensor.dtype != torch.float64:
            found = [again(tensor, chain, x) for chain, x in zip(self.chains, found, strict=True)]
        return finite(found)

    def _moments(self, tensor: torch.Tensor) -> dict[Chain, Moments]:
        """Of all nodes; every plan walks through the tensor once."""
        resolution = torch.finfo(tensor.dtype).eps
        found: dict[Chain, Moments] = {}
        for steps in self._plans:
            found |= {step.node.prefix: Moments(len(tensor), resolution) for step in steps if step.measured}
            for block in blocks(tensor):
                walk(block, steps, found)
            for step in steps:
                if step.measured and step.node.prefix:
                    exact(found[step.node.prefix], found[step.node.prefix[:-1]], step.node.prefix[-1])
        return found


@dataclass(frozen=True, eq=False)
class Step:
    """A node on the way through a block; its parent has been passed."""

    node: Node
    measured: bool


def plan(node: Node, turn: int) -> list[Step]:
    """Nodes that are needed in this walk, parents first."""
    if turn not in node.turns:
        return []
    after = [step for child in node.after.values() for step in plan(child, turn)]
    return [Step(node, node.turn == turn), *after]


def walk(block: torch.Tensor, steps: list[Step], found: dict[Chain, Moments]) -> None:
    """Adds what this block has to the moments."""
    depth = max(len(step.node.prefix) for step in steps)
    work, *made = (torch.empty_like(block) for _ in range(depth + 1))
    tensors = [block, *made]
    for step in steps:
        prefix = step.node.prefix
        if prefix:
            STEPS[prefix[-1]](tensors[len(prefix) - 1], tensors[len(prefix)], found[prefix[:-1]])
        if step.measured:
            for measure in (sums, *step.node.measures):
                measure(tensors[len(prefix)], work, found[prefix])


def number(moments: Moments, last: str, rest: Chain) -> float:
    return through(MEANS[last](moments), rest)


def again(tensor: torch.Tensor, chain: Chain, x: float) -> float:
    """In double precision where the number is too large or too small for single."""
    if chain == ZERO or (math.isfinite(x) and abs(x) > SMALL):
        return x
    y = tensor.double()
    for name in chain:
        if name in ("exp",) and float(y.max()) > LARGEST_EXPONENT:
            return math.inf
        y = UNARY[name].apply(y)
    return float(y.mean())


def finite(numbers: list[float]) -> Array:
    found = np.array(numbers, dtype=np.float64)
    return np.where(np.isfinite(found), found, np.inf)
