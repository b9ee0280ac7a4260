"""The recipe of a recurrent cell: a graph of named nodes, as NAS-Bench-NLP writes it (Klyuchnikov et al. 2022).

A recipe is a plain dict, `{"node_0": {"op": "linear", "input": ["x", "h_prev_0"]}, ..., "h_new_0": {...}}`. Nodes read
the input `x`, the states entering the step `h_prev_0..2`, and each other; `h_new_0..2` are the states leaving it, and
`h_new_0` is also what the layer gives to the next one. Nodes may stand in any order.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from archwright.errors import BadInput

Recipe = Mapping[str, Mapping[str, Any]]

INPUT = "x"
MOST_STATES = 3
_NAME = re.compile(r"[A-Za-z]\w*")
_ENTERING = re.compile(r"h_prev_(\d+)")
_LEAVING = re.compile(r"h_new_(\d+)")


@dataclass(frozen=True)
class Op:
    """What a node can do, as far as the graph is concerned."""

    inputs: tuple[int, ...]
    """How many inputs it may have."""
    commutes: bool = False
    """True when the order of the inputs does not matter (a linear has a weight of its own for each)."""
    weighted: bool = False
    """True for the linear: only it has parameters, and only it may read x, whose width is another one."""
    activation: bool = False


OPS: dict[str, Op] = {
    "linear": Op((1, 2, 3), commutes=True, weighted=True),
    "elementwise_sum": Op((2,), commutes=True),
    "elementwise_prod": Op((2,), commutes=True),
    "blend": Op((3,)),
    "activation_tanh": Op((1,), activation=True),
    "activation_sigm": Op((1,), activation=True),
    "activation_leaky_relu": Op((1,), activation=True),
}


def entering(state: int) -> str:
    """Name of this state before the step."""
    return f"h_prev_{state}"


def leaving(state: int) -> str:
    """Name of this state after the step."""
    return f"h_new_{state}"


def states_of(recipe: Recipe) -> int:
    """How many states a cell carries from step to step."""
    return sum(bool(_LEAVING.fullmatch(name)) for name in recipe)


def check_recipe(recipe: Any) -> None:
    """Raises BadInput, with the node, for whatever is no recipe of a cell."""
    if not isinstance(recipe, Mapping) or not recipe:
        raise BadInput(f"a recipe must name its nodes, got {str(recipe)[:40]!r}; give {{node: {{op, input}}, ...}}.")
    for name, node in recipe.items():
        _check_node(name, node)
    count = _check_states(recipe)
    known = {*recipe, INPUT, *map(entering, range(count))}
    for name, node in recipe.items():
        for source in node["input"]:
            if source not in known:
                outer = ", ".join([INPUT, *map(entering, range(count))])
                raise BadInput(f"node {name} reads {source!r}, which is neither a node nor one of {outer}.")
    order(recipe)


def order(recipe: Recipe) -> list[str]:
    """All nodes, each after those it reads."""
    try:
        sorter = TopologicalSorter({name: [i for i in node["input"] if i in recipe] for name, node in recipe.items()})
        return list(sorter.static_order())
    except CycleError as error:
        raise BadInput(f"a recipe must have no circle, got {' -> '.join(error.args[1])}; cut one of these.") from error


def reachable(recipe: Recipe, ends: Iterable[str], *, over_time: bool = False) -> set[str]:
    """Nodes and inputs that these nodes are made of; `over_time` follows states into the step before as well."""
    back = {entering(k): leaving(k) for k in range(states_of(recipe))} if over_time else {}
    seen: set[str] = set()
    waiting = list(ends)
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            waiting += recipe[name]["input"] if name in recipe else [back[name]] if name in back else []
    return seen


def effective_nodes(recipe: Recipe) -> list[str]:
    """The nodes of which some state is made, each after those it reads."""
    needed = reachable(recipe, map(leaving, range(states_of(recipe))))
    return [name for name in order(recipe) if name in needed]


def longest_path(recipe: Recipe) -> int:
    """Number of nodes on the longest way through one step of the cell."""
    depth: dict[str, int] = {}
    for name in effective_nodes(recipe):
        depth[name] = 1 + max(depth.get(source, 0) for source in recipe[name]["input"])
    return max(depth.values())


def _check_node(name: Any, node: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == INPUT or _ENTERING.fullmatch(name):
        raise BadInput(f"a node's name must be a word other than x and h_prev_*, got {name!r}; rename it.")
    if not isinstance(node, Mapping) or not {"op", "input"} <= set(node):
        raise BadInput(f"node {name} must have op and input, got {str(node)[:60]!r}.")
    if not isinstance(node["op"], str) or node["op"] not in OPS:
        raise BadInput(f"node {name} has the op {node['op']!r}; choose from {', '.join(OPS)}.")
    _check_inputs(name, OPS[node["op"]], node["input"])


def _check_inputs(name: str, op: Op, inputs: Any) -> None:
    if not isinstance(inputs, Sequence) or isinstance(inputs, str) or not all(isinstance(i, str) for i in inputs):
        raise BadInput(f"node {name} must have a list of names as input, got {str(inputs)[:60]!r}.")
    if len(inputs) not in op.inputs:
        either = " or ".join(map(str, op.inputs))
        raise BadInput(f"node {name} must have {either} inputs, got {len(inputs)}: {list(inputs)}.")
    if INPUT in inputs and not op.weighted:
        raise BadInput(f"node {name} reads x, whose width is not the cell's; only a linear may: put one between.")


def _check_states(recipe: Recipe) -> int:
    numbers = sorted(int(found[1]) for name in recipe if (found := _LEAVING.fullmatch(name)))
    if numbers != list(range(len(numbers))) or not 1 <= len(numbers) <= MOST_STATES:
        given = ", ".join(map(leaving, numbers)) or "none"
        raise BadInput(f"a recipe must have h_new_0, or up to h_new_{MOST_STATES - 1} without a gap, got {given}.")
    return len(numbers)
