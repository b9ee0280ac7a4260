"""Masks by Fisher information: against trying out all masks, and on cases that can be done by hand."""

from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.errors import BadInput
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.pruning.fisher import fisher_block, prunable_flops, rearrange_masks, search_masks, swap_greedily
from archwright.subnet.pruning.gradients import MaskGradients
from archwright.subnet.spec import Anatomy, LayerSpec, SubnetSpec, nonembedding_parameters, positions, sizes
from tests.anatomies import encoder
from tests.tiny import DECODERS, STOCK, shared_tiny

LITTLE = encoder(layers=2, heads=2, units=3, width=4)
HEAD, UNIT = 2 * 5 * (4 * 4 * 2) + 4 * 25 * 2, 2 * 5 * (2 * 4)
"""FLOPs at length 5 by hand: four products with 4 x 2 weights and twice 25 dot products of 2; two with 4 weights."""


def random_gradients(of: Anatomy, seed: int, texts: int = 6) -> MaskGradients:
    generator = torch.Generator().manual_seed(seed)
    heads, units = (torch.randn(texts, of.layers, n, generator=generator) ** 3 for n in (of.heads, of.units))
    return by_layer(heads.double(), units.double())


def by_layer(heads: torch.Tensor, units: torch.Tensor) -> MaskGradients:
    """Of texts x layers x heads and texts x layers x units."""
    return MaskGradients(list(heads.unbind(1)), list(units.unbind(1)))


def diagonal_lost(gradients: MaskGradients, spec: SubnetSpec) -> float:
    """Mean over texts of the squared gradients of everything that is gone."""
    heads, units = ([(rows.numpy() ** 2).mean(0) for rows in part] for part in (gradients.heads, gradients.units))
    total = 0.0
    for place, part in enumerate(spec):
        for kept, squares in ((part.heads, heads), (part.units, units)):
            total += sum(squares[place][i] for i in range(len(squares[place])) if i not in positions(kept))
    return total


@cache
def all_masks() -> list[tuple[SubnetSpec, int]]:
    """Every mask of the little network, with its FLOPs."""
    found = []
    for bits in product((0, 1), repeat=10):
        heads, units = np.array(bits[:4]).reshape(2, 2), np.array(bits[4:]).reshape(2, 3)
        spec = tuple(
            LayerSpec(tuple(np.flatnonzero(h).tolist()), tuple(np.flatnonzero(u).tolist()))
            for h, u in zip(heads, units, strict=True)
        )
        found.append((spec, int(heads.sum()) * HEAD + int(units.sum()) * UNIT))
    return found


@settings(max_examples=15, deadline=None)
@given(alpha=st.floats(0.01, 1), seed=st.integers(0, 1000))
def test_the_search_finds_the_best_of_all_masks(alpha: float, seed: int) -> None:
    gradients, budget = random_gradients(LITTLE, seed), alpha * (4 * HEAD + 6 * UNIT)
    best = min(diagonal_lost(gradients, spec) for spec, cost in all_masks() if cost <= budget)
    found = search_masks(LITTLE, gradients, alpha, length=5)
    assert prunable_flops(LITTLE, found, 5) <= budget
    assert diagonal_lost(gradients, found) == pytest.approx(best, abs=1e-12)


def test_the_search_by_hand() -> None:
    """A head costs 520 and a unit 80: with 680, either one head and two units, or six units."""
    heads, units = torch.tensor([[3.0, 1.0], [2.0, 1.0]]), torch.tensor([[1.0, 0.1, 0.5], [1.0, 0.2, 1.5]])
    alpha = 680 / (4 * 520 + 6 * 80)
    found = search_masks(LITTLE, by_layer(heads[None], units[None]), alpha, length=5)
    assert (HEAD, UNIT) == (520, 80)
    assert found == (LayerSpec(1, 1), LayerSpec(0, (2,)))  # head 3 (9) and units 1.5 and 1 (the first) beat all units
    dull = by_layer(0.1 * heads[None], units[None])
    assert search_masks(LITTLE, dull, alpha, length=5) == (LayerSpec(0, 3), LayerSpec(0, 3))


def test_only_heads_may_be_left() -> None:
    heads, units = torch.full((1, 2, 2), 9.0), torch.full((1, 2, 3), 0.1)
    found = search_masks(LITTLE, by_layer(heads, units), 4 * HEAD / (4 * HEAD + 6 * UNIT), length=5)
    assert sizes(found) == [(2, 0), (2, 0)]


def test_everything_is_left_when_everything_may() -> None:
    assert search_masks(LITTLE, random_gradients(LITTLE, 0), 1.0, length=5) == LITTLE.full


def test_nothing_is_left_when_not_even_a_unit_may() -> None:
    assert sizes(search_masks(LITTLE, random_gradients(LITTLE, 0), 0.001, length=5)) == [(0, 0), (0, 0)]


