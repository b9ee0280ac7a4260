"""Milliseconds one can trust: many rounds in shuffled order, an interval for every median, a sentinel against drift."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from archwright.devices import synchronize
from archwright.errors import BadInput
from archwright.networks.load import max_length_of
from archwright.networks.pruned import PrunedNetwork
from archwright.progress import progress
from archwright.subnet.extract import extract
from archwright.subnet.spec import SubnetSpec, sizes
from archwright.tasks import TASK_KINDS

RESAMPLES = 1000
"""Bootstrap samples behind an interval."""
TOGETHER = 16
"""Networks that are timed in the same rounds, beside the sentinel: each has its own weights in memory."""
TOGETHER_BYTES = 4_000_000_000
"""Of large networks as many as have so many bytes together when each has half of the layers' weights."""
FEWEST_ROUNDS = 5
"""Before a measurement may end early."""
PRECISE = 0.04
"""Width of an interval as a share of its median from which on more rounds tell nothing that one would act on."""

Clock = Callable[[], float]
"""Seconds."""
CPU = torch.device("cpu")


Prepare = Callable[[PrunedNetwork, dict[str, torch.Tensor]], Callable[[], Any]]
"""A network and its inputs to a call that runs it once."""


class Timing(NamedTuple):
    """Milliseconds: the median, and the bounds of its 95 % bootstrap interval."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Timings:
    """What was timed together, and so may be compared."""

    by_name: dict[str, Timing]
    samples: dict[str, NDArray[np.float64]]
    """Milliseconds, one per round; entry i of names that were timed together comes from the same round."""
    drift: float | None
    """Sentinel's median in the last third against the first third, minus 1: 0.05 is a machine that got 5 % slower."""
    rounds: int
    stopped: str = ""
    """Why there were fewer rounds than at most: precise or time; empty when there were not."""

    def __getitem__(self, name: str) -> Timing:
        return self.by_name[name]


def rank_timings(timings: Mapping[str, Timing]) -> dict[str, int]:
    """1 + the number of surely faster ones; whoever overlaps, also through others in between, shares a rank."""
    ranks: dict[str, int] = {}
    reach = -np.inf
    place = 1
    for done, (name, timing) in enumerate(sorted(timings.items(), key=lambda item: item[1].low)):
        place = place if timing.low <= reach else done + 1
        reach = max(reach, timing.high)
        ranks[name] = place
    return ranks


def time_calls(
    calls: Mapping[str, Callable[[], Any]],
    *,
    rounds: int,
    rng: np.random.Generator,
    warmup: int = 3,
    sentinel: str | None = None,
    clock: Clock = time.perf_counter,
    seconds: float | None = None,
    title: str = "latency",
) -> Timings:
    """Every call once per round, in a new order each round, on one torch thread (other runtimes: the caller's care).

    The sentinel, one of the calls, is timed three more times per round, at its start, middle and end; these readings
    only tell the drift. An untimed run precedes every timed one, because a network in use
    finds its weights in the cache. With `seconds` the rounds end early, but not before the fifth: when every interval
    is narrow, or when the time is over.
    """
    if rounds < 1:
        raise BadInput(f"timing needs at least 1 round, got {rounds}.")
    if sentinel is not None and sentinel not in calls:
        raise ValueError(f"the sentinel must be one of the calls, got {sentinel!r}; choose from {sorted(calls)}.")
    samples: dict[str, list[float]] = {name: [] for name in calls}
    readings: list[float] = []
    with one_thread(), progress(title, rounds, "rounds") as bar:
        for call in calls.values():
            for _ in range(warmup):
                call()
        begun, stopped, done = time.monotonic(), "", 0
        while done < rounds and not stopped:
            for name, is_reading in order_round(list(calls), sentinel, rng):
                call = calls[name]
                call()
                start = clock()
                call()
                (readings if is_reading else samples[name]).append(1000 * (clock() - start))
            bar.advance()
            done += 1
            if seconds is not None and FEWEST_ROUNDS <= done < rounds:
                over = time.monotonic() - begun > seconds
                stopped = "precise" if all(map(is_precise, samples.values())) else "time" if over else ""
    arrays = {name: np.array(values) for name, values in samples.items()}
    by_name = {name: bootstrap_timing(values, rng) for name, values in arrays.items()}
    third = len(readings) // 3
    drift = float(np.median(readings[-third:]) / np.median(readings[:third]) - 1) if sentinel is not None else None
    return Timings(by_name, arrays, drift, done, stopped)


