"""From scores to masks of a wanted size: by hand on a network of a few hundred parameters, and by properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.subnet.pruning.baselines import drop_layers, head_pruning, magnitude_pruning, random_pruning
from archwright.subnet.pruning.scores import select_by_scores, select_heads, select_randomly
from archwright.subnet.spec import Anatomy, LayerSpec, SubnetSpec, count, nonembedding_parameters, positions
from archwright.training.losses import task_loss
from tests.anatomies import encoder
from tests.tiny import shared_tiny, tiny_batch

LITTLE = encoder(layers=2, heads=2, units=3, width=4)
HEAD, UNIT, EXTRA, TASK = 38, 9, 12, 30
"""By hand: 4 x 4 x 2 weights and 3 x 2 biases; 2 x 4 and 1; bias and norm of a sub-layer; 4 x 4 + 4 + 4 x 2 + 2."""
WHOLE = 2 * (2 * HEAD + EXTRA + 3 * UNIT + EXTRA) + TASK


def test_the_hand_counted_network_has_284_parameters() -> None:
    assert nonembedding_parameters(LITTLE, LITTLE.full) == WHOLE == 284


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (284, (LayerSpec(2, 3), LayerSpec(2, 3))),
        (283, (LayerSpec((1,), 3), LayerSpec(2, 3))),
        (246, (LayerSpec((1,), 3), LayerSpec(2, 3))),
        (245, (LayerSpec((1,), 3), LayerSpec(1, 3))),
        (207, (LayerSpec(0, 3), LayerSpec(1, 3))),  # the last head of a layer takes its norm along
        (158, (LayerSpec(0, 3), LayerSpec(1, 3))),
        (157, (LayerSpec(0, 3), LayerSpec(0, 3))),
        (108, (LayerSpec(0, 3), LayerSpec(0, 3))),
        (107, None),
    ],
)
def test_the_lowest_heads_go_until_the_share_is_reached(left: int, expected: SubnetSpec | None) -> None:
    scores = np.array([[0.1, 0.5], [0.9, 0.3]])
    assert select_heads(LITTLE, scores, (left + 0.5) / WHOLE) == expected


def test_scores_count_per_parameter() -> None:
    heads = np.array([[380.0, 38.0], [3800.0, 76.0]])  # 10, 1, 100 and 2 per parameter
    units = np.array([[900.0, 13.5, 27.0], [900.0, 900.0, 900.0]])  # 1.5 and 3 are low
    found = [select_by_scores(LITTLE, heads, units, (WHOLE - gone + 0.5) / WHOLE) for gone in (1, 39, 48, 86)]
    assert found == [
        (LayerSpec(1, 3), LayerSpec(2, 3)),
        (LayerSpec(1, (0, 2)), LayerSpec(2, 3)),
        (LayerSpec(1, (0, 2)), LayerSpec(1, 3)),
        (LayerSpec(1, 1), LayerSpec(1, 3)),
    ]


def removed(of: Anatomy, spec: SubnetSpec) -> list[tuple[int, str, int]]:
    gone = []
    for place, part in enumerate(spec):
        gone += [(place, "heads", i) for i in range(of.heads) if i not in positions(part.heads)]
        gone += [(place, "units", i) for i in range(of.units) if i not in positions(part.units)]
    return gone


def put_back(spec: SubnetSpec, place: int, kind: str, index: int) -> SubnetSpec:
    part = spec[place]
    bigger = part._replace(**{kind: tuple(sorted({*positions(getattr(part, kind)), index}))})
    return (*spec[:place], bigger, *spec[place + 1 :])


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1), seed=st.integers(0, 1000))
def test_no_part_goes_without_need(share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    of = encoder(layers=3, heads=4, units=9, width=8)
    heads, units = rng.random((3, 4)), rng.random((3, 9))
    spec, most = select_by_scores(of, heads, units, share), share * nonembedding_parameters(of, of.full)
    if spec is None:
        assert nonembedding_parameters(of, (LayerSpec(0, 0),) * 3) > most
        return
    assert nonembedding_parameters(of, spec) <= most
    worth = {"heads": heads / (4 * 8 * 2 + 3 * 2), "units": units / (2 * 8 + 1)}
    gone = removed(of, spec)
    stay = [key for key in removed(of, (LayerSpec(0, 0),) * 3) if key not in gone]
    if gone:
        last = max(gone, key=lambda key: worth[key[1]][key[0], key[2]])
        assert nonembedding_parameters(of, put_back(spec, *last)) > most
        assert all(worth[k][i, j] >= worth[last[1]][last[0], last[2]] for i, k, j in stay)


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0.15, 1), seed=st.integers(0, 1000))
def test_random_masks_repeat_and_have_the_size(share: float, seed: int) -> None:
    first, again = (select_randomly(LITTLE, share, np.random.default_rng(seed)) for _ in range(2))
    assert first == again is not None
    assert nonembedding_parameters(LITTLE, first) <= share * WHOLE


def test_random_masks_differ_and_treat_all_alike() -> None:
    rng = np.random.default_rng(0)
    found = [select_randomly(LITTLE, 0.6, rng) for _ in range(4000)]
    assert len(set(found)) > 30
    rates = [np.mean([index in positions(spec[layer].units) for spec in found]) for layer in (0, 1) for index in (0, 2)]
    assert np.ptp(rates) < 0.05  # four standard deviations of a rate are 0.03


def test_a_share_that_heads_cannot_reach_is_left_out() -> None:
    network, batches = shared_tiny("bert"), [tiny_batch("bert")]
    found = head_pruning(network, batches, task_loss, (0.9, 0.5, 0.05))
    assert list(found) == [0.9, 0.5]
    assert all(count(part.units) == 10 for spec in found.values() for part in spec)


def test_smaller_shares_keep_parts_of_larger_ones() -> None:
    network = shared_tiny("llama-groups", None, "lm")
    found = magnitude_pruning(network, (0.9, 0.6, 0.3))
    for larger, smaller in ((0.9, 0.6), (0.6, 0.3)):
        for big, small in zip(found[larger], found[smaller], strict=True):
            assert set(positions(small.heads)) <= set(positions(big.heads))
            assert set(positions(small.units)) <= set(positions(big.units))


def test_random_pruning_is_as_random_as_its_generator() -> None:
    network, shares = shared_tiny("bert"), (0.8, 0.5)
    first, again, other = (random_pruning(network, shares, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_layers_are_dropped_from_the_top() -> None:
    whole, gone = LayerSpec(4, 10), LayerSpec(0, 0)
    assert drop_layers(shared_tiny("bert")) == [(whole, whole, gone), (whole, gone, gone)]
