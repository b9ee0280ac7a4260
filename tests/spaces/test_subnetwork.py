"""The four spaces: what they hold, what they build, and what counts as the same network."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.search import Bits, Config
from archwright.search.choices import crossover, dimensions, largest, middle, mutate, sample, smallest
from archwright.spaces.subnetwork import SPACES, SubnetSpace, subnet_space
from archwright.subnet.spec import Anatomy, LayerSpec, SubnetSpec, count, nonembedding_parameters, positions, sizes
from tests.anatomies import encoder, smollm2

BY_GROUPS, BY_QUERIES = smollm2(shared_keys=False), smollm2(shared_keys=True)
TINY, MINILM, BERT_BASE = encoder(3, 4, 5, 16), encoder(6, 12, 1536, 384), encoder(12, 12, 3072, 768)
NOTHING: SubnetSpec = (LayerSpec(0, 0),) * 3


def every_config(space: SubnetSpace) -> list[Config]:
    """All configs of a tiny space."""
    options = {
        name: [c.pack(np.array(bits)) for bits in itertools.product((False, True), repeat=c.length)]
        if isinstance(c, Bits)
        else list(c)
        for name, c in space.choices.items()
    }
    return [dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())]


OF_THE_PAPER = [name for name in SPACES if name not in ("chain", "stock")]
"""Spaces whose smallest network is nothing; the chain is tested in test_chain.py, what stock classes can say in
tests/compression/test_targets.py."""


@pytest.mark.parametrize(
    "of",
    [TINY, MINILM, BERT_BASE, BY_GROUPS, BY_QUERIES],
    ids=["tiny", "minilm", "bert-base", "smollm2 by groups", "smollm2 by queries"],
)
@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_corners_build_nothing_half_and_everything(name: str, of: Anatomy) -> None:
    space = subnet_space(name, of)
    none, half, full = (space.build(corner(space.choices)) for corner in (smallest, middle, largest))
    assert sizes(none) == [(0, 0)] * of.layers
    assert full == of.full
    least, mid, most = (nonembedding_parameters(of, keep) for keep in (none, half, full))
    assert least < mid < most


@pytest.mark.parametrize(
    ("name", "of", "numbers"),
    [
        ("small", MINILM, 3),
        ("layer", MINILM, 6),
        ("medium", MINILM, 12),
        ("large", MINILM, 9288),
        ("large", BERT_BASE, 37008),
        ("small", BY_GROUPS, 3),
        ("medium", BY_QUERIES, 60),
        ("large", BY_GROUPS, 30 * (3 + 1536)),
    ],
)
def test_spaces_have_as_many_dimensions_as_in_the_papers(name: str, of: Anatomy, numbers: int) -> None:
    assert dimensions(subnet_space(name, of).choices) == numbers


def test_small_and_medium_choose_numbers_up_to_the_whole() -> None:
    small, medium = (subnet_space(name, MINILM).choices for name in ("small", "medium"))
    assert small == {"layers": range(7), "heads": range(13), "units": range(1537)}
    assert medium == {f"heads{i}": range(13) for i in range(6)} | {f"units{i}": range(1537) for i in range(6)}


@pytest.mark.parametrize("of", [TINY, MINILM], ids=["tiny", "minilm"])
@pytest.mark.parametrize("name", SPACES)
def test_random_mutated_and_crossed_configs_build_and_are_plain_json(name: str, of: Anatomy) -> None:
    space, rng = subnet_space(name, of), np.random.default_rng(4)
    one, other = sample(space.choices, rng), sample(space.choices, rng)
    for config in (one, mutate(space.choices, one, rng), crossover(space.choices, one, other, rng)):
        assert json.loads(json.dumps(config)) == config
        keep = space.build(config)
        assert len(keep) == of.layers
        for part in keep:
            assert all(0 <= i < of.heads for i in positions(part.heads))
            assert all(0 <= i < of.units for i in positions(part.units))
            assert list(positions(part.units)) == sorted(set(positions(part.units)))
        assert space.build(space.canonical(config)) == keep or not any(map(any, sizes(keep)))
    assert space.build(mutate(space.choices, one, rng)) != space.build(one) or name in ("small", "chain")


@pytest.mark.parametrize("name", ["small", "layer"])
def test_configs_are_merged_exactly_when_their_networks_are_the_same(name: str) -> None:
    space = subnet_space(name, TINY, (2, 0, 1))
    by_network: dict[SubnetSpec, set[str]] = {}
    for config in every_config(space):
        by_network.setdefault(space.build(config), set()).add(json.dumps(space.canonical(config), sort_keys=True))
    assert all(len(forms) == 1 for forms in by_network.values())
    assert len(set.union(*by_network.values())) == len(by_network)
    assert len(by_network) == {"small": 1 + 3 * (5 * 6 - 1), "layer": 8}[name]


@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_all_empty_networks_are_one(name: str) -> None:
    space = subnet_space(name, TINY)
    nothing = space.canonical(smallest(space.choices))
    assert nothing == smallest(space.choices)
    assert space.build(nothing) == NOTHING
    if name == "small":
        empties = [{"layers": 0, "heads": 3, "units": 2}, {"layers": 2, "heads": 0, "units": 0}]
        assert [space.canonical(config) for config in empties] == [nothing, nothing]


@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_other_configs_stay_as_they_are(name: str) -> None:
    space = subnet_space(name, TINY)

    @settings(max_examples=50, deadline=None, derandomize=True)
    @given(st.integers(0, 10**6))
    def check(seed: int) -> None:
        config = sample(space.choices, np.random.default_rng(seed))
        form = space.canonical(config)
        assert space.canonical(form) == form
        assert form == config or space.build(config) == NOTHING

    check()


def test_small_keeps_layers_in_the_given_order() -> None:
    space = subnet_space("small", TINY, (2, 0, 1))
    kept = [
        [i for i, (heads, _) in enumerate(sizes(space.build({"layers": n, "heads": 2, "units": 3}))) if heads]
        for n in range(4)
    ]
    assert kept == [[], [2], [0, 2], [0, 1, 2]]
    assert subnet_space("small", TINY).layer_order == (0, 1, 2)
    assert space.build({"layers": 1, "heads": 2, "units": 0}) == (*NOTHING[:2], LayerSpec(2, 0))


@pytest.mark.parametrize("name", ["layer", "medium", "large"])
def test_the_order_of_layers_matters_only_where_layers_are_a_number(name: str) -> None:
    config = sample(subnet_space(name, TINY).choices, np.random.default_rng(3))
    assert subnet_space(name, TINY, (2, 0, 1)).build(config) == subnet_space(name, TINY).build(config)


def test_large_switches_single_heads_and_units() -> None:
    space, bits = subnet_space("large", TINY), np.zeros(27, bool)
    bits[[0, 1, 4, 9 + 2, 18 + 4, 18 + 8]] = True  # rows of 4 heads and 5 units
    keep = space.build({"bits": Bits(27).pack(bits)})
    assert keep == (LayerSpec(2, 1), LayerSpec((2,), 0), LayerSpec(0, (0, 4)))


def test_layer_is_uniform_in_size() -> None:
    space, rng = subnet_space("layer", MINILM), np.random.default_rng(0)
    kept = Counter(sum(bool(count(p.heads)) for p in space.build(sample(space.choices, rng))) for _ in range(2100))
    assert sorted(kept) == list(range(7))
    assert all(abs(n - 300) < 5 * 300**0.5 for n in kept.values())


def test_large_is_uniform_in_size() -> None:
    space, rng = subnet_space("large", MINILM), np.random.default_rng(0)
    shares = [sum(map(sum, sizes(space.build(sample(space.choices, rng))))) / 9288 for _ in range(400)]
    per_fifth = np.histogram(shares, bins=5, range=(0, 1))[0]
    assert per_fifth.min() > 50  # 80 expected; independent bits would all fall into the middle one
    assert min(shares) < 0.02
    assert max(shares) > 0.98


def test_small_is_uniform_in_each_number() -> None:
    space, rng = subnet_space("small", TINY), np.random.default_rng(1)
    drawn = [sample(space.choices, rng) for _ in range(1000)]
    for name, choice in space.choices.items():
        seen = Counter(config[name] for config in drawn)
        assert sorted(seen) == list(choice)
        assert all(abs(n - 1000 / len(choice)) < 5 * (1000 / len(choice)) ** 0.5 for n in seen.values())


@pytest.mark.parametrize("name", SPACES)
def test_a_seed_repeats_and_another_differs(name: str) -> None:
    choices = subnet_space(name, MINILM).choices
    draws = [[sample(choices, rng) for _ in range(5)] for rng in map(np.random.default_rng, (1, 1, 2))]
    assert draws[0] == draws[1] != draws[2]
