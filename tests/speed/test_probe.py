"""What `python -m experiments.speed probe` compares is what it says; speed itself is no unit test."""

import math

from archwright.proxies import PROXIES
from experiments.speed.probe import COMPARED, DEAR, ORDINARY, STEADY, agreement


def test_ordinary_proxies_take_one_backward_pass_and_no_nuclear_norm() -> None:
    assert {"snip", "w_pca", "jacobian_cosine", "eznas"} <= set(ORDINARY)
    assert not set(ORDINARY) & {name for names in DEAR.values() for name in names}
    assert {"dss_normalised", "synaptic_diversity_normalised"}.isdisjoint(ORDINARY)


def test_every_name_is_a_proxy() -> None:
    assert {*COMPARED, *STEADY, *(name for names in DEAR.values() for name in names)} <= set(PROXIES)


def test_agreement_is_over_architectures_that_have_both_scores() -> None:
    assert agreement([1.0, 2.0, None, 4.0], [10.0, 20.0, 5.0, 40.0]) == 1.0
    assert math.isnan(agreement([1.0, None, 3.0], [1.0, 2.0, 3.0]))
    assert math.isnan(agreement([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))
