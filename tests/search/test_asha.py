"""MO-ASHA: who goes on to more epochs, worked out by hand and as rules that hold for every history."""

import threading
from pathlib import Path

import numpy as np
import optuna
import pytest
from designs import LARGE, OBJECTIVES, RUNGS, SMALL, Designs, open_study
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import TrialState, create_trial

from archwright.errors import BadInput
from archwright.search import EPOCHS, SAMPLERS, Bits, Choices, Config, config_of, rungs, search
from archwright.search.encoding import config_key
from archwright.search.front import ranks
from archwright.search.heartbeat import WORKER, lock_file
from archwright.search.history import PastTrial
from archwright.search.samplers import sampler as sampler_module
from archwright.search.samplers.asha import Asha, design_of
from archwright.search.samplers.sampler import wait_for_draws

CHOICES: Choices = {"width": range(1000), EPOCHS: (1, 3, 5)}


def tried(width: int, epochs: int, *losses: float, finished: bool = True) -> PastTrial:
    config = {"width": width, EPOCHS: epochs}
    return PastTrial(config, config_key(config), losses or None, finished, (0, 0.0))


def proposed(history: list[PastTrial], choices: Choices = CHOICES) -> Config:
    return Asha(choices).propose(history, np.random.default_rng(0))


def next_of(history: list[PastTrial]) -> tuple[int, int] | str:
    """Width and epochs of a promotion, or that a new design begins."""
    config = proposed(history)
    known = {one.config["width"] for one in history}
    return (config["width"], config[EPOCHS]) if config["width"] in known else f"new at {config[EPOCHS]}"


def test_rungs_grow_by_eta_and_end_with_the_largest() -> None:
    assert rungs(1, 5) == (1, 3, 5)
    assert rungs(1, 9) == (1, 3, 9)
    assert rungs(2, 20, 3) == (2, 6, 18, 20)
    assert rungs(1, 8, 2) == (1, 2, 4, 8)
    assert rungs(4, 4) == (4,)


def test_nobody_goes_on_before_there_are_three() -> None:
    assert next_of([]) == "new at 1"
    assert next_of([tried(0, 1, 0.1, 0.1), tried(1, 1, 0.9, 0.9)]) == "new at 1"


FIRST = [tried(0, 1, 0.5, 0.5), tried(1, 1, 0.2, 0.3), tried(2, 1, 0.6, 0.6)]


def test_the_best_of_three_goes_on_once() -> None:
    assert next_of(FIRST) == (1, 3)
    assert next_of([*FIRST, tried(1, 3, finished=False)]) == "new at 1"  # it is on its way
    assert next_of([*FIRST, tried(1, 3, 0.1, 0.3)]) == "new at 1"
    assert next_of([*FIRST, tried(1, 3)]) == "new at 1"  # told without losses: over a limit, or missing
    assert next_of([*FIRST, tried(1, 5, 0.1, 0.3)]) == "new at 1"  # it is further already


def test_running_ones_and_those_over_a_limit_do_not_count() -> None:
    assert next_of([*FIRST[:2], tried(2, 1, finished=False)]) == "new at 1"
    assert next_of([*FIRST[:2], tried(2, 1)]) == "new at 1"


def test_within_a_rank_the_lonelier_goes_first() -> None:
    """Six on one front, so two may go on: both ends have endless room, the first of them was told first."""
    front = [tried(i, 1, x, 1 - x) for i, x in enumerate((0.5, 0.4, 0.45, 0.9, 0.41, 0.1))]
    assert next_of(front) == (3, 3)
    assert next_of([*front, tried(3, 3, finished=False)]) == (5, 3)
    assert next_of([*front, tried(3, 3, finished=False), tried(5, 3, finished=False)]) == "new at 1"
    # With nine three may go on; room in the middle: 0.5 has (0.9 - 0.45) / 0.8 * 2, the largest but for the ends.
    more = [*front, *(tried(i, 1, 2.0, 2.0 + i) for i in (6, 7, 8))]
    assert next_of([*more, tried(3, 3, finished=False), tried(5, 3, finished=False)]) == (0, 3)


def test_the_highest_rung_goes_first_and_its_best_with_it() -> None:
    low = [tried(i, 1, i / 10, i / 10) for i in range(12)]  # four may go on
    high = [tried(i, 3, losses, losses) for i, losses in ((0, 0.3), (1, 0.1), (2, 0.2))]
    assert next_of([*low, *high]) == (1, 5)
    assert next_of([*low, *high, tried(1, 5, finished=False)]) == (3, 3)
    assert next_of([*low, *high, tried(1, 5, 0.1, 0.1), tried(3, 3, finished=False)]) == "new at 1"


def test_the_last_rung_is_the_end() -> None:
    done = [tried(i, epochs, i / 10, i / 10) for epochs in (1, 3, 5) for i in range(3)]
    assert next_of(done) == "new at 1"


def test_a_design_told_twice_counts_once() -> None:
    again = [tried(0, 1, 0.5, 0.5), tried(1, 1, 0.2, 0.3), tried(1, 1, 0.2, 0.3)]
    assert next_of(again) == "new at 1"


def test_packed_switches_go_on_unchanged() -> None:
    choices: Choices = {**LARGE, EPOCHS: (1, 3, 5)}
    mask = Bits(9288)
    packed = [mask.pack(np.arange(9288) % size == 0) for size in (2, 3, 5)]
    configs = [{"mask": value, EPOCHS: 1} for value in packed]
    history = [PastTrial(c, config_key(c), (float(i), 1.0), True, (0, 0.0)) for i, c in enumerate(configs)]
    assert proposed(history, choices) == {"mask": packed[0], EPOCHS: 3}


