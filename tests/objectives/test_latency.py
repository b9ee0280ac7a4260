"""Timing by a clock that only the timed calls move, so that every number is known beforehand."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from archwright.errors import BadInput
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import (
    TOGETHER,
    Timing,
    Timings,
    bootstrap_timing,
    extract_for_timing,
    measure_latency,
    merge_sessions,
    random_inputs,
    rank_timings,
    split_sessions,
    time_calls,
)
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import LayerSpec
from tests.tiny import BATCHES, DECODERS, shared_tiny


class World:
    """A clock, and calls that take known seconds, longer and longer when there is drift."""

    def __init__(self, seconds: dict[str, float], *, drift: float = 0.0, jitter: float = 0.0) -> None:
        self.now, self.drift, self.log = 0.0, drift, []
        self.noise = np.random.default_rng(7)
        self.jitter = jitter
        self.calls = {name: self.call(name, duration) for name, duration in seconds.items()}

    def call(self, name: str, duration: float) -> Callable[[], None]:
        def run() -> None:
            self.log.append(name)
            self.now += duration * (1 + self.drift * len(self.log)) * (1 + self.jitter * self.noise.exponential())

        return run

    def timings(self, *, rounds: int = 12, seed: int = 0, warmup: int = 3, sentinel: str | None = "a") -> Timings:
        rng = np.random.default_rng(seed)
        options = {"warmup": warmup, "sentinel": sentinel, "clock": lambda: self.now}
        return time_calls(self.calls, rounds=rounds, rng=rng, **options)


SECONDS = {"a": 0.001, "b": 0.002, "c": 0.004}


def test_steady_calls_are_timed_exactly() -> None:
    timings = World(SECONDS).timings()
    for name, duration in SECONDS.items():
        assert timings[name] == pytest.approx((1000 * duration,) * 3)
        assert timings.samples[name].shape == (12,)
    assert timings.drift == pytest.approx(0) and timings.rounds == 12


def test_every_round_has_every_call_in_a_new_order() -> None:
    world = World(SECONDS)
    world.timings(rounds=20, warmup=2, sentinel=None)
    assert world.log[:6] == ["a", "a", "b", "b", "c", "c"]
    runs = np.array(world.log[6:]).reshape(20, 3, 2)
    assert (runs[:, :, 0] == runs[:, :, 1]).all(), "the untimed run comes directly before the timed one"
    orders = {tuple(order) for order in runs[:, :, 0]}
    assert all(sorted(order) == ["a", "b", "c"] for order in orders) and len(orders) > 3


def test_the_sentinel_is_read_at_start_middle_and_end() -> None:
    world = World(SECONDS | {"d": 0.001})
    timings = world.timings(rounds=10, warmup=0, sentinel="d")
    for order in np.array(world.log).reshape(10, 7, 2)[:, :, 0]:
        assert [order[0], order[3], order[6]] == ["d"] * 3
        assert sorted(order[[1, 2, 4, 5]]) == ["a", "b", "c", "d"]
    assert len(timings.samples["d"]) == 10, "readings are not samples"


def test_drift_is_noticed() -> None:
    world = World({"a": 0.001}, drift=0.01, jitter=0.0)
    timings = world.timings(rounds=30, warmup=0)
    runs = 30 * 8
    assert timings.drift == pytest.approx((1 + 0.01 * runs * 5 / 6) / (1 + 0.01 * runs / 6) - 1, rel=0.02)
    assert World({"a": 0.001}, drift=0.01).timings(sentinel=None).drift is None
    assert World({"a": 0.001}, jitter=0.05).timings(rounds=100).drift == pytest.approx(0, abs=0.02)


def test_interleaving_treats_all_alike_when_the_machine_slows_down() -> None:
    timings = World({"a": 0.001, "b": 0.001}, drift=0.01).timings(rounds=200)
    assert timings["a"].median == pytest.approx(timings["b"].median, rel=0.02)


def test_seeds_repeat_and_differ() -> None:
    one, same, other = (World(SECONDS, jitter=0.2) for _ in range(3))
    first, again, different = one.timings(seed=1), same.timings(seed=1), other.timings(seed=2)
    assert first.by_name == again.by_name and one.log == same.log
    assert one.log != other.log and first.by_name != different.by_name


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=40), st.integers(0, 100))
def test_an_interval_holds_its_median_and_stays_inside_the_samples(samples: list[float], seed: int) -> None:
    timing = bootstrap_timing(np.array(samples), np.random.default_rng(seed))
    assert min(samples) <= timing.low <= timing.median <= timing.high <= max(samples)
    assert timing == bootstrap_timing(np.array(samples), np.random.default_rng(seed))


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    timings = [bootstrap_timing(rng.lognormal(size=30), rng) for _ in range(300)]
    assert 0.90 <= np.mean([timing.low <= 1.0 <= timing.high for timing in timings]) <= 0.99


def test_whoever_overlaps_shares_a_rank() -> None:
    timings = {"slow": Timing(9, 8, 10), "x": Timing(2, 1, 3), "y": Timing(3.5, 2.5, 5), "z": Timing(5.5, 4.5, 6)}
    assert rank_timings(timings) == {"x": 1, "y": 1, "z": 1, "slow": 4}, "x and z are joined by y"
    assert rank_timings({"b": Timing(2, 2, 2), "a": Timing(1, 1, 1)}) == {"a": 1, "b": 2}
    assert rank_timings({}) == {}


intervals = st.tuples(st.floats(0, 10), st.floats(0, 3), st.floats(0, 3)).map(
    lambda t: Timing(t[0], t[0] - t[1], t[0] + t[2])
)


@given(st.lists(intervals, max_size=8))
def test_ranks_differ_only_where_intervals_do(timings: list[Timing]) -> None:
    ranks = rank_timings({str(i): timing for i, timing in enumerate(timings)})
    for i, one in enumerate(timings):
        for j, other in enumerate(timings):
            if one.low <= other.high and other.low <= one.high:  # the two cannot be told apart
                assert ranks[str(i)] == ranks[str(j)]
            elif ranks[str(i)] < ranks[str(j)]:
                assert one.high < other.low


def test_one_thread_inside_and_as_before_afterwards() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = []
    try:
        time_calls({"a": lambda: seen.append(torch.get_num_threads())}, rounds=2, rng=np.random.default_rng(0))
        assert set(seen) == {1} and torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError):
            time_calls({"a": lambda: 1 / 0}, rounds=2, rng=np.random.default_rng(0))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_wrong_numbers_are_refused(bert: PrunedNetwork) -> None:
    with pytest.raises(BadInput, match="at least 1 round, got 0"):
        World(SECONDS).timings(rounds=0)
    with pytest.raises(ValueError, match="one of the calls, got 'x'"):
        World(SECONDS).timings(sentinel="x")
    for batch, length in ((0, 8), (1, 0), (1, 41)):
        with pytest.raises(BadInput, match=f"1 to 40 tokens, got {batch} and {length}"):
            measure_latency(bert, {}, batch=batch, length=length)


def test_sub_networks_of_every_family_are_timed(any_family: PrunedNetwork) -> None:
    of = read_anatomy(any_family.config)
    specs = {"whole": of.full, "part": (LayerSpec(1, 5),) * 3, "none": (LayerSpec(0, 0),) * 3}
    any_family.train()
    timings = measure_latency(any_family, specs, batch=2, length=40, rounds=3, seed=0)
    assert timings.by_name.keys() == specs.keys() and timings.drift is not None
    assert all(0 < timing.low <= timing.median <= timing.high for timing in timings.by_name.values())
    assert all(module.training for module in any_family.modules())
    any_family(input_ids=torch.ones(1, 4, dtype=torch.long)).logits.sum().backward()


def test_many_networks_are_timed_in_sessions_with_the_sentinel() -> None:
    names = [str(i) for i in range(2 * TOGETHER + 4)]
    sessions = split_sessions(names)
    assert [len(session) for session in sessions] == [TOGETHER + 1, TOGETHER + 1, 4]
    assert all(session[0] == "0" for session in sessions)
    assert names == ["0", *(name for session in sessions for name in session[1:])]
    assert split_sessions(names[: TOGETHER + 1]) == [names[: TOGETHER + 1]]
    assert split_sessions(["a"]) == [["a"]] and split_sessions([]) == [[]]


def test_sessions_are_comparable_by_their_sentinel() -> None:
    fast = World({"a": 0.001, "b": 0.002}).timings(rounds=5)
    slow = World({"a": 0.003, "c": 0.012}, drift=0.001).timings(rounds=5)
    both = merge_sessions([fast, slow], "a")
    assert both["a"].median == pytest.approx(1.0) and both["b"].median == pytest.approx(2.0)
    assert both["c"].median == pytest.approx(4.0, rel=0.05) and both.samples["c"].shape == (5,)
    assert both.drift == slow.drift and both.rounds == 5
    assert merge_sessions([fast], "a") == fast


def test_the_networks_of_a_long_front_are_all_timed(bert: PrunedNetwork) -> None:
    specs = {str(units): (LayerSpec(1, units),) * 3 for units in range(TOGETHER + 3, 0, -1)}
    timings = measure_latency(bert, specs, batch=1, length=4, rounds=2)
    assert timings.by_name.keys() == timings.samples.keys() == specs.keys()


def test_inputs_are_valid_and_without_padding(any_family: PrunedNetwork) -> None:
    inputs = random_inputs(any_family, batch=50, length=40, rng=np.random.default_rng(0))
    pad = any_family.config.pad_token_id
    assert set(inputs["input_ids"].unique().tolist()) == set(range(50)) - {pad}
    assert (inputs["attention_mask"] == 1).all()
    assert ("token_type_ids" in inputs) == (any_family.config.stock().model_type in {"bert", "electra"})


def test_a_timed_network_shares_nothing_but_the_word_vectors(any_family: PrunedNetwork) -> None:
    theirs = {p.data_ptr() for p in any_family.parameters()}
    network = extract_for_timing(any_family, read_anatomy(any_family.config).full)
    shared = [name for name, p in network.named_parameters() if p.data_ptr() in theirs]
    assert shared == ["backbone.embeddings.word_embeddings.weight"] and not network.training


@pytest.mark.parametrize("name", DECODERS)
def test_a_timed_decoder_shares_its_word_vectors_also_as_outputs(name: str) -> None:
    model = shared_tiny(name, None, "lm")
    theirs = {p.data_ptr() for p in model.parameters()}
    network = extract_for_timing(model, read_anatomy(model.config).full)
    words = network.backbone.get_input_embeddings().weight
    assert [p.data_ptr() in theirs for p in network.parameters()] == [p is words for p in network.parameters()]
    assert words is model.backbone.get_input_embeddings().weight
    assert (network.lm_head.weight is words) == DECODERS[name].tie_word_embeddings
    inputs = random_inputs(model, batch=2, length=24, rng=np.random.default_rng(0))
    torch.testing.assert_close(network(**inputs).logits, model(**inputs).logits, rtol=0, atol=1e-9)
    with pytest.raises(BadInput, match="1 to 24 tokens"):
        random_inputs(model, batch=2, length=25, rng=np.random.default_rng(0))


@pytest.mark.parametrize("kind", BATCHES)
def test_sub_networks_for_every_kind_of_task_are_timed(kind: str) -> None:
    model = shared_tiny("llama-queries", None, kind)
    inputs = random_inputs(model, batch=2, length=9, rng=np.random.default_rng(0))
    assert inputs["input_ids"].shape == {"choice": (2, 3, 9)}.get(kind, (2, 9))
    assert model(**inputs).logits.shape == LOGITS[kind]
    timings = measure_latency(model, {"part": (LayerSpec(1, 5),) * 3}, batch=2, length=9, rounds=2, seed=0)
    assert timings["part"].median > 0


LOGITS = {
    "classification": (2, 3),
    "choice": (2, 3),
    "qa": (2, 2, 9),
    "lm": (2, 9, 40),
    "tokens": (2, 9, 3),
    "multi-label": (2, 3),
    "embeddings": (2, 1, 16),
}
"""Logits of two texts of nine tokens, with three labels or choices."""


def test_rounds_end_early_when_precise_or_when_time_is_over() -> None:
    ticks = iter(range(10**6))
    steady = {"a": lambda: None, "b": lambda: None}
    done = time_calls(steady, rounds=30, rng=np.random.default_rng(0), clock=lambda: float(next(ticks)), seconds=1e6)
    assert (done.rounds, done.stopped) == (5, "precise")
    noise = np.random.default_rng(1)
    ragged = {"clock": 0.0}

    def uneven() -> float:
        ragged["clock"] += float(noise.exponential())
        return ragged["clock"]

    done = time_calls(steady, rounds=30, rng=np.random.default_rng(0), clock=uneven, seconds=0.0)
    assert (done.rounds, done.stopped) == (5, "time")
    done = time_calls(steady, rounds=8, rng=np.random.default_rng(0), clock=uneven, seconds=1e6)
    assert (done.rounds, done.stopped) == (8, "")
    assert time_calls(steady, rounds=9, rng=np.random.default_rng(0), clock=lambda: float(next(ticks))).rounds == 9
