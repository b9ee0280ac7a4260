"""Which networks the micro-benchmark trains, in an order of which every beginning is balanced.

A block of 24 networks has every operator as often as any other, in every cell (2 or 4 layers, 48 or 96 wide) and at
every place. The first block has one operator per network; then come pairs of operators, followed by the same networks
with their layers in reverse, and at last the first block with its large layers at the other end.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import NamedTuple

from archwright.networks.flexibert.mixers import MIXERS
from archwright.search import Config
from archwright.spaces.micro_lm import MICRO_LM

OPERATORS = tuple(MIXERS)
CELLS = ((2, 48), (4, 48), (2, 96), (4, 96))
SHIFTS = (0, 1, 2, 3)
"""How far the second operator of a network is behind its first in the list; 3 is its own mirror."""
PATTERNS = ((0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0))
"""Places of both operators among four layers."""
HELD_OUT = 0.3
SEEDS = (0, 1)
SLOWER = 0.5
"""The second learning rate, as a factor, of two-layer networks with one operator."""


class Layer(NamedTuple):
    """One layer of a design."""

    operation: str
    heads: int
    size: str


class Job(NamedTuple):
    """One training."""

    config: Config
    seed: int
    rate: float


def blocks() -> Iterator[list[Config]]:
    """24 networks each, seven times."""
    for shift in SHIFTS:
        networks = [network(first, shift, cell) for first in range(len(OPERATORS)) for cell in range(len(CELLS))]
        yield networks
        if shift in (1, 2):
            yield [mirror(config) for config in networks]
    yield [mirror(network(first, 0, cell)) for first in range(len(OPERATORS)) for cell in range(len(CELLS))]


def network(first: int, shift: int, cell: int) -> Config:
    """Heads and the end at which large layers stand alternate over operators and cells."""
    depth, width = CELLS[cell]
    pair = (OPERATORS[first], OPERATORS[(first + shift) % len(OPERATORS)])
    pattern = PATTERNS[shift % len(PATTERNS)] if depth == 4 else (0, 1)
    large_first = (first + cell // 2 + shift) % 2 == 0
    layers = [
        Layer(
            pair[kind],
            (2, 4)[(first + cell + shift // 2) % 2],
            "large" if (place < depth // 2) == large_first else "small",
        )
        for place, kind in enumerate(pattern)
    ]
    return as_config(width, layers)


def as_config(width: int, layers: list[Layer]) -> Config:
    config: Config = {"layers": len(layers), "hidden": width}
    for place, layer in enumerate(layers):
        config |= {f"{name}.{place}": value for name, value in layer._asdict().items()}
    return config


def layers_of(config: Config) -> list[Layer]:
    return [Layer(*(config[f"{name}.{place}"] for name in Layer._fields)) for place in range(config["layers"])]


def mirror(config: Config) -> Config:
    return as_config(config["hidden"], layers_of(config)[::-1])


def jobs() -> Iterator[Job]:
    """Every network with both seeds; after the first block its two-layer networks with the second learning rate."""
    seen: set[str] = set()
    for number, block in enumerate(blocks()):
        fresh = [config for config in block if design_name(config) not in seen]
        seen |= {design_name(config) for config in fresh}
        for config in gate_first(fresh) if number == 0 else fresh:
            yield from (Job(config, seed, 1.0) for seed in SEEDS)
        if number == 0:
            yield from (Job(config, 0, SLOWER) for config in block if config["layers"] == 2)


def gate_first(block: list[Config]) -> list[Config]:
    """The ten networks of the gate before the others: every operator in the smallest cell, attention in all."""
    attention = [config for config in block if config["operation.0"] == OPERATORS[0]]
    smallest = [config for config in block if (config["layers"], config["hidden"]) == CELLS[0]]
    largest = [config for config in block if (config["layers"], config["hidden"]) == CELLS[-1]]
    first = list({design_name(config): config for config in [*smallest, *attention, largest[-1]]}.values())
    return [*first, *(config for config in block if config not in first)]


def design_name(config: Config) -> str:
    """Such as 2x48 SA/SDP:2:large LT/DCT:4:small."""
    words = [":".join(map(str, layer)) for layer in layers_of(config)]
    return f"{config['layers']}x{config['hidden']} {' '.join(words)}"


def is_held_out(config: Config) -> bool:
    """By a hash of the design, so that nobody chooses."""
    text = json.dumps(MICRO_LM.canonical(config), sort_keys=True)
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32 < HELD_OUT
