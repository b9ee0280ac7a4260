"""Drawing near the front: what did well for its size is what neighbours are drawn of."""

import json

import numpy as np
import pytest

from archwright.search import Config
from archwright.spaces.frontier import BANDS, MEMORY, PENDING, Frontier
from archwright.spaces.subnetwork import SPACES, SubnetSpace, subnet_space
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import SubnetSpec, count, nonembedding_parameters
from tests.tiny import shared_tiny


def space_of(name: str = "small") -> SubnetSpace:
    return subnet_space(name, read_anatomy(shared_tiny("bert", "cls").config))


def taught(space: SubnetSpace, excess: object, draws: int = 300) -> Frontier:
    """A frontier that has seen random sub-networks with the losses that `excess` gives them."""
    frontier, rng = Frontier(space), np.random.default_rng(1)
    for _ in range(draws):
        keep = frontier.random(rng)
        frontier.record_loss(keep, excess(keep))  # type: ignore[operator]
    return frontier


def few_heads(keep: SubnetSpec) -> float:
    """A world in which heads only do harm."""
    return float(sum(count(part.heads) for part in keep))


def heads_of(configs: list[Config]) -> float:
    return float(np.mean([config["heads"] for config in configs]))


def heads_per_layer(keeps: list[SubnetSpec]) -> float:
    """Of the layers that are left."""
    return float(np.mean([count(part.heads) for keep in keeps for part in keep if any(part)]))


@pytest.mark.parametrize("name", SPACES)
def test_draws_are_of_the_space_and_repeat_with_the_seed(name: str) -> None:
    space = space_of(name)
    known = set()
    for seed in range(20):
        first, again = (taught(space, few_heads, 60).near(np.random.default_rng(seed)) for _ in range(2))
        assert first == again
        assert len(first) == space.anatomy.layers
        known.add(first)
    assert len(known) > 3


def test_neighbours_come_from_what_did_well() -> None:
    space = space_of()
    frontier, rng = taught(space, few_heads), np.random.default_rng(0)
    assert heads_of(frontier.good()) < heads_of([config for config, _, _ in frontier._seen]) - 0.5
    near = [frontier.near(rng) for _ in range(300)]
    random = [frontier.random(rng) for _ in range(300)]
    assert heads_per_layer(near) < heads_per_layer(random) - 0.3


def test_all_sizes_stay_in_play_although_small_ones_lose() -> None:
    space = space_of()
    frontier = taught(space, lambda keep: -nonembedding_parameters(space.anatomy, keep))
    sizes = [nonembedding_parameters(space.anatomy, space.build(config)) for config in frontier.good()]
    whole = nonembedding_parameters(space.anatomy, space.anatomy.full)
    assert min(sizes) < 0.45 * whole < 0.6 * whole < max(sizes)


def test_before_anything_is_known_draws_are_uniform() -> None:
    space = space_of()
    frontier = Frontier(space)
    assert frontier.good() == []
    assert frontier.near(np.random.default_rng(3)) == Frontier(space).random(np.random.default_rng(3))
    few = taught(space, few_heads, 4 * BANDS - 1)
    assert few.good() == []


def test_only_drawn_ones_are_learnt_from_and_the_oldest_are_forgotten() -> None:
    space = space_of()
    frontier = Frontier(space)
    frontier.record_loss(space.anatomy.full, 1.0)
    assert frontier.state() == {"seen": []}
    assert len(taught(space, few_heads, 2 * MEMORY).state()["seen"]) == MEMORY


def test_a_restored_one_goes_on_as_if_nothing_had_happened() -> None:
    space = space_of("large")
    frontier = taught(space, few_heads, 100)
    again = Frontier(space)
    again.restore(json.loads(json.dumps(frontier.state())))
    assert again.near(np.random.default_rng(9)) == frontier.near(np.random.default_rng(9))


def test_draws_that_nobody_records_are_forgotten() -> None:
    space = space_of("large")
    frontier, rng = Frontier(space), np.random.default_rng(0)
    for _ in range(300):
        last = frontier.random(rng)
    assert len(frontier._drawn) <= PENDING
    frontier.record_loss(last, 0.1)
    assert len(frontier.state()["seen"]) == 1
