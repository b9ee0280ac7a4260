"""The chain: nested prefixes, within the cost, and the best of all prefixes where all can be tried."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archwright.objectives.costs import COSTS
from archwright.subnet.chain import FEWEST, SMALLEST, Chain, CostTable, count_costs
from archwright.subnet.spec import LayerSpec, SubnetSpec, nonembedding_parameters
from tests.anatomies import encoder


def random_chain(seed: int, layers: int = 3, heads: int = 3, units: int = 4) -> Chain:
    """Costs are small integers, scores random."""
    rng = np.random.default_rng(seed)
    scores = [tuple(np.sort(rng.random(n))[::-1] for _ in range(layers)) for n in (heads, units)]
    costs = [
        tuple(np.append(0.0, np.cumsum(rng.integers(1, 5, n)).astype(float)) for _ in range(layers))
        for n in (heads, units)
    ]
    return Chain(scores[0], scores[1], tuple(rng.permutation(layers).tolist()), CostTable(costs[0], costs[1]))


def cost(chain: Chain, spec: SubnetSpec) -> float:
    return sum(chain.costs.heads[i][part.heads] + chain.costs.units[i][part.units] for i, part in enumerate(spec))


def lost(chain: Chain, spec: SubnetSpec) -> float:
    return float(
        sum(
            chain.head_scores[i][part.heads :].sum() + chain.unit_scores[i][part.units :].sum()
            for i, part in enumerate(spec)
        )
    )


@given(st.integers(0, 200), st.floats(0.0, 1.0), st.integers(1, 3))
def test_a_member_stays_within_its_share_and_depth(seed: int, share: float, depth: int) -> None:
    chain = random_chain(seed)
    spec = chain.spec(share, depth)
    assert cost(chain, spec) <= share * chain.costs.total + 1e-6
    assert all(spec[layer] == LayerSpec(0, 0) for layer in chain.layer_order[depth:])


@given(st.integers(0, 200), st.floats(0.05, 1.0))
def test_no_pair_of_rankings_within_the_cost_loses_less(seed: int, share: float) -> None:
    """Algorithm 1 of Kwon et al.: all heads ranked, all units ranked, every pair of prefixes of the two rankings."""
    chain = random_chain(seed)
    ranked = [
        sorted(((-s, layer, k) for layer, row in enumerate(scores) for k, s in enumerate(row)))
        for scores in (chain.head_scores, chain.unit_scores)
    ]

    def member(n: int, m: int) -> SubnetSpec:
        counts = [
            [sum(layer == i for _, layer, _ in order[:k]) for i in range(3)]
            for order, k in zip(ranked, (n, m), strict=True)
        ]
        return tuple(LayerSpec(*pair) for pair in zip(*counts, strict=True))

    members = [member(n, m) for n, m in product(range(10), range(13))]
    best = min(lost(chain, spec) for spec in members if cost(chain, spec) <= share * chain.costs.total + 1e-9)
    assert lost(chain, chain.spec(share)) == pytest.approx(best)


@given(st.integers(0, 100), st.integers(0, 2), st.booleans())
def test_a_tilt_moves_cost_to_its_sub_layer(seed: int, layer: int, units: bool) -> None:
    chain = random_chain(seed)
    tilts = [[0.0, 0.0] for _ in range(3)]
    tilts[layer][units] = 40.0  # by far the most informative
    plain, tilted = chain.spec(0.5), chain.spec(0.5, tilts=tilts)
    assert tilted[layer][units] >= plain[layer][units]
    assert cost(chain, tilted) <= 0.5 * chain.costs.total + 1e-6


def test_the_ends_of_the_chain_are_everything_and_nothing() -> None:
    chain = random_chain(0)
    assert chain.spec(1.0) == (LayerSpec(3, 4),) * 3
    assert chain.spec(0.0) == (LayerSpec(0, 0),) * 3


def test_crumbs_of_a_sub_layer_go() -> None:
    scores = np.linspace(1, 0.5, 100)
    weak = np.append([0.9], np.full(99, 1e-6))  # its first one is as good as the others' best
    costs = tuple(np.arange(101.0) for _ in range(2))
    chain = Chain((np.zeros(0),) * 2, (scores, weak), (0, 1), CostTable((np.zeros(1),) * 2, costs))
    assert chain.spec(0.3) == (LayerSpec(0, 59), LayerSpec(0, 0))
    assert FEWEST * 100 > 1


@pytest.mark.parametrize("name", ["nonembedding_parameters", "flops", "int8_bytes"])
def test_counted_tables_add_up_to_the_cost_of_any_sub_network(name: str) -> None:
    anatomy = encoder(6, 12, 1536, 384)
    measure = lambda spec: COSTS[name].measure(anatomy, spec, length=20)  # noqa: E731
    table = count_costs(anatomy, measure, fixed=True)
    rng = np.random.default_rng(0)
    for _ in range(20):
        spec = tuple(LayerSpec(int(rng.integers(13)), int(rng.integers(1537))) for _ in range(6))
        added = table.fixed + sum(table.heads[i][p.heads] + table.units[i][p.units] for i, p in enumerate(spec))
        assert added == pytest.approx(measure(spec), rel=1e-12)


def test_a_share_of_the_parameters_is_that_of_the_whole_network() -> None:
    """--params 50% must admit the chain's member of 50 %."""
    anatomy = encoder(6, 12, 1536, 384)
    rng = np.random.default_rng(1)
    scores = [tuple(np.sort(rng.random(n))[::-1] ** 4 for _ in range(6)) for n in (12, 1536)]
    measure = lambda spec: nonembedding_parameters(anatomy, spec)  # noqa: E731
    chain = Chain(scores[0], scores[1], tuple(range(6)), count_costs(anatomy, measure, fixed=True))
    for percent in range(15, 101, 5):
        share = measure(chain.spec(percent / 100)) / measure(anatomy.full)
        assert percent / 100 - 0.01 < share <= percent / 100


def test_draws_begin_large_and_end_uniform() -> None:
    chain, rng = random_chain(3, units=40), np.random.default_rng(0)
    total = chain.costs.total
    shares = {progress: [cost(chain, chain.draw(rng, progress)) / total for _ in range(400)] for progress in (0.0, 0.9)}
    assert min(shares[0.0]) > 0.6
    assert min(shares[0.9]) < SMALLEST + 0.1
    assert np.mean(shares[0.9]) == pytest.approx(0.55, abs=0.05)
