"""Designs that say how long they are trained."""

import numpy as np
import pytest

from archwright.search import EPOCHS, largest, sample, smallest
from archwright.spaces.subnetwork import TrainedSpace, large_config, layer_config, subnet_space
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import LayerSpec
from tests.tiny import shared_tiny

OF = read_anatomy(shared_tiny("bert", "cls").config)


def test_epochs_are_one_more_choice_and_do_not_change_the_network() -> None:
    space = subnet_space("small", OF)
    trained = TrainedSpace(space, (1.0, 3.0))
    assert dict(trained.choices) == {**space.choices, EPOCHS: (1.0, 3.0)}
    config = largest(trained.choices)
    assert config[EPOCHS] == 3.0
    assert trained.build(config) == OF.full


def test_the_same_network_after_more_epochs_is_another_design() -> None:
    trained = TrainedSpace(subnet_space("small", OF), (1.0, 3.0))
    empty = smallest(trained.choices)
    assert trained.canonical({**empty, "heads": 2}) == trained.canonical(empty)
    assert trained.canonical({**empty, EPOCHS: 3.0}) != trained.canonical(empty)


@pytest.mark.parametrize(("name", "config_of"), [("large", large_config), ("layer", layer_config)])
def test_a_sub_network_is_found_again_as_a_config(name: str, config_of: object) -> None:
    space, rng = subnet_space(name, OF), np.random.default_rng(0)
    for _ in range(30):
        config = sample(space.choices, rng)
        assert config_of(OF, space.build(config)) == config  # type: ignore[operator]


def test_any_sub_network_has_a_config_of_large() -> None:
    keep = (LayerSpec((1, 3), 4), LayerSpec(0, 0), LayerSpec(4, (0, 9)))
    assert subnet_space("large", OF).build(large_config(OF, keep)) == keep