def is_precise(samples: Sequence[float]) -> bool:
    """Whether the 95 % interval of the median, taken from order statistics, is at most 4 % of it wide."""
    ordered, count = sorted(samples), len(samples)
    reach = 0.98 * count**0.5  # half of 1.96 standard deviations of the number of samples below the median
    low, high = max(0, int(count / 2 - reach)), min(count - 1, int(count / 2 + reach))
    return ordered[high] - ordered[low] <= PRECISE * ordered[count // 2]


def order_round(names: list[str], sentinel: str | None, rng: np.random.Generator) -> list[tuple[str, bool]]:
    """One round: every name once, and the sentinel's readings, marked True."""
    order = [(names[i], False) for i in rng.permutation(len(names))]
    if sentinel is None:
        return order
    middle, reading = len(order) // 2, (sentinel, True)
    return [reading, *order[:middle], reading, *order[middle:], reading]


def bootstrap_timing(samples: NDArray[np.float64], rng: np.random.Generator) -> Timing:
    """The median with its percentile bootstrap interval."""
    draws = rng.choice(samples, size=(RESAMPLES, len(samples)))
    low, high = np.quantile(np.median(draws, axis=1), (0.025, 0.975))
    return Timing(float(np.median(samples)), float(low), float(high))


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch computes on one thread inside, and on as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def measure_latency(
    model: PrunedNetwork,
    specs: Mapping[str, SubnetSpec],
    *,
    batch: int,
    length: int,
    rounds: int = 30,
    seed: int = 0,
    clock: Clock | None = None,
    seconds: float | None = None,
    first: PrunedNetwork | None = None,
    prepare: Prepare | None = None,
    device: torch.device = CPU,
) -> Timings:
    """Milliseconds per batch of every sub-network, extracted and timed together; the first one is the sentinel too.

    `first` is timed in place of the first sub-network, where that is another network that reads the same inputs.
    `prepare` makes a call of a network and its inputs, in another runtime than torch, on one thread.

    On a CPU the clock counts the processor time of the one thread that computes: on an idle machine that is the time
    one waits, and on a busy one it stays so, where a wall clock would time the neighbours. On another device it is the
    wall clock, read when the device is done. More than 16 are timed in several sessions, all with the sentinel, whose
    median makes them comparable. `seconds` is for all sessions together.
    """
    rng, clock = np.random.default_rng(seed), clock or device_clock(device)
    inputs = {k: x.to(device) for k, x in random_inputs(model, batch=batch, length=length, rng=rng).items()}
    sentinel = next(iter(specs), None)
    sessions, groups = [], split_sessions(list(specs), most_together(model))
    for names in groups:
        share = None if seconds is None else seconds / len(groups)
        networks = {
            name: first.to(device).eval()
            if first is not None and name == sentinel
            else extract_for_timing(model, specs[name], device)
            for name in names
        }
        calls = prepare_calls(networks, inputs, prepare)
        with torch.inference_mode():
            sessions.append(time_calls(calls, rounds=rounds, rng=rng, sentinel=sentinel, clock=clock, seconds=share))
    return merge_sessions(sessions, sentinel)


def prepare_calls(
    networks: Mapping[str, PrunedNetwork], inputs: dict[str, torch.Tensor], prepare: Prepare | None
) -> dict[str, Callable[[], Any]]:
    """One call per network; other runtimes take seconds to get one ready."""
    if prepare is None:
        return {name: forward(network, inputs) for name, network in networks.items()}
    calls = {}
    with progress("prepare networks for timing", len(networks), "networks") as bar:
        for name, network in networks.items():
            calls[name] = prepare(network, inputs)
            bar.advance()
    return calls


def split_sessions(names: list[str], together: int = TOGETHER) -> list[list[str]]:
    """The first name with every so many of the others."""
    return [names[:1] + names[start : start + together] for start in range(1, max(2, len(names)), together)]


def most_together(model: PrunedNetwork) -> int:
    """How many sub-networks of this one may be in memory at once."""
    half = sum(tensor.nbytes for placed in model.placed_layers() for tensor in placed.layer.parameters()) / 2
    return int(max(1, min(TOGETHER, TOGETHER_BYTES // max(1, half))))


def merge_sessions(sessions: list[Timings], sentinel: str | None) -> Timings:
    """One set of timings: those of a later session are scaled as if the sentinel had taken as long as in the first."""
    first = sessions[0]
    by_name, samples, drifts = dict(first.by_name), dict(first.samples), [first.drift or 0.0]
    for session in sessions[1:]:
        scale = first[str(sentinel)].median / session[str(sentinel)].median
        others = [name for name in session.by_name if name != sentinel]
        by_name |= {name: Timing(*(scale * value for value in session[name])) for name in others}
        samples |= {name: scale * session.samples[name] for name in others}
        drifts.append(session.drift or 0.0)
    fewest = min(sessions, key=lambda session: session.rounds)
    drift = None if first.drift is None else max(drifts, key=abs)
    return Timings(by_name, samples, drift, fewest.rounds, fewest.stopped)


def device_clock(device: torch.device) -> Clock:
    """Processor time of the computing thread on a CPU, otherwise the wall clock."""
    return time.thread_time if device.type == "cpu" else time.perf_counter


def extract_for_timing(model: PrunedNetwork, spec: SubnetSpec, device: torch.device = CPU) -> PrunedNetwork:
    """The sub-network on this device with tensors of its own, but for the table of word vectors.

    A batch reads a few rows of it; one copy per network of a front would be most of the memory. The whole network, if
    it is large, is the model itself.
    """
    whole = sizes(spec) == [tuple(pair) for pair in model.config.layers]
    if whole and model.device == device and not model.training and most_together(model) < TOGETHER:
        return model
    network = extract(model, spec).to(device).eval()
    if model.device == device:
        network.backbone.set_input_embeddings(model.backbone.get_input_embeddings())
        network.tie_weights()
    return network


def forward(network: PrunedNetwork, inputs: dict[str, torch.Tensor]) -> Callable[[], Any]:
    """A call that returns when the answer is there, not when it is queued."""

    def call() -> Any:
        answer = network(**inputs)
        synchronize(inputs["input_ids"].device)
        return answer

    return call


def random_inputs(
    model: PrunedNetwork, *, batch: int, length: int, rng: np.random.Generator
) -> dict[str, torch.Tensor]:
    """A batch without padding, of any tokens but the padding one, as the family's tokenizer would shape it."""
    config, room = model.config, max_length_of(model)
    if batch < 1 or not 1 <= length <= room:
        raise BadInput(f"latency needs a batch of at least 1 and 1 to {room} tokens, got {batch} and {length}.")
    pad = config.pad_token_id or 0
    texts = (config.num_labels,) if TASK_KINDS[config.kind].several_texts else ()
    ids = rng.integers(config.backbone["vocab_size"] - 1, size=(batch, *texts, length))
    inputs = {"input_ids": torch.from_numpy(ids + (ids >= pad))}
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if config.backbone.get("type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
    return inputs
