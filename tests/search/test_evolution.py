"""Regularized evolution: the young are the population, the better-ranked of a random few have the children."""

from collections import Counter

import numpy as np
import pytest

from archwright.search import Bits, Config, sample
from archwright.search.history import PastTrial
from archwright.search.samplers.evolution import POPULATION, Evolution

MASK = Bits(60)


def tried(config: Config, *losses: float) -> PastTrial:
    return PastTrial(config, str(config), losses or None, True, (0, 0.0))


def parent_of(child: Config, members: list[PastTrial]) -> int:
    """The place of the member that differs in one switch; random rows of 60 are further apart than that."""
    apart = [int((MASK.unpack(child["m"]) != MASK.unpack(one.config["m"])).sum()) for one in members]
    assert min(apart) == 1
    return apart.index(1)


def test_the_old_leave_and_the_better_half_has_the_children() -> None:
    rng = np.random.default_rng(0)
    configs = [sample({"m": MASK}, rng) for _ in range(POPULATION + 3)]
    old = [tried(config, -9.0, -9.0) for config in configs[:3]]  # the best of all, but too old
    over_a_limit = tried(sample({"m": MASK}, rng))
    young = [tried(config, float(place), float(place)) for place, config in enumerate(configs[3:])]
    rule, members = Evolution({"m": MASK}), [*old, *young]
    parents = Counter(parent_of(rule.propose([*members, over_a_limit], rng), members) for _ in range(2000))
    assert not parents.keys() & {0, 1, 2}
    assert parents[3] / 2000 == pytest.approx(0.5, abs=0.04)  # the best is among 5 of 10 every second time
    assert parents[4] / 2000 == pytest.approx(5 / 18, abs=0.04)
    assert not parents.keys() & {9, 10, 11, 12}  # of 5 out of 10 the four worst are never the best
