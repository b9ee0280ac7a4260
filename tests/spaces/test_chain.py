"""The space `chain` as samplers see it: what is proposed, what is the same network, where a search begins."""

from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archwright.search import SAMPLERS, Listed, crossover, largest, mutate, sample, smallest
from archwright.search.choices import enumerate_configs, middle, mutate_each
from archwright.search.loop import search
from archwright.search.space import Objective
from archwright.spaces.subnetwork import SUPERNET, ChainSpace, halve, subnet_space
from archwright.subnet.chain import Chain, count_costs
from archwright.subnet.spec import LayerSpec, nonembedding_parameters
from tests.anatomies import encoder

ANATOMY = encoder(4, 4, 40, 16)
GONE = LayerSpec(0, 0)
DROPPED = (LayerSpec(4, 40), LayerSpec(4, 40), GONE, GONE)


def chain_space() -> ChainSpace:
    rng = np.random.default_rng(0)
    scores = [tuple(np.sort(rng.random(n))[::-1] for _ in range(4)) for n in (4, 40)]
    costs = count_costs(ANATOMY, lambda spec: nonembedding_parameters(ANATOMY, spec), fixed=True)
    chain = Chain(scores[0], scores[1], (1, 0, 3, 2), costs)
    space = subnet_space("chain", ANATOMY, (1, 0, 3, 2), chain=chain, candidates={"first-2-layers": DROPPED})
    assert isinstance(space, ChainSpace)
    return space


SPACE = chain_space()


def test_corners() -> None:
    assert SPACE.build(largest(SPACE.choices)) == ANATOMY.full
    assert sum(any(part) for part in SPACE.build(smallest(SPACE.choices))) <= 1
    assert middle(SPACE.choices)["source"] == SUPERNET


@given(st.integers(0, 1000))
def test_variations_are_parts_of_the_super_network_whatever_they_come_from(seed: int) -> None:
    """A candidate's weights belong to it alone: a child of it is looked for in the super-network."""
    rng, choices = np.random.default_rng(seed), SPACE.choices
    parent = SPACE.config(50, 2, source="first-2-layers")
    children = [
        sample(choices, rng),
        mutate(choices, parent, rng),
        mutate_each(choices, parent, rng, rate=0.5),
        crossover(choices, parent, parent, rng),
    ]
    assert [child["source"] for child in children] == [SUPERNET] * 4
    assert all(len(SPACE.build(child)) == 4 for child in children)


@given(st.integers(0, 1000))
def test_a_canonical_config_is_the_same_network(seed: int) -> None:
    config = sample(SPACE.choices, np.random.default_rng(seed))
    canonical = SPACE.canonical(config)
    if canonical["share"]:
        assert SPACE.build(canonical) == SPACE.build(config)
    else:
        assert SPACE.build(config) == (GONE,) * 4
    assert SPACE.canonical(canonical) == canonical or not canonical["share"]


def test_tilts_that_change_nothing_are_no_other_network() -> None:
    whole = largest(SPACE.choices)
    assert SPACE.canonical(whole) == SPACE.canonical({**whole, "balance": -1, "units2": 0}) == SPACE.config(100)
    assert SPACE.canonical(SPACE.config(30, source="first-2-layers")) == SPACE.canonical(
        SPACE.config(60, source="first-2-layers")
    )


def test_a_search_begins_with_the_candidates_and_along_the_chain() -> None:
    starts = SPACE.starts()
    assert [start["share"] for start in starts if start["layers"] == 4] == [*range(90, 0, -10), 100]
    assert {start["layers"] for start in starts} == {4, 3, 2}
    assert SPACE.build(starts[0]) == DROPPED and starts[0]["source"] == "first-2-layers"
    sizes = [nonembedding_parameters(ANATOMY, SPACE.build(start)) for start in starts]
    assert all(
        size <= start["share"] / 100 * nonembedding_parameters(ANATOMY, ANATOMY.full) + 1
        for size, start in zip(sizes[1:], starts[1:], strict=True)
    )


@pytest.mark.parametrize("name", ["random", "local", "evolution", "ehvi", "nsga2", "genetic"])
def test_every_sampler_tries_candidates_first_and_no_others(name: str) -> None:
    first = SPACE.starts()[:3]
    sampler: Any = SAMPLERS[name](SPACE.choices, seed=0, first=first)
    study = optuna.create_study(sampler=sampler, directions=["minimize", "minimize"])
    whole = nonembedding_parameters(ANATOMY, ANATOMY.full)
    objectives = [
        Objective("error", lambda c: float(np.sin(c.config["share"]) + sum(p.units for p in c.built) / 160)),
        Objective("size", lambda c: nonembedding_parameters(ANATOMY, c.built) / whole),
    ]
    search(study, SPACE, objectives, trials=26)
    sources = [trial.params["source"] for trial in study.trials]
    assert sources == [start["source"] for start in first] + [SUPERNET] * 23


def test_a_listed_choice_has_one_value_for_who_enumerates() -> None:
    choices = {"source": Listed(("a", "b")), "n": range(3)}
    assert [config["source"] for config in enumerate_configs(choices)] == ["a"] * 3


def test_in_a_hurry_the_first_starts_are_far_apart() -> None:
    usual, hurried = SPACE.starts(), SPACE.starts(hurried=True)
    assert sorted(map(str, usual)) == sorted(map(str, hurried))
    whole = [config["share"] for config in hurried if config["layers"] == SPACE.anatomy.layers][:3]
    assert whole == [50, 80, 20]


@pytest.mark.parametrize(
    ("ladder", "order"), [([], []), ([1], [1]), ([9, 5, 1], [5, 9, 1]), ([4, 3, 2, 1], [2, 3, 1, 4])]
)
def test_halving_a_ladder(ladder: list[int], order: list[int]) -> None:
    assert halve(ladder) == order
