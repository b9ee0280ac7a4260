"""One recurrent layer: the cell of a recipe, run over time."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.nn.functional import dropout, leaky_relu, linear

from archwright.networks.cells.products import Products
from archwright.networks.cells.recipe import (
    INPUT,
    OPS,
    Recipe,
    effective_nodes,
    entering,
    leaving,
    reachable,
    states_of,
)

State = tuple[torch.Tensor, ...]
"""The states of one layer, each batch x units."""
Values = dict[str, torch.Tensor]
Weights = Mapping[tuple[str, int], torch.Tensor]
"""By node and place among its inputs."""
Wide = tuple[torch.Tensor, torch.Tensor]
"""What is added at every step, steps x batch x outputs, and the weight, outputs x inputs."""
Product = Callable[[int, torch.Tensor], torch.Tensor]
"""Of the number of the step and a vector."""

FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "elementwise_sum": torch.add,
    "elementwise_prod": torch.mul,
    "blend": lambda gate, one, other: torch.lerp(other, one, gate),  # gate * one + (1 - gate) * other
    "activation_tanh": torch.tanh,
    "activation_sigm": torch.sigmoid,
    "activation_leaky_relu": leaky_relu,
}
"""What the nodes without weights do."""


class CellLayer(nn.Module):
    """A recurrent layer whose cell is a recipe.

    What does not depend on the states is computed for all steps at once; in the loop over time the linears that read
    the same node are one product. The linears are therefore never called: listen to their weights, not to them. The tap
    `output` is called once with all steps, batch x time x units. A tap of `activations` lies on the path of gradients:
    it is called once with all steps where the node does not depend on the states, else at every step, batch x units.
    """

    def __init__(self, recipe: Recipe, inputs: int, units: int, *, weight_dropout: float = 0.0):
        super().__init__()
        self.recipe, self.units, self.weight_dropout = recipe, units, weight_dropout
        self.states = states_of(recipe)
        self.linears, widths = nn.ModuleDict(), defaultdict(lambda: units, {INPUT: inputs})
        for name, node in recipe.items():
            if _has_weights(node):  # one weight per input and one bias, which the first of the linears holds
                linears = (nn.Linear(widths[source], units, bias=not n) for n, source in enumerate(node["input"]))
                self.linears[_key(name)] = nn.ModuleList(linears)
        nodes = effective_nodes(recipe)
        states = {entering(k) for k in range(self.states)}
        self.moving = [name for name in nodes if states & reachable(recipe, [name])]
        self.still = [name for name in nodes if name not in self.moving]
        self.readers = _readers(recipe, self.moving, {*states, *self.moving})
        self.output = nn.Identity()
        self.activations = nn.ModuleDict({_key(n): nn.Identity() for n in nodes if OPS[recipe[n]["op"]].activation})

    def forward(
        self, x: torch.Tensor, state: State | None = None, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, State]:
        """The main state after every step (batch x time x units), and all states after the last one.

        Where `mask` (batch x time) is False there is no step: the states stay as they were.
        """
        weights = self._weights()
        known: Values = {INPUT: x.transpose(0, 1).contiguous()}  # time x batch x units: a step is one piece of memory
        for name in self.still:
            value = self._value(name, known, self._ahead(name, known, weights))
            known[name] = self._tap(name, value.transpose(0, 1)).transpose(0, 1)
        first = state or tuple(x.new_zeros(x.shape[0], self.units) for _ in range(self.states))
        wide = self._wide(known, weights)
        if torch.compiler.is_exporting():
            every, last = self._scan(known, wide, first, mask)
            return self.output(every.transpose(0, 1)), last
        main, last = self._loop(known, {name: Products(*pair) for name, pair in wide.items()}, first, mask)
        return self.output(torch.stack(main, 1)), last

    def _loop(
        self, known: Values, products: Mapping[str, Products], state: State, mask: torch.Tensor | None
    ) -> tuple[list[torch.Tensor], State]:
        """The main state after each step, and all states after the last one."""
        fixed = {name: known[name].unbind() for name in self.still}
        main = []
        for step in range(len(known[INPUT])):
            now = {name: values[step] for name, values in fixed.items()}
            self._step(step, now, products, state)
            after = tuple(now[leaving(k)] for k in range(self.states))
            state = after if mask is None else _where(mask[:, step, None], after, state)
            main.append(state[0])
        return main, state

    def _scan(
        self, known: Values, wide: Mapping[str, Wide], state: State, mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, State]:
        """The same as one operation for any number of steps, which a graph needs; time x batch x units."""
        real = torch.ones_like(known[INPUT][..., 0], dtype=torch.bool) if mask is None else mask.T
        given = [real[..., None], *(known[name] for name in self.still), *(starts for starts, _ in wide.values())]

        def step(state: State, row: list[torch.Tensor]) -> tuple[State, torch.Tensor]:
            now = dict(zip(self.still, row[1:], strict=False))
            starts = zip(wide, row[1 + len(self.still) :], strict=True)
            products = {name: partial(_add_product, start, wide[name][1]) for name, start in starts}
            self._step(0, now, products, state)
            after = _where(row[0], tuple(now[leaving(k)] for k in range(self.states)), state)
            return after, after[0].clone()

        last, main = scan(step, state, given)
        return main, tuple(last)

    def _step(self, step: int, now: Values, products: Mapping[str, Product], state: State) -> None:
        """Fill `now` with all nodes of one step."""
        sums: Values = {}

        def arrive(name: str, value: torch.Tensor) -> None:
            now[name] = value
            if name in products:
                parts = products[name](step, value).split(self.units, -1)
                for (reader, _), part in zip(self.readers[name], parts, strict=True):
                    sums[reader] = sums[reader] + part if reader in sums else part

        for place, value in enumerate(state):
            arrive(entering(place), value)
        for name in self.moving:
            arrive(name, self._tap(name, self._value(name, now, sums.get(name))))

    def _tap(self, name: str, value: torch.Tensor) -> torch.Tensor:
        return self.activations[_key(name)](value) if _key(name) in self.activations else value

    def _wide(self, known: Values, weights: Weights) -> dict[str, Wide]:
        """For each node that linears read in the loop, all their weights at once and what is added to the product.

        That is what is known ahead of the readers, given to each of them once.
        """
        steps, batch, _ = known[INPUT].shape
        ahead = {name: self._ahead(name, known, weights) for name in self.moving}
        found = {}
        for source, readers in self.readers.items():
            starts = [ahead.pop(name, None) for name, _ in readers]
            shaped = [known[INPUT].new_zeros(1) if start is None else start for start in starts]
            wide = torch.cat([start.expand(steps, batch, self.units) for start in shaped], -1)
            found[source] = wide, torch.cat([weights[reader] for reader in readers])
        return found

    def multiply_adds(self) -> int:
        """Of the linears that have an effect, per token."""
        nodes = self.still + self.moving
        return sum(linear.weight.numel() for name in nodes for linear in self._linears(name))

    def _value(self, name: str, values: Values, total: torch.Tensor | None) -> torch.Tensor:
        if total is not None:
            return total
        node = self.recipe[name]
        return FUNCTIONS[node["op"]](*(values[source] for source in node["input"]))

    def _ahead(self, name: str, known: Values, weights: Weights) -> torch.Tensor | None:
        """Of a linear its bias and all it reads outside the loop, for all steps; nothing of other nodes."""
        if _key(name) not in self.linears:
            return None
        total = self._linears(name)[0].bias
        for place, source in enumerate(self.recipe[name]["input"]):
            if source in known:
                total = total + linear(known[source], weights[name, place])
        return total

    def _weights(self) -> dict[tuple[str, int], torch.Tensor]:
        """Weights of the linears in use; while training a part of all but those of x is dropped."""
        found = {}
        for name in self.still + self.moving:
            for place, module in enumerate(self._linears(name)):
                share = 0.0 if self.recipe[name]["input"][place] == INPUT else self.weight_dropout
                found[name, place] = dropout(module.weight, share, self.training) if share else module.weight
        return found

    def _linears(self, name: str) -> list[nn.Linear]:
        return list(self.linears[_key(name)]) if _key(name) in self.linears else []


def _key(name: str) -> str:
    """Name of a node's module: a node may be called like a method of nn.ModuleDict."""
    return f"{name}_"


def _add_product(start: torch.Tensor, weight: torch.Tensor, _: int, vector: torch.Tensor) -> torch.Tensor:
    return start + vector @ weight.mT


def _where(real: torch.Tensor, after: State, before: State) -> State:
    return tuple(torch.where(real, new, old) for new, old in zip(after, before, strict=True))


def _has_weights(node: Mapping[str, str]) -> bool:
    return OPS[node["op"]].weighted


def _readers(recipe: Recipe, moving: list[str], sources: set[str]) -> dict[str, list[tuple[str, int]]]:
    """Which inputs of which linears read each of these sources."""
    found = defaultdict(list)
    for name in filter(lambda name: _has_weights(recipe[name]), moving):
        for place, source in enumerate(recipe[name]["input"]):
            if source in sources:
                found[source].append((name, place))
    return dict(found)
