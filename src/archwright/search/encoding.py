"""How a config lies in an Optuna trial: small choices as parameters, long rows of switches as one packed attribute."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, Trial

from archwright.errors import BadInput
from archwright.search.choices import Bits, Choice, Choices, Config

PACKED = "packed:"


def distributions(choices: Choices) -> dict[str, BaseDistribution]:
    """The study's parameters: integers for a range, 0/1 per inline switch, else categories; packed ones have none."""
    space: dict[str, BaseDistribution] = {}
    for name, choice in choices.items():
        if isinstance(choice, Bits):
            space |= {f"{name}[{i}]": IntDistribution(0, 1) for i in range(choice.length if choice.inline else 0)}
        elif not len(choice):
            raise BadInput(f"every choice needs a value, got none for {name!r}; leave the choice out or give it one.")
        elif isinstance(choice, range):
            space[name] = IntDistribution(min(choice), max(choice), step=abs(choice.step))
        else:
            space[name] = CategoricalDistribution(tuple(choice))
    return space


def packed_names(choices: Choices) -> list[str]:
    """The choices that are kept as one packed attribute of a trial instead of as parameters."""
    return [name for name, choice in choices.items() if isinstance(choice, Bits) and not choice.inline]


def encode(choices: Choices, config: Config) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the user attributes of a trial with this config."""
    params: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    for name, choice in choices.items():
        if not isinstance(choice, Bits):
            params[name] = config[name]
        elif choice.inline:
            bits = choice.unpack(config[name])
            params.update({f"{name}[{i}]": int(bit) for i, bit in enumerate(bits)})
        else:
            attrs[PACKED + name] = config[name]
    return params, attrs


def config_of(choices: Choices, trial: FrozenTrial | Trial) -> Config:
    """The config a trial stands for."""
    params, attrs = trial.params, trial.user_attrs
    config: Config = {}
    for name, choice in choices.items():
        if not isinstance(choice, Bits):
            config[name] = params[name]
        elif choice.inline:
            config[name] = choice.pack(np.array([params[f"{name}[{i}]"] for i in range(choice.length)], dtype=bool))
        else:
            config[name] = attrs[PACKED + name]
    return config


def config_key(config: Config) -> str:
    """The same text for equal configs."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"))


def is_complete(choices: Choices, trial: FrozenTrial) -> bool:
    """True when all of the config was written, false when its worker died while drawing it."""

    def has(name: str, choice: Choice) -> bool:
        if not isinstance(choice, Bits):
            return name in trial.params
        if not choice.inline:
            return PACKED + name in trial.user_attrs
        return all(f"{name}[{i}]" in trial.params for i in range(choice.length))

    return all(has(name, choice) for name, choice in choices.items())
