"""The residual stream of a network, recorded as a whole and run again layer by layer on other hidden states."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import Cache

from archwright.networks.families.family import LayerParts
from archwright.networks.precision import at_least_float32
from archwright.networks.pruned import PlacedLayer, PrunedNetwork
from archwright.progress import progress
from archwright.subnet.importance import evaluating
from archwright.subnet.pruning.gradients import Reader, head_reader, unit_reader

TOKENS = 6144
"""Tokens at which streams are compared: each is as many equations for a mask as the network is wide."""

Given = tuple[tuple[Any, ...], dict[str, Any]]
"""What a layer is called with besides hidden states, by position and by name."""


@dataclass(frozen=True)
class Sublayer:
    """Attention or FFN."""

    reader: Callable[[PrunedNetwork, int], Reader]
    """The linear that reads its heads or units in the layer at this place."""
    size: Callable[[PlacedLayer], int]
    """How many of them there are."""
    norm: Callable[[LayerParts], str]
    """Path of its own norm."""
    next_norm: Callable[[LayerParts], str]
    """Path of the norm of the sub-layer after it in the same layer; empty: it is the last."""
    out_norm: Callable[[LayerParts], str]
    """Path of the norm of what it adds to the stream, where there is one."""


ATTENTION = Sublayer(
    head_reader,
    attrgetter("heads"),
    attrgetter("attention_norm"),
    attrgetter("ffn_norm"),
    attrgetter("attention_out_norm"),
)
FFN = Sublayer(unit_reader, attrgetter("units"), attrgetter("ffn_norm"), lambda parts: "", attrgetter("ffn_out_norm"))


@dataclass(frozen=True)
class Call:
    """One batch on its way through the backbone."""

    hidden: torch.Tensor
    """What goes into the first layer: rows x tokens x width."""
    given: list[Given]
    """Per layer."""
    real: torch.Tensor
    """Numbers of the tokens that are no padding, rows after one another."""


@dataclass(frozen=True)
class StreamRecording:
    """What the whole network did on some texts: recorded once, good for every sub-network of it."""

    calls: list[Call]
    totals: list[dict[tuple[int, Sublayer], torch.Tensor]]
    """Batch by batch, the residual stream after each layer's sub-layers: real tokens x width."""


@torch.no_grad()
def record_streams(network: PrunedNetwork, batches: Iterable[Any], *, tokens: int = TOKENS) -> StreamRecording:
    """The network's own streams on so many of the batches, spread evenly, that they have about so many tokens."""
    batches = list(batches)
    step = max(1, round(sum(len(real_tokens(batch)) for batch in batches) / tokens))
    runs = []
    with evaluating(network), progress("recording layers", len(batches[::step]), "batches") as bar:
        for batch in batches[::step]:
            runs.append(record_batch(network, batch))
            bar.advance()
    return StreamRecording([call for call, _ in runs], [totals for _, totals in runs])


def real_tokens(batch: Any) -> torch.Tensor:
    """Numbers of the tokens that are no padding, rows after one another."""
    mask = batch.inputs.get("attention_mask")
    real = torch.ones_like(batch.inputs["input_ids"]) if mask is None else mask
    return real.flatten().nonzero().squeeze(-1)


def record_batch(network: PrunedNetwork, batch: Any) -> tuple[Call, dict[tuple[int, Sublayer], torch.Tensor]]:
    """The network on one batch, listened to."""
    real = real_tokens(batch)
    calls: list[Given] = []
    totals: dict[tuple[int, Sublayer], torch.Tensor] = {}
    with ExitStack() as undo:
        for place, placed in enumerate(network.placed_layers()):
            hook = placed.layer.register_forward_pre_hook(
                lambda _, args, named: calls.append((args, named)), with_kwargs=True
            )
            undo.callback(hook.remove)
            for sub in (sub for sub in (ATTENTION, FFN) if sub.size(placed)):
                capture_stream(placed, sub, put(totals, (place, sub), real), undo)
        network(**batch.inputs)
    # A second run would lengthen a decoder's cache of keys and values: what is given again is given without it.
    given = [
        (
            tuple(None if isinstance(value, Cache) else value for value in args[1:]),
            {name: None if isinstance(value, Cache) else value for name, value in named.items()},
        )
        for args, named in calls
    ]
    return Call(calls[0][0][0], given, real), totals


def put(into: dict[Any, torch.Tensor], key: Any, real: torch.Tensor) -> Callable[[torch.Tensor], None]:
    """Something that takes hidden states and puts the real tokens of them under `key`."""
    return lambda states: into.__setitem__(key, states.detach().flatten(0, -2)[real])


def capture_stream(placed: PlacedLayer, sub: Sublayer, heard: Callable[[torch.Tensor], None], undo: ExitStack) -> None:
    """Tell the residual stream after a sub-layer, until `undo`.

    Where norms come last the sub-layer's own norm reads it. Where they come first the norm of the next sub-layer does
    (its stand-in too, where that sub-layer is gone), and after the last one it is what the layer gives. Where what is
    added is normed before, the linear writes to that norm, not to the stream, and what it reads is told instead.
    """
    layer, parts = placed.layer, placed.parts
    path = sub.out_norm(parts) or (sub.next_norm(parts) if parts.attention else sub.norm(parts))
    if path:
        capture_input(layer.get_submodule(path), heard, undo)
    else:
        undo.callback(layer.register_forward_hook(lambda _, args, out: heard(states_of(out))).remove)


def capture_input(module: nn.Module, heard: Callable[[torch.Tensor], None], undo: ExitStack) -> None:
    """Tell what the module reads, until `undo`."""
    undo.callback(module.register_forward_pre_hook(lambda _, args: heard(args[0])).remove)


class StreamComparison(NamedTuple):
    """A sub-layer of a sub-network against the original's, at the real tokens of one batch."""

    reads: torch.Tensor
    """What the linear reads that mixes its heads or units: tokens x features."""
    lacks: torch.Tensor
    """What the residual stream lacks after it: tokens x width."""
    wanted: torch.Tensor
    """The original's residual stream there: tokens x width."""


class StreamReached(Exception):
    """What is wanted of a layer is captured: the rest of it need not be computed."""


def compare_streams(
    small: PrunedNetwork, left: int, sub: Sublayer, hidden: list[torch.Tensor], original: StreamRecording, place: int
) -> Iterator[StreamComparison]:
    """The sub-layer against the original's, batch by batch.

    `left` is the layer's place in the sub-network `small`, `place` its place in the original, and `hidden` what the
    sub-network has before that layer.
    """
    placed, reader = small.placed_layers()[left], sub.reader(small, left)

    def stop(total: torch.Tensor) -> None:
        put(seen, "total", call.real)(total)
        raise StreamReached

    for x, call, totals in zip(hidden, original.calls, original.totals, strict=True):
        seen: dict[str, torch.Tensor] = {}
        with ExitStack() as undo, suppress(StreamReached):
            capture_input(reader.linear, put(seen, "reads", call.real), undo)
            capture_stream(placed, sub, stop, undo)
            run_layer(placed.layer, x, call.given[place])
        wanted = at_least_float32(totals[place, sub])
        yield StreamComparison(at_least_float32(seen["reads"]), wanted - seen["total"], wanted)


def run_layer(layer: nn.Module, hidden: torch.Tensor, given: Given) -> torch.Tensor:
    """What the layer makes of these hidden states."""
    return states_of(layer(hidden, *given[0], **given[1]))


def states_of(out: torch.Tensor | tuple[Any, ...]) -> torch.Tensor:
    return out[0] if isinstance(out, tuple) else out