@pytest.mark.parametrize("alpha", [0.0, -0.5, 1.1, float("nan")])
def test_a_share_outside_of_zero_to_one_is_refused(alpha: float) -> None:
    with pytest.raises(BadInput, match="alpha must be above 0 and at most 1"):
        search_masks(LITTLE, random_gradients(LITTLE, 0), alpha, length=5)


@pytest.mark.parametrize("name", STOCK)
def test_the_limit_holds_for_every_family_and_room_is_used(name: str) -> None:
    """Keys and values that several heads share cost as long as one of them is there."""
    of = read_anatomy(shared_tiny(name, None, "lm" if name in DECODERS else "classification").config)
    for alpha, seed in product((0.1, 0.35, 0.8), range(3)):
        spec = search_masks(of, random_gradients(of, seed), alpha, length=7)
        room = alpha * prunable_flops(of, of.full, 7) - prunable_flops(of, spec, 7)
        unit = prunable_flops(of, (LayerSpec(0, 1), LayerSpec(0, 0), LayerSpec(0, 0)), 7)
        assert room >= 0
        assert room < unit or all(units == of.units for _, units in sizes(spec))


@pytest.mark.parametrize("name", STOCK)
def test_shares_may_be_of_the_parameters(name: str) -> None:
    """Then a network of half the parameters is found within a budget of half; what cannot be pruned counts too."""
    of = read_anatomy(shared_tiny(name, None, "lm" if name in DECODERS else "classification").config)
    whole = nonembedding_parameters(of, of.full)
    fixed = nonembedding_parameters(of, (LayerSpec(0, 0),) * of.layers)
    unit = nonembedding_parameters(of, (LayerSpec(0, 1), LayerSpec(0, 0), LayerSpec(0, 0))) - fixed
    for alpha, seed in product((0.35, 0.5, 0.8), range(3)):
        spec = search_masks(of, random_gradients(of, seed), alpha, length=7, cost=nonembedding_parameters)
        kept = nonembedding_parameters(of, spec)
        assert kept <= max(fixed, alpha * whole)
        assert kept > alpha * whole - unit or all(units == of.units for _, units in sizes(spec)) or kept == fixed


def quadratic(fisher: np.ndarray, on: np.ndarray) -> float:
    gone = np.flatnonzero(~on)
    return float(sum(fisher[i, j] for i in gone for j in gone))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), kept=st.integers(0, 8))
def test_swaps_keep_the_number_and_end_where_no_swap_helps(seed: int, kept: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(5, 8)) * rng.exponential(size=8)
    fisher, on = rows.T @ rows / 5, rng.permutation(np.arange(8) < kept)
    found = swap_greedily(fisher, on)
    assert found.sum() == kept
    value = quadratic(fisher, found)
    assert value <= quadratic(fisher, on) + 1e-12
    for back, out in product(np.flatnonzero(~found), np.flatnonzero(found)):
        other = found.copy()
        other[[back, out]] = True, False
        assert quadratic(fisher, other) >= value - 1e-9
    best = min(quadratic(fisher, np.isin(np.arange(8), c)) for c in combinations(range(8), kept))
    assert value >= best - 1e-12


def test_a_swap_by_hand() -> None:
    """Alone the third costs most, 1.44 against 1; but gone together, it and one other undo each other."""
    rows = np.array([[1.0, 1.0, -1.2], [1.0, 1.0, -1.2]])
    found = swap_greedily(rows.T @ rows / 2, np.array([False, False, True]))
    assert found.tolist() == [True, False, False]  # (1 - 1.2)^2 = 0.04 instead of (1 + 1)^2 = 4


def test_the_block_of_a_layer_by_hand() -> None:
    block = fisher_block(torch.tensor([[1.0, 2.0], [3.0, -4.0]]), trust=0.5)
    assert block.tolist() == [[5.0, -2.5], [-2.5, 10.0]]  # (1 + 9) / 2, (2 - 12) / 2 / 2, (4 + 16) / 2


@pytest.mark.parametrize("seed", range(5))
def test_rearranging_works_layer_by_layer_with_the_counts_as_they_are(seed: int) -> None:
    of = encoder(layers=3, heads=4, units=30, width=8)
    gradients = random_gradients(of, seed, texts=40)
    for rows in gradients.units:
        rows[:, 15:] = -rows[:, :15] * 0.9  # pairs of which it is best to remove both
    before = search_masks(of, gradients, 0.5, length=5)
    (after,) = rearrange_masks([before], gradients)
    assert sizes(after) == sizes(before)
    values = []
    for spec in (before, after):
        total = 0.0
        for place, part in enumerate(spec):
            for kept, rows in ((part.heads, gradients.heads), (part.units, gradients.units)):
                on = np.isin(np.arange(rows[place].shape[1]), positions(kept))
                total += quadratic(fisher_block(rows[place]), on)
        values.append(total)
    assert values[1] < values[0]
