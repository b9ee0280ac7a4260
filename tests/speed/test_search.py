"""The bookkeeping of `experiments.speed search`, by hand; who wins is for the bench to say, not for a test."""

import numpy as np
import pytest
import torch

from archwright.search import EPOCHS
from archwright.spaces.subnetwork import subnet_space
from archwright.subnet.anatomy import read_anatomy
from experiments.speed.search import (
    BUDGET,
    DESIGNS,
    RUNGS,
    Course,
    InMemory,
    Table,
    Trained,
    costs,
    designs,
    ratios_of,
    searched,
)
from tests.tiny import tiny


@pytest.fixture(scope="module")
def table() -> Table:
    """Larger designs are better, and the order at the first rung is already that at the last."""
    shares = np.linspace(0.02, 1.0, DESIGNS)
    errors = [tuple(float(0.6 - 0.4 * share - 0.02 * epochs) for epochs in RUNGS) for share in shares]
    return Table(tuple(errors), tuple(shares.tolist()))


def test_a_design_costs_only_the_epochs_it_was_not_trained_for() -> None:
    jobs = [(0, 1.0), (1, 1.0), (0, 3.0), (0, 3.0), (0, 5.0), (1, 5.0), (2, 5.0)]
    assert costs([{"design": design, EPOCHS: epochs} for design, epochs in jobs]) == [1, 1, 2, 0, 2, 4, 5]


def test_epochs_until_a_hypervolume_is_first_reached() -> None:
    course = Course((1.0, 2.0, 4.0), (0.1, 0.5, 0.5))
    assert [course.epochs_until(volume) for volume in (0.05, 0.2, 0.5)] == [1.0, 2.0, 2.0]


def test_ratios_are_taken_at_the_end_of_the_one_that_ends_lower() -> None:
    pairs = [
        {"random": Course((5.0, 10.0), (0.2, 0.4)), "mo-asha": Course((1.0, 2.0), (0.1, 0.5))},  # 0.4: 10 and 2
        {"random": Course((5.0, 10.0), (0.6, 0.8)), "mo-asha": Course((1.0, 8.0), (0.1, 0.4))},  # 0.4: 5 and 8
        {"random": Course((5.0, 10.0), (0.3, 0.4)), "mo-asha": Course((1.0, 4.0), (0.1, 0.4))},  # 0.4: 10 and 4
    ]
    epochs, ends = ratios_of(pairs)
    assert (epochs.low, epochs.median, epochs.high) == (5 / 8, 2.5, 5.0)
    assert (ends.low, ends.median, ends.high) == pytest.approx((0.5, 1.0, 1.25))


def test_random_search_pays_all_epochs_for_every_design(table: Table) -> None:
    course = searched("random", table, seed=0)
    assert course.epochs == tuple(RUNGS[-1] * (trial + 1) for trial in range(DESIGNS // 4))
    assert course.epochs[-1] == BUDGET


def test_mo_asha_looks_at_more_designs_for_the_same_epochs(table: Table) -> None:
    course = searched("mo-asha", table, seed=0)
    steps = set(np.diff(course.epochs, prepend=0.0).tolist())
    assert steps == {1.0, 2.0} and BUDGET <= course.epochs[-1] < BUDGET + RUNGS[-1]
    assert len(course.epochs) > DESIGNS // 4
    assert list(course.volumes) == sorted(course.volumes)
    assert searched("mo-asha", table, seed=0) == course != searched("mo-asha", table, seed=1)


def test_a_trained_design_is_its_error_at_the_rung_and_its_size(table: Table) -> None:
    space = Trained(table, RUNGS)
    assert space.build({"design": 3, EPOCHS: RUNGS[1]}) == (table.errors[3][1], table.shares[3])


def test_designs_differ_and_have_something_to_train() -> None:
    space = subnet_space("small", read_anatomy(tiny("bert").config))
    found = designs(space, np.random.default_rng(0))
    assert len(found) == DESIGNS and all(any(part != (0, 0) for part in keep) for keep in found)


def test_a_kept_state_does_not_follow_the_training() -> None:
    weight, kept = torch.zeros(2), InMemory()
    kept.save({"step": 1, "model": {"weight": weight}})
    weight += 1
    state = kept.load()
    assert state is not None and state["step"] == 1 and state["model"]["weight"].tolist() == [0.0, 0.0]
