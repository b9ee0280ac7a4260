"""Many chains on one tensor: arranged as a tree, so that what they begin with is worked out once.

Every tensor is walked through in blocks that stay in the cache, once, and once more for each operation in a row that
needs the whole tensor. Single precision where the network has it, sums in double; what that may have spoilt is done
again in double.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import torch

from archwright.proxies.formulas.blocks import MEANS, MEASURES, OF_THE_WHOLE, STEPS, Measure, blocks, exact_sums, sums
from archwright.proxies.formulas.moments import FLAT, SMALL, Moments, exact
from archwright.proxies.formulas.operations import UNARY
from archwright.proxies.formulas.scalars import through
from archwright.proxies.formulas.simplification import ZERO, Chain

Array = np.ndarray[Any, np.dtype[np.float64]]

SPREADS = frozenset({"std", "zscore", "minmax"})
"""Operations that look at differences between numbers."""
SQUARES = frozenset({"std", "zscore", "square", "frobenius"})
SPOILT = frozenset({("zscore", "inverse"), *product(("square", "sigmoid"), ("log", "abslog"))})
"""Always in double: reciprocals of what the mean nearly cancels, logarithms of what may be too small for single."""


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


@dataclass(frozen=True, eq=False)
class End:
    """Where the tensor of a chain ends, the operation whose mean is taken there, and what is done to that number."""

    chain: Chain
    node: Node
    last: str
    rest: Chain

    def number(self, moments: dict[Chain, Moments]) -> float:
        return through(MEANS[self.last](moments[self.node.prefix]), self.rest)

    def doubtful(self, x: float, moments: dict[Chain, Moments]) -> bool:
        """Whether single precision may not have been enough for this number."""
        if self.chain == ZERO:
            return False
        if not SMALL < abs(x) < math.inf or SPOILT & set(zip(self.chain, self.chain[1:], strict=False)):
            return True
        steps = (*self.node.prefix, self.last)
        flat = (moments[steps[:at]].flat for at, name in enumerate(steps) if name in SPREADS)
        strained = (moments[steps[:at]].strained for at, name in enumerate(steps) if name in SQUARES)
        return self._cancels(moments) or any(flat) or any(strained)

    def _cancels(self, moments: dict[Chain, Moments]) -> bool:
        """Whether little is left of the mean when the softmax's own is taken off."""
        found = moments[self.node.prefix]
        return self.last in ("log_softmax",) and abs(MEANS[self.last](found)) < FLAT * abs(found.mean)


@dataclass(frozen=True, eq=False)
class Step:
    """A node on the way through a block; its parent has been passed."""

    node: Node
    measured: bool


class Tree:
    """Chains in canonical form by what they begin with."""

    def __init__(self, chains: Iterable[Chain]) -> None:
        self.root = Node((), 0)
        self.ends = {chain: self._grown(chain) for chain in dict.fromkeys(chains)}
        self._plans = [plan(self.root, turn) for turn in range(max(self.root.turns) + 1)]
        self._parts: dict[tuple[Chain, ...], Tree] = {}

    def _grown(self, chain: Chain) -> End:
        place = next((at for at, name in enumerate(chain) if UNARY[name].scalar), len(chain) - 1)
        if chain[place : place + 1] == ("negate",) and place:
            place -= 1  # the mean of -x is minus the mean
        node = self.root
        for name in chain[: max(place, 0)]:
            node = node.next(name)
        last = chain[place] if chain else "no_op"
        node.measures |= dict.fromkeys(MEASURES.get(last, ()))
        return End(chain, node, last, chain[place + 1 :])

    def numbers(self, tensor: torch.Tensor) -> Array:
        """One per chain, in their order; infinity where there is none."""
        if tensor.dim() == 0:
            return finite([through(float(tensor), chain) for chain in self.ends])
        moments = self._moments(tensor)
        found = finite([end.number(moments) for end in self.ends.values()])
        if tensor.dtype != torch.float64:
            self._again(tensor, found, moments)
        return found

    def _again(self, tensor: torch.Tensor, found: Array, moments: dict[Chain, Moments]) -> None:
        """Doubtful numbers once more, in double precision."""
        pairs = enumerate(zip(self.ends.values(), found, strict=True))
        wrong = {end.chain: place for place, (end, x) in pairs if end.doubtful(float(x), moments)}
        if wrong:
            if tuple(wrong) not in self._parts:
                self._parts[tuple(wrong)] = Tree(wrong)
            found[list(wrong.values())] = self._parts[tuple(wrong)].numbers(tensor.double())

    def _moments(self, tensor: torch.Tensor) -> dict[Chain, Moments]:
        """Of all nodes."""
        resolution = torch.finfo(tensor.dtype).eps
        found: dict[Chain, Moments] = {}
        for steps in self._plans:
            found |= {step.node.prefix: Moments(len(tensor), resolution) for step in steps if step.measured}
            for block in blocks(tensor):
                walk(block, steps, found)
            for prefix in [step.node.prefix for step in steps if step.measured and step.node.prefix]:
                exact(found[prefix], found[prefix[:-1]], prefix[-1])
        return found


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
            for measure in (sums if prefix else exact_sums, *step.node.measures):
                measure(tensors[len(prefix)], work, found[prefix])


def finite(numbers: list[float]) -> Array:
    found = np.array(numbers, dtype=np.float64)
    return np.where(np.isfinite(found), found, np.inf)
