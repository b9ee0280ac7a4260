"""What may be chosen, as data, and all that follows: drawing, mutating, crossing, enumerating and the corners."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.errors import BadInput

Value = int | float | str | bool
Config = dict[str, Any]

INLINE_BITS = 64
EPOCHS = "epochs"
"""The choice that says how long a design is trained, in spaces where every design is trained by itself."""


@dataclass(frozen=True)
class Bits:
    """A choice of on/off switches; in a config it is one string, the packed bits in base64."""

    length: int

    @property
    def inline(self) -> bool:
        """True when the study keeps one 0/1 parameter per switch, so that model-based samplers can use it."""
        return self.length <= INLINE_BITS

    def pack(self, bits: NDArray[np.bool_]) -> str:
        if bits.shape != (self.length,):
            shape = f"got shape {bits.shape}"
            raise BadInput(f"bits must be one row of {self.length} switches, {shape}; pass one per switch.")
        return base64.b64encode(np.packbits(bits.astype(bool)).tobytes()).decode("ascii")

    def unpack(self, text: str) -> NDArray[np.bool_]:
        expected = (self.length + 7) // 8
        try:
            packed = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
        except binascii.Error as error:
            raise BadInput(f"packed bits must be base64, got {text[:20]!r}; write them with Bits.pack.") from error
        if packed.size != expected:
            needs = f"{self.length} bits need {expected} bytes"
            raise BadInput(f"{needs}, got {packed.size}; is the config of another model?")
        return np.unpackbits(packed, count=self.length).astype(bool)


class Listed(tuple[str, ...]):
    """A choice that samplers leave at its first value: others are only tried when a config with them is listed."""


Choice = Sequence[Value] | Bits
Choices = Mapping[str, Choice]


def sample(choices: Choices, rng: np.random.Generator) -> Config:
    """A random config; switches are uniform in *size*: how many are on is drawn first, then which (Klein et al., B)."""
    return {name: _draw(choice, rng) for name, choice in choices.items()}


def mutate(choices: Choices, config: Config, rng: np.random.Generator) -> Config:
    """A copy with another value in one random dimension (Klein et al., Algorithm 5); each switch is a dimension."""
    sizes = {name: _dimensions(choice) for name, choice in choices.items()}
    config = {**config, **_defaults(choices)}
    if not any(sizes.values()):
        return config
    place = int(rng.integers(sum(sizes.values())))
    for name, size in sizes.items():
        if place < size:
            return {**config, name: _change(choices[name], config[name], place, rng)}
        place -= size
    raise AssertionError("unreachable: place is smaller than the sum of the sizes")


def mutate_each(choices: Choices, config: Config, rng: np.random.Generator, *, rate: float) -> Config:
    """A copy in which every choice has another value at this rate; of long rows of switches about one flips."""
    child = {**config, **_defaults(choices)}
    for name, choice in choices.items():
        if isinstance(choice, Listed):
            continue
        if isinstance(choice, Bits):
            flips = rng.random(choice.length) < min(rate, 1 / max(choice.length, 1))
            child[name] = choice.pack(choice.unpack(config[name]) ^ flips)
        elif rng.random() < rate and len(choice) > 1:
            child[name] = _change(choice, config[name], 0, rng)
    return child


def crossover(choices: Choices, one: Config, other: Config, rng: np.random.Generator) -> Config:
    """A child that takes every value, and every single switch, from either parent with equal chance."""
    child: Config = {}
    for name, choice in choices.items():
        if isinstance(choice, Bits):
            mask = rng.random(choice.length) < 0.5
            child[name] = choice.pack(np.where(mask, choice.unpack(one[name]), choice.unpack(other[name])))
        else:
            child[name] = one[name] if rng.random() < 0.5 else other[name]
    return {**child, **_defaults(choices)}


def smallest(choices: Choices) -> Config:
    """The first of every sequence and all switches off."""
    return _corner(choices, 0.0)


def middle(choices: Choices) -> Config:
    """The middle of every sequence and the first half of the switches on."""
    return _corner(choices, 0.5)


def largest(choices: Choices) -> Config:
    """The last of every sequence and all switches on."""
    return _corner(choices, 1.0)


def enumerate_configs(choices: Choices, canonical: Callable[[Config], Config] = dict) -> Iterator[Config]:
    """All configs, one by one, the last choice changing fastest.

    With `canonical` one canonical config for each design, without looking at all configs; a choice that decides whether
    another one has an effect must come before that other one.
    """

    def extend(names: Sequence[str], start: Config) -> Iterator[Config]:
        if not names:
            yield start
            return
        name, seen = names[0], set()
        for value in _values(choices[name]):
            config = canonical({**start, name: value})
            if config[name] not in seen:
                seen.add(config[name])
                yield from extend(names[1:], config)

    return extend(list(choices), canonical(smallest(choices)))


def dimensions(choices: Choices) -> int:
    """How many things can be varied one by one: sequences with more than one value, and switches."""
    return sum(_dimensions(choice) for choice in choices.values())


def _defaults(choices: Choices) -> Config:
    """The first value of every listed choice."""
    return {name: choice[0] for name, choice in choices.items() if isinstance(choice, Listed)}


def _values(choice: Choice) -> Iterator[Value]:
    if not isinstance(choice, Bits):
        yield from choice[:1] if isinstance(choice, Listed) else choice
        return
    for switches in product((False, True), repeat=choice.length):
        yield choice.pack(np.array(switches, dtype=bool))


def _draw(choice: Choice, rng: np.random.Generator) -> Value:
    if isinstance(choice, Listed):
        return choice[0]
    if not isinstance(choice, Bits):
        return choice[int(rng.integers(len(choice)))]
    bits = np.zeros(choice.length, dtype=bool)
    count = int(rng.integers(choice.length + 1))
    bits[rng.choice(choice.length, size=count, replace=False)] = True
    return choice.pack(bits)


def _dimensions(choice: Choice) -> int:
    if isinstance(choice, Listed):
        return 0
    return choice.length if isinstance(choice, Bits) else int(len(choice) > 1)


def _change(choice: Choice, value: Any, place: int, rng: np.random.Generator) -> Value:
    if isinstance(choice, Bits):
        bits = choice.unpack(value)
        bits[place] = ~bits[place]
        return choice.pack(bits)
    position = choice.index(value)
    step = int(rng.integers(1, len(choice)))
    return choice[(position + step) % len(choice)]


def _corner(choices: Choices, share: float) -> Config:
    def value(choice: Choice) -> Value:
        if isinstance(choice, Bits):
            return choice.pack(np.arange(choice.length) < int(share * choice.length))
        return choice[0 if isinstance(choice, Listed) else min(int(share * len(choice)), len(choice) - 1)]

    return {name: value(choice) for name, choice in choices.items()}