def is_allowed(promoted: Config, history: list[PastTrial], order: list[int]) -> bool:
    """Whether fewer than a third of the rung below are strictly better by rank; no crowding, so a weaker oracle."""
    below = order[order.index(promoted[EPOCHS]) - 1]
    rung = {design_of(one.config): one.losses for one in history if one.config[EPOCHS] == below and one.losses}
    rank = dict(zip(rung, ranks(np.array(list(rung.values()))), strict=True))
    better = sum(other < rank[design_of(promoted)] for other in rank.values())
    return better < len(rung) // 3


@settings(deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(1, 4), st.sampled_from([(1, 3, 5), (1, 2), (1, 3, 9, 27)]))
def test_rules_that_hold_for_any_number_of_workers(seed: int, workers: int, steps: tuple[int, ...]) -> None:
    """Plays a search in which trials are told in any order, some over a limit, and checks every proposal."""
    choices: Choices = {"width": range(40), EPOCHS: steps}
    rule, rng, history = Asha(choices), np.random.default_rng(seed), list[PastTrial]()
    for _ in range(60):
        config = rule.propose(history, rng)
        design = design_of(config)
        rung = [steps.index(one.config[EPOCHS]) for one in history if design_of(one.config) == design]
        if config[EPOCHS] != steps[0]:
            assert sorted(rung) == list(range(steps.index(config[EPOCHS])))  # each rung once, in order
            assert is_allowed(config, history, list(steps))
        elif rung:
            continue  # a design drawn again; the sampler redraws such
        history.append(PastTrial(config, config_key(config), None, False, (0, 0.0)))
        running = [place for place, one in enumerate(history) if not one.finished]
        while len(running) >= workers:
            place = running.pop(int(rng.integers(len(running))))
            losses = None if rng.random() < 0.1 else tuple(rng.integers(0, 6, size=2).astype(float))
            history[place] = PastTrial(history[place].config, history[place].key, losses, True, (0, 0.0))
    assert len({one.key for one in history}) == len(history)


def test_a_search_promotes_as_it_should() -> None:
    study = open_study(None, RUNGS, sampler="mo-asha", seed=1)
    search(study, Designs(RUNGS), OBJECTIVES, trials=60)
    configs = [config_of(RUNGS, trial) for trial in study.trials]
    counts = [sum(config[EPOCHS] == rung for config in configs) for rung in (1, 3, 5)]
    assert counts[0] > counts[1] > counts[2] > 0
    assert len({config_key(config) for config in configs}) == 60
    assert configs[3][EPOCHS] == 3 and design_of(configs[3]) in {design_of(config) for config in configs[:3]}


def test_a_space_without_epochs_is_refused_in_one_line() -> None:
    with pytest.raises(BadInput, match="--method standard") as error:
        SAMPLERS["mo-asha"](SMALL, seed=0)
    assert "MO-ASHA" in str(error.value) and "weight sharing" in str(error.value) and "\n" not in str(error.value)


def begun(study: optuna.Study, **config: int) -> int:
    """A trial that some worker is drawing; its number."""
    whole = create_trial(
        state=TrialState.RUNNING,
        params=config,
        distributions={name: sampler_module.distributions(CHOICES)[name] for name in config},
        user_attrs={WORKER: {"id": "some"}},
    )
    study.add_trial(whole)
    return len(study.trials) - 1


def test_a_draw_waits_for_the_draws_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(None, CHOICES, sampler="mo-asha")
    number = begun(study, width=3)
    waiting = threading.Thread(target=wait_for_draws, args=(study, number + 1, CHOICES))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    drawn = study._storage.get_trial_id_from_study_id_trial_number(study._study_id, number)
    epochs = sampler_module.distributions(CHOICES)[EPOCHS]
    study._storage.set_trial_param(drawn, EPOCHS, epochs.to_internal_repr(1), epochs)
    waiting.join(100)
    assert not waiting.is_alive()


class Clock:
    """Time that passes only when someone sleeps."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize("worker", ["dead", "far away"])
def test_a_draw_waits_for_the_dead_not_at_all_and_for_the_silent_briefly(
    worker: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = Clock()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lock_file("dead").touch()
    monkeypatch.setattr(sampler_module, "time", clock)
    study = open_study(None, CHOICES, sampler="mo-asha")
    study.add_trial(create_trial(state=TrialState.RUNNING, user_attrs={WORKER: {"id": worker}}))
    wait_for_draws(study, 1, CHOICES)
    assert clock.now == pytest.approx(sampler_module.DRAW_SECONDS if worker == "far away" else 0.0, abs=0.1)


def test_threads_on_one_study_try_nothing_twice() -> None:
    """Promotions follow from the history alone, so without waiting two that ask at once would get the same."""
    storage = optuna.storages.InMemoryStorage()
    choices: Choices = {"heads": range(100), "units": range(100), EPOCHS: (1, 3, 5)}

    def work() -> None:
        search(open_study(storage, choices, sampler="mo-asha", seed=2), Designs(choices), OBJECTIVES, trials=80)

    open_study(storage, choices, sampler="mo-asha", seed=2)
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = [t for t in open_study(storage, choices).trials if t.state is TrialState.COMPLETE]
    assert len(done) == 80
    assert len({config_key(config_of(choices, trial)) for trial in done}) == 80
