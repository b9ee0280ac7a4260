"""What every space of whole architectures promises, also one that another package adds."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint

import numpy as np
import pytest
import torch

from archwright.registry import Registry
from archwright.spaces import ARCHITECTURES
from archwright.spaces.architectures import ArchitectureSpace
from archwright.spaces.checkpoints import network_classes, space_of_model
from archwright.spaces.nlu import NluSpace


@dataclass(frozen=True)
class OwnSpace(NluSpace):
    """A space as another package would write it."""

    variant: str = "tiny"


OWN = OwnSpace()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_space_is_one_record(name: str) -> None:
    space = ARCHITECTURES[name]
    assert isinstance(space, ArchitectureSpace) and space.with_variant(None) == space
    config = space.sample(np.random.default_rng(0))
    plan = space.plan(config)
    assert plan.model_type == space.model_type and space.plan_counts(plan) == space.counts(config)
    assert {space.classes[0].__name__} <= set(network_classes())
    found = space_of_model(space.model_type)
    assert found is not None and found.classes == space.classes
    smaller = space.generator_plan(plan)
    assert smaller is None or space.plan_counts(smaller).parameters < space.plan_counts(plan).parameters


def test_a_network_from_elsewhere_has_no_space() -> None:
    assert space_of_model("bert") is None


def test_another_package_can_add_a_space(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("own", f"{__name__}:OWN", "archwright.spaces")
    monkeypatch.setattr("archwright.registry.entry_points", lambda group: [entry])
    spaces: Registry[ArchitectureSpace] = Registry("space", {}, group="archwright.spaces")
    space = spaces.find("own", option="--space")
    network = space.network(
        space.sample(np.random.default_rng(0)), generator=torch.Generator().manual_seed(0), vocabulary=8
    )
    assert network(torch.zeros(1, 3, dtype=torch.long)).last_hidden_state.shape == (1, 3, 528)
