"""One recipe for all that describe the same cell."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from itertools import permutations
from typing import Any

from archwright.networks.cells.recipe import INPUT, OPS, Recipe, effective_nodes, entering, leaving, states_of

Plain = dict[str, dict[str, Any]]


def canonical_recipe(recipe: Recipe) -> Plain:
    """Nodes in one order with one naming, inputs sorted where their order does not matter, unused nodes dropped.

    States but the main one may be numbered in any way, so the first of all numberings is taken. Nodes are told apart
    by all they are made of and all they go into (colour refinement); what stays equal then is nearly always symmetric.
    """
    nodes = {name: recipe[name] for name in effective_nodes(recipe)}
    others = range(1, states_of(recipe))
    found = [_name_nodes(renumber_states(nodes, (0, *order))) for order in permutations(others)]
    return min(found, key=json.dumps)


def renumber_states(recipe: Recipe, order: Iterable[int]) -> Plain:
    """The cell with only these of its states, numbered in this order; the others' last nodes become plain nodes."""
    places = {old: new for new, old in enumerate(order)}
    names = {entering(old): entering(new) for old, new in places.items()}
    for old in range(states_of(recipe)):
        names[leaving(old)] = leaving(places[old]) if old in places else f"was_{leaving(old)}"
    return rename_nodes(recipe, names)


def rename_nodes(recipe: Recipe, names: Mapping[str, str]) -> Plain:
    """The same graph with other names; those not mentioned stay."""
    return {
        names.get(name, name): {"op": node["op"], "input": [names.get(source, source) for source in node["input"]]}
        for name, node in recipe.items()
    }


def _name_nodes(recipe: Recipe) -> Plain:
    order = _in_order(recipe, _colours(recipe))
    fixed = set(map(leaving, range(states_of(recipe))))
    numbers = iter(range(len(order)))
    names = {name: name if name in fixed else f"node_{next(numbers)}" for name in order}
    outer = [INPUT, *map(entering, range(states_of(recipe)))]
    place = {name: at for at, name in enumerate([*outer, *(names[name] for name in order)])}
    plain = rename_nodes({name: recipe[name] for name in order}, names)
    return {
        name: node | {"input": sorted(node["input"], key=place.__getitem__)} if OPS[node["op"]].commutes else node
        for name, node in plain.items()
    }


def _colours(recipe: Recipe) -> dict[str, int]:
    """A number per node and input that does not depend on names (of plain nodes) and order."""
    fixed = [INPUT, *map(entering, range(states_of(recipe)))]
    ends = {leaving(k): k for k in range(states_of(recipe))}
    colours = {name: at for at, name in enumerate(fixed)} | dict.fromkeys(recipe, len(fixed))
    users = defaultdict(list)
    for name, node in recipe.items():
        for at, source in enumerate(node["input"]):
            users[source].append((name, 0 if OPS[node["op"]].commutes else at))
    for _ in recipe:
        keys = {name: (*_key(name, recipe, colours, users[name]), ends.get(name, -1)) for name in recipe}
        ranks = {key: rank for rank, key in enumerate(sorted(set(keys.values())), start=len(fixed))}
        colours |= {name: ranks[key] for name, key in keys.items()}
    return colours


def _key(name: str, recipe: Recipe, colours: Mapping[str, int], users: list[tuple[str, int]]) -> tuple[Any, ...]:
    node = recipe[name]
    sources = [colours[source] for source in node["input"]]
    below = tuple(sorted(sources) if OPS[node["op"]].commutes else sources)
    above = tuple(sorted((colours[user], at) for user, at in users))
    return colours[name], node["op"], below, above


def _in_order(recipe: Recipe, colours: Mapping[str, int]) -> list[str]:
    """Each node after those it reads; of several possible ones the one with the lowest colour first."""
    open_inputs = {name: {source for source in node["input"] if source in recipe} for name, node in recipe.items()}
    ready: list[tuple[int, str]] = []
    for name in [name for name, waits in open_inputs.items() if not waits]:
        heappush(ready, (colours[name], name))
    order = []
    while ready:
        done = heappop(ready)[1]
        order.append(done)
        for name, waits in open_inputs.items():
            if done in waits:
                waits.discard(done)
                if not waits:
                    heappush(ready, (colours[name], name))
    return order
