"""Generations of NSGA-II: who survives, and that what was told decides, not when it was asked."""

from pytest import approx

from archwright.search.history import PastTrial
from archwright.search.samplers.nsga2 import POPULATION, Generations, survivors


def tried(*losses: float, violation: tuple[int, float] = (0, 0.0), finished: bool = True, name: int = 0) -> PastTrial:
    return PastTrial({"heads": 1, "units": 0, "layers": name % 7}, str(name), losses or None, finished, violation)


def test_survivors_by_rank_then_room_then_misfit() -> None:
    pool = [
        tried(0.0, 4.0),
        tried(1.0, 2.0),
        tried(1.1, 1.95),
        tried(4.0, 0.0),
        tried(5.0, 5.0),
        tried(violation=(0, 3.0)),
        tried(violation=(0, 1.0)),
        tried(violation=(-1, 9.0)),
    ]
    order = [pool.index(parent.trial) for parent in survivors(pool, 8)]
    assert order == [0, 3, 2, 1, 4, 7, 6, 5]  # the two in the middle: the one with more room first
    assert [pool.index(parent.trial) for parent in survivors(pool, 3)] == [0, 3, 2]
    assert [parent.rank for parent in survivors(pool, 8)] == [0, 0, 0, 0, 1, 2, 3, 4]


def test_good_parents_survive_bad_children() -> None:
    rule = Generations(POPULATION)
    good = [tried(i / 100, 0.2 - i / 100, name=i) for i in range(POPULATION)]
    bad = [tried(1.0 + i, 1.0 + i, name=100 + i) for i in range(POPULATION)]
    keys = {parent.trial.key for parent in rule.parents(good + bad)}
    assert keys == {one.key for one in good}
    assert min(parent.crowding for parent in rule.parents(good + bad)) == approx(4 / 19)


def test_a_generation_still_running_is_not_settled() -> None:
    rule = Generations(POPULATION)
    running = [tried(finished=False, name=i) for i in range(POPULATION)]
    done = [tried(0.5, 0.5, name=i) for i in range(POPULATION)]
    assert rule.parents(running) == []
    assert len(rule.parents(done)) == POPULATION
