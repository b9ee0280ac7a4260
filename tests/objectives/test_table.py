"""The table finds an additive truth exactly, and noise cannot make a smaller network slower."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archwright.networks.load import load_supernet
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import Timing, Timings
from archwright.objectives.table import LatencyTable, measured_counts
from archwright.search import sample
from archwright.spaces.subnetwork import subnet_space
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import LayerSpec, SubnetSpec, sizes
from tests.designed import designed

from .conftest import tiny

Truth = Callable[[int, int], float]
LAYERS, HEADS, UNITS = 3, 4, 24


def timer(truth: Truth, *, base: float = 0.5, noise: float = 0.0) -> Callable[..., Timings]:
    """Times by a formula of heads and units per layer."""

    def timed(
        model: object, specs: Mapping[str, SubnetSpec], *, batch: int, length: int, rounds: int, seed: int
    ) -> Timings:
        rng = np.random.default_rng(seed)
        values = {name: base + sum(truth(*pair) for pair in sizes(spec)) for name, spec in specs.items()}
        values = {name: value * rng.lognormal(sigma=noise) for name, value in values.items()}
        return Timings({name: Timing(v, v, v) for name, v in values.items()}, {}, 0.01, rounds)

    return timed


def additive(heads: int, units: int) -> float:
    return (0.2 + 0.1 * heads if heads else 0) + (0.3 + 0.02 * units if units else 0)


def some_keeps(seed: int = 0, number: int = 50) -> list[SubnetSpec]:
    rng = np.random.default_rng(seed)
    return [
        tuple(LayerSpec(int(rng.integers(HEADS + 1)), int(rng.integers(UNITS + 1))) for _ in range(LAYERS))
        for _ in range(number)
    ]


@pytest.fixture
def table(bert: PrunedNetwork) -> LatencyTable:
    return LatencyTable.measure(bert, batch=1, length=16, rounds=5, seed=0, timer=timer(additive))


def test_an_additive_truth_is_found_exactly(bert: PrunedNetwork, table: LatencyTable) -> None:
    assert table.base == pytest.approx(0.5)
    pairs = table.check(bert, some_keeps(), timer=timer(additive))
    assert len(pairs) == 50
    for predicted, measured in pairs:
        assert predicted == pytest.approx(measured, rel=1e-9)


def test_nothing_left_costs_nothing_but_the_base(table: LatencyTable) -> None:
    assert table.predict((LayerSpec(0, 0),) * LAYERS) == table.base
    assert table.predict((LayerSpec((), ()),) * LAYERS) == table.base


def test_positions_cost_as_much_as_their_number(table: LatencyTable) -> None:
    chosen, first = (LayerSpec((0, 3), (5, 9, 11)),) * LAYERS, (LayerSpec(2, 3),) * LAYERS
    assert table.predict(chosen) == table.predict(first)


@given(seed=st.integers(0, 10_000), noise=st.floats(0, 2))
def test_noise_makes_no_larger_network_faster(seed: int, noise: float) -> None:
    noisy = LatencyTable.measure(TINY, batch=1, length=16, rounds=5, seed=seed, timer=timer(additive, noise=noise))
    assert noisy.base >= 0
    for curve, full in ((noisy.kinds[0].heads, HEADS), (noisy.kinds[0].units, UNITS)):
        costs = [curve.at(count) for count in range(full + 1)]
        assert costs[0] == 0 and costs == sorted(costs)


TINY = SimpleNamespace(config=tiny("bert", ("a", "b")).config)


def test_a_little_noise_costs_little_accuracy(bert: PrunedNetwork) -> None:
    noisy = LatencyTable.measure(bert, batch=1, length=16, rounds=5, seed=1, timer=timer(additive, noise=0.02))
    pairs = noisy.check(bert, some_keeps(), timer=timer(additive))
    assert np.median([abs(predicted / measured - 1) for predicted, measured in pairs]) < 0.02


def test_what_is_timed(bert: PrunedNetwork) -> None:
    asked: list[SubnetSpec] = []

    def spy(model: object, specs: Mapping[str, SubnetSpec], **options: int) -> Timings:
        asked.extend(specs.values())
        assert options == {"batch": 2, "length": 16, "rounds": 5, "seed": 3}
        return timer(additive)(model, specs, **options)

    LatencyTable.measure(bert, batch=2, length=16, rounds=5, seed=3, timer=spy)
    assert asked[0] == read_anatomy(bert.config).full, "the first is the sentinel: one that is long enough to time well"
    assert len(set(asked)) == len(asked) and (LayerSpec(0, 0),) * LAYERS in asked
    assert all(len(set(spec)) == 1 for spec in asked)


@pytest.mark.parametrize("name", ["nlu", "flexibert"])
def test_layers_that_differ_have_costs_of_their_own(name: str) -> None:
    """The truth is a price for each head, unit and layer, another one in every layer."""
    network = designed(name)

    def timed(
        model: object, specs: Mapping[str, SubnetSpec], *, batch: int, length: int, rounds: int, seed: int
    ) -> Timings:
        prices = {key: 0.5 + sum(price(*row) for row in enumerate(sizes(spec))) for key, spec in specs.items()}
        return Timings({key: Timing(v, v, v) for key, v in prices.items()}, {}, 0.0, rounds)

    def price(place: int, pair: tuple[int, int]) -> float:
        return (0.1 + 0.1 * pair[0] + (0.01 + 0.01 * place) * pair[1]) * any(pair)

    found = LatencyTable.measure(network, batch=1, length=8, rounds=2, timer=timed)
    space = subnet_space("medium", read_anatomy(network.config))
    rng = np.random.default_rng(0)
    specs = [space.build(sample(space.choices, rng)) for _ in range(20)]
    for predicted, measured in found.check(network, specs, timer=timed):
        assert predicted == pytest.approx(measured, rel=0.12)


@given(st.integers(1, 5000))
def test_counts_begin_with_one_and_end_with_all(full: int) -> None:
    chosen = measured_counts(full)
    assert chosen[0] == 1 and chosen[-1] == full and list(chosen) == sorted(set(chosen))


def test_json_and_back(table: LatencyTable) -> None:
    again = LatencyTable.from_json(json.loads(json.dumps(table.to_json())))
    assert again == table
    assert [again.predict(spec) for spec in some_keeps()] == [table.predict(spec) for spec in some_keeps()]


@pytest.mark.slow
def test_predicted_against_measured_on_a_real_network(minilm: Path) -> None:
    model = load_supernet(str(minilm), labels=("no", "yes"))
    table = LatencyTable.measure(model, batch=1, length=32, rounds=15, seed=0)
    rng = np.random.default_rng(0)
    same = [LayerSpec(int(rng.integers(1, 13)), int(rng.integers(1, 1537))) for _ in range(12)]
    gone = LayerSpec(0, 0)
    specs = [(part,) * depth + (gone,) * (6 - depth) for part, depth in zip(same, rng.integers(1, 7, 12), strict=True)]
    pairs = table.check(model, specs, rounds=15, seed=1)
    assert np.median([abs(predicted / measured - 1) for predicted, measured in pairs]) < 0.2
