"""What follows from choices: every operation stays inside them and does what its name says."""

import json
from itertools import islice, product

import numpy as np
import pytest
from designs import LARGE, MIXED, SMALL
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.trial import create_trial

from archwright.errors import BadInput
from archwright.search import (
    Bits,
    Choices,
    Config,
    config_of,
    crossover,
    distributions,
    encode,
    enumerate_configs,
    largest,
    middle,
    mutate,
    sample,
    smallest,
)

values = st.lists(st.integers() | st.text(max_size=3), min_size=1, max_size=5, unique=True).map(tuple)
ranges = st.builds(range, st.integers(-5, 5), st.integers(6, 30), st.integers(1, 4))
choices_strategy = st.dictionaries(
    st.sampled_from("abcdef"), values | ranges | st.builds(Bits, st.integers(1, 130)), min_size=1
)
seeds = st.integers(0, 2**32).map(np.random.default_rng)


def is_inside(choices: Choices, config: Config) -> bool:
    return config.keys() == choices.keys() and all(
        choice.unpack(config[name]).shape == (choice.length,) if isinstance(choice, Bits) else config[name] in choice
        for name, choice in choices.items()
    )


def differences(choices: Choices, one: Config, other: Config) -> int:
    """In how many dimensions two configs differ."""
    return sum(
        int((choice.unpack(one[name]) != choice.unpack(other[name])).sum())
        if isinstance(choice, Bits)
        else int(one[name] != other[name])
        for name, choice in choices.items()
    )


@given(choices_strategy, seeds)
def test_sampled_configs_are_inside_and_json(choices: Choices, rng: np.random.Generator) -> None:
    config = sample(choices, rng)
    assert is_inside(choices, config)
    assert json.loads(json.dumps(config)) == config


@given(choices_strategy, seeds)
def test_mutation_changes_exactly_one_dimension(choices: Choices, rng: np.random.Generator) -> None:
    config = sample(choices, rng)
    changed = mutate(choices, config, rng)
    movable = any(isinstance(choice, Bits) or len(choice) > 1 for choice in choices.values())
    assert is_inside(choices, changed)
    assert differences(choices, config, changed) == int(movable)


@given(choices_strategy, seeds)
def test_a_child_takes_every_value_from_a_parent(choices: Choices, rng: np.random.Generator) -> None:
    one, other = sample(choices, rng), sample(choices, rng)
    child = crossover(choices, one, other, rng)
    apart = differences(choices, one, other)
    assert differences(choices, one, child) + differences(choices, child, other) == apart


@given(choices_strategy, seeds)
def test_a_config_survives_the_trial(choices: Choices, rng: np.random.Generator) -> None:
    config = sample(choices, rng)
    params, attrs = encode(choices, config)
    trial = create_trial(values=[0.0], params=params, distributions=distributions(choices), user_attrs=attrs)
    assert config_of(choices, trial) == config


@given(st.integers(1, 200), seeds)
def test_bits_pack_and_unpack(length: int, rng: np.random.Generator) -> None:
    bits = rng.random(length) < 0.5
    assert (Bits(length).unpack(Bits(length).pack(bits)) == bits).all()


def test_mutation_reaches_every_dimension_evenly() -> None:
    choices: Choices = {"a": (1, 2, 3), "bits": Bits(3), "fixed": (7,)}
    rng, start = np.random.default_rng(0), {"a": 1, "bits": Bits(3).pack(np.zeros(3, dtype=bool)), "fixed": 7}
    changed = [mutate(choices, start, rng) for _ in range(4000)]
    assert sum(config["a"] != 1 for config in changed) / 4000 == pytest.approx(0.25, abs=0.03)
    assert sum(config["a"] == 2 for config in changed) / 4000 == pytest.approx(0.125, abs=0.03)


def test_switches_are_uniform_in_size() -> None:
    rng = np.random.default_rng(0)
    counts = [int(Bits(4).unpack(sample({"b": Bits(4)}, rng)["b"]).sum()) for _ in range(5000)]
    assert np.allclose(np.bincount(counts, minlength=5) / 5000, 0.2, atol=0.03)


def test_corners() -> None:
    assert largest(SMALL) == {"heads": 12, "units": 1536, "layers": 6}
    assert smallest(SMALL) == {"heads": 1, "units": 0, "layers": 0}
    assert middle(SMALL) == {"heads": 7, "units": 768, "layers": 3}
    on = [int(Bits(9288).unpack(corner(LARGE)["mask"]).sum()) for corner in (smallest, middle, largest)]
    assert on == [0, 4644, 9288]


def test_distributions_by_kind() -> None:
    found = distributions(MIXED)
    assert found["kind"] == CategoricalDistribution(("a", "b", "c"))
    assert [name for name in found if name.startswith("layers")] == [f"layers[{i}]" for i in range(6)]
    assert distributions(SMALL)["units"] == IntDistribution(0, 1536, step=64)
    assert distributions(LARGE) == {}


@pytest.mark.parametrize("text", ["not base64!", "AAAA"])
def test_damaged_bits_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput) as error:
        Bits(6).unpack(text)
    assert "\n" not in str(error.value)


def test_a_choice_without_values_is_refused() -> None:
    with pytest.raises(BadInput, match="'depth'"):
        distributions({"depth": ()})


tiny = st.dictionaries(
    st.sampled_from("abcd"), st.lists(st.integers(), min_size=1, max_size=3, unique=True).map(tuple), min_size=1
)


@given(tiny)
def test_every_config_comes_once(choices: Choices) -> None:
    found = [tuple(config.items()) for config in enumerate_configs(choices)]
    assert found == [tuple(zip(choices, values, strict=True)) for values in product(*choices.values())]


def test_every_setting_of_the_switches_comes_once() -> None:
    found = [Bits(3).unpack(config["bits"]).tolist() for config in enumerate_configs({"bits": Bits(3)})]
    assert found == [list(switches) for switches in product((False, True), repeat=3)]


def test_enumerating_looks_at_no_more_than_it_is_asked_for() -> None:
    endless: Choices = {f"n{i}": tuple(range(100)) for i in range(50)}
    assert [config["n49"] for config in islice(enumerate_configs(endless), 3)] == [0, 1, 2]


def test_distinct_designs_are_the_canonical_ones_of_all_configs() -> None:
    choices: Choices = {"depth": (1, 2), "kind": ("a", "b", "c"), "size": (1, 2, 3), "second": (1, 2)}

    def canonical(config: Config) -> Config:
        """Kind a has no size, and the second layer is only there at depth 2."""
        without = ({"size": 1} if config["kind"] == "a" else {}) | ({"second": 1} if config["depth"] == 1 else {})
        return {**config, **without}

    found = [tuple(config.items()) for config in enumerate_configs(choices, canonical)]
    assert len(found) == len(set(found)) == (1 + 3 + 3) * (1 + 2)
    assert set(found) == {tuple(canonical(config).items()) for config in enumerate_configs(choices)}
