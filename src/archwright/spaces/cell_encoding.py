"""A recurrent cell as a list of fixed length: what each node does, what it reads, and which nodes are the states.

Every list means a cell: values count round and round over what there is to choose at that place, so that sampling,
mutation and crossover need not know about graphs. Where a node asks for more different inputs than there are, it is a
linear. Where the input or the main state would have no effect, the last node of the main state becomes a linear that
reads both; a state that nothing reads is dropped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from archwright.networks.cells.canonical import canonical_recipe, rename_nodes, renumber_states
from archwright.networks.cells.recipe import INPUT, MOST_STATES, OPS, Recipe, entering, leaving, reachable, states_of
from archwright.search import Config

MOST_NODES = 24
"""Klyuchnikov et al. 2022: 21 nodes inside and up to 3 last ones."""
MOST_INPUTS = 3


@dataclass(frozen=True)
class Slot:
    """What a node of the list can be."""

    op: str
    inputs: int

    def sources(self, states: int, before: int) -> list[str]:
        """What it may read: the input (only linears), the states, the nodes before it."""
        outer = [INPUT] if OPS[self.op].weighted else []
        return [*outer, *map(entering, range(states)), *map(node_name, range(before))]


SLOTS: dict[str, Slot] = {
    "linear_2": Slot("linear", 2),
    "linear_3": Slot("linear", 3),
    **{name: Slot(name, op.inputs[0]) for name, op in OPS.items() if not op.weighted},
}
FALLBACK = SLOTS["linear_2"]

CHOICES: Mapping[str, Sequence[int | str]] = {
    "states": range(1, MOST_STATES + 1),
    "nodes": range(1, MOST_NODES + 1),
    **{f"output_{state}": range(MOST_NODES) for state in range(MOST_STATES)},
    **{f"op_{node}": tuple(SLOTS) for node in range(MOST_NODES)},
    **{
        f"input_{node}_{place}": range(1 + MOST_STATES + node)
        for node in range(MOST_NODES)
        for place in range(MOST_INPUTS)
    },
}
SIZE = prod(map(len, CHOICES.values()))


def node_name(number: int) -> str:
    return f"node_{number}"


def read_cell(config: Config) -> Recipe:
    """The cell as the list says, which may hold nodes and states without effect, or leave out the input."""
    states, nodes = min(config["states"], config["nodes"]), range(config["nodes"])
    names = list(_pick(list(map(node_name, nodes)), [config[f"output_{k}"] for k in range(states)]))
    recipe = {node_name(node): _node(config, node, states) for node in nodes}
    return rename_nodes(recipe, {name: leaving(state) for state, name in enumerate(names)})


def missing_effects(recipe: Recipe) -> list[str]:
    """The input, if it never has an effect on the main state, and the states that nothing reads."""
    read = reachable(recipe, map(leaving, range(states_of(recipe))))
    unread = [entering(k) for k in range(states_of(recipe)) if entering(k) not in read]
    return unread if INPUT in reachable(recipe, [leaving(0)], over_time=True) else [INPUT, *unread]


def decode(config: Config) -> Recipe:
    """The canonical recipe of the cell that the list means."""
    return canonical_recipe(_trim(_mend(_trim(read_cell(config)))))


def encode(recipe: Recipe) -> Config | None:
    """The list of a canonical recipe; nothing if no list means exactly this one. Choices without effect are first."""
    config: Config = {name: values[0] for name, values in CHOICES.items()}
    names = list(recipe)
    slot_names = {(slot.op, slot.inputs): name for name, slot in reversed(SLOTS.items())}
    slots = [slot_names.get((recipe[name]["op"], len(recipe[name]["input"]))) for name in names]
    if len(names) > MOST_NODES or None in slots:
        return None
    config |= {"states": states_of(recipe), "nodes": len(names)}
    config |= _places("output", names, [leaving(k) for k in range(states_of(recipe))])
    plain = rename_nodes(recipe, {name: node_name(number) for number, name in enumerate(names)})
    for number, (node, slot) in enumerate(zip(plain.values(), slots, strict=True)):
        assert slot is not None
        config[f"op_{number}"] = slot
        sources = SLOTS[slot].sources(states_of(recipe), number)
        if len(set(node["input"])) < len(node["input"]):
            return None
        config |= _places(f"input_{number}", sources, node["input"])
    return config if decode(config) == recipe else None


def _node(config: Config, number: int, states: int) -> dict[str, object]:
    slot = SLOTS[config[f"op_{number}"]]
    sources = slot.sources(states, number)
    if len(sources) < slot.inputs:
        slot, sources = FALLBACK, FALLBACK.sources(states, number)
    values = [config[f"input_{number}_{place}"] for place in range(slot.inputs)]
    return {"op": slot.op, "input": list(_pick(sources, values))}


def _pick(names: list[str], values: Sequence[int]) -> Iterator[str]:
    """Different ones of these, each value counting over those still left."""
    for value in values:
        yield names.pop(value % len(names))


def _places(prefix: str, names: Sequence[str], picks: Sequence[str]) -> Config:
    """Values with which `_pick` gives these picks."""
    left, values = list(names), {}
    for number, name in enumerate(picks):
        values[f"{prefix}_{number}"] = left.index(name)
        left.remove(name)
    return values


def _trim(recipe: Recipe) -> Recipe:
    """Without the states that nothing reads; the main one always stays."""
    unread = set(missing_effects(recipe))
    kept = [k for k in range(states_of(recipe)) if k == 0 or entering(k) not in unread]
    return recipe if len(kept) == states_of(recipe) else _trim(renumber_states(recipe, kept))


def _mend(recipe: Recipe) -> Recipe:
    if not {INPUT, entering(0)} & set(missing_effects(recipe)):
        return recipe
    first = [name for name in recipe[leaving(0)]["input"][:1] if name not in (INPUT, entering(0))]
    return {**recipe, leaving(0): {"op": FALLBACK.op, "input": [*first, INPUT, entering(0)]}}
