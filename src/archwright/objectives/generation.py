"""Milliseconds per written token: a decoder that goes on with a text, its keys and values kept in a cache."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from archwright.devices import synchronize
from archwright.errors import BadInput
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.latency import (
    CPU,
    Clock,
    Timings,
    device_clock,
    extract_for_timing,
    merge_sessions,
    most_together,
    random_inputs,
    split_sessions,
    time_calls,
)
from archwright.subnet.spec import SubnetSpec

MIDDLE = 48
"""Tokens before the one that is timed: the middle of 32 that are written after a text of 32."""


def measure_generation(
    model: PrunedNetwork,
    specs: Mapping[str, SubnetSpec],
    *,
    batch: int = 1,
    length: int = MIDDLE,
    rounds: int = 30,
    seed: int = 0,
    clock: Clock | None = None,
    device: torch.device = CPU,
) -> Timings:
    """Milliseconds for one more token of every sub-network, extracted and timed together as in `measure_latency`.

    A step reads one token and the cached keys and values of the `length` tokens before it; what it adds to the cache
    is taken off again before the next. The time for reading the prompt is not in it: that is what latency is about.
    """
    check_generates(model)
    rng, clock = np.random.default_rng(seed), clock or device_clock(device)
    inputs = {k: x.to(device) for k, x in random_inputs(model, batch=batch, length=length, rng=rng).items()}
    sentinel = next(iter(specs), None)
    sessions = []
    for names in split_sessions(list(specs), most_together(model)):
        with torch.inference_mode():
            calls = {name: one_token(extract_for_timing(model, specs[name], device), inputs) for name in names}
            title = "latency per written token"
            sessions.append(time_calls(calls, rounds=rounds, rng=rng, sentinel=sentinel, clock=clock, title=title))
    return merge_sessions(sessions, sentinel)


def check_generates(model: PrunedNetwork) -> None:
    """BadInput unless the network writes text."""
    if not model.can_generate():
        raise BadInput("generation_ms is about models that write text: it needs a decoder and --task lm.")


def one_token(network: PrunedNetwork, inputs: Mapping[str, torch.Tensor]) -> Callable[[], Any]:
    """A call that writes the token after `inputs`, from their keys and values, each time from the same state."""
    cache = network(**inputs, use_cache=True, logits_to_keep=1).past_key_values
    before = [dict(vars(layer)) for layer in cache.layers]  # a step puts new tensors in their place
    ids = inputs["input_ids"]
    token, places = ids[:, -1:], torch.full_like(ids[:, -1:], ids.shape[1])  # without attention no cache knows them

    def step() -> Any:
        for layer, state in zip(cache.layers, before, strict=True):
            vars(layer).update(state)
        logits = network(
            input_ids=token, position_ids=places, past_key_values=cache, use_cache=True, logits_to_keep=1
        ).logits
        synchronize(ids.device)
        return logits

    return step
