"""`record`: the only code that runs a network in order to score it."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from archwright.errors import BadInput, Failed
from archwright.networks.linear_kernel import fast_linears
from archwright.networks.roles import Counts, LayerRoles
from archwright.probe.passes import LOSSES, PASSES, Batch, Notes, modules_of
from archwright.probe.probe import ROLES, Layer, Probe, Signal, Weight


def record(
    network: Any,
    batch: Batch,
    *,
    counts: Counts | None = None,
    passes: Collection[str] = ("forward",),
    loss: str = "lm",
    generator: torch.Generator | None = None,
    keep: Collection[str] = ROLES,
) -> Probe:
    """What these passes give of an untrained network, each run once, in evaluation mode.

    The network is left bit-identical: weights, gradients, buffers, flags and hooks. A pass that does not work on this
    network is noted with its reason, and the proxies that need it are missing. `keep` names the roles whose outputs are
    held in memory. The generator gives one number for the random baseline, then the noise.
    """
    check(batch, passes, loss, keep)
    draw = float(torch.rand((), generator=generator, dtype=torch.float64)) if generator else None
    notes = Notes(network, batch, loss, network.roles(), frozenset(keep), generator)
    needed = frozenset(passes).union(*(PASSES[name].needs for name in passes))
    with fast_linears():
        failures = run_passes(notes, needed)
    weights = {
        p: Weight(p.detach(), notes.gradients.get(p), notes.curvatures.get(p), notes.flows.get(p))
        for p in network.parameters()
    }
    return Probe(
        passes=needed,
        failures=failures,
        counts=counts,
        layers=tuple(layer_of(notes, roles, weights) for roles in notes.roles.layers),
        parameters=tuple(weights.values()),
        inputs=notes.inputs,
        noisy=notes.noisy,
        draw=draw,
    )


def check(batch: Batch, passes: Collection[str], loss: str, keep: Collection[str]) -> None:
    known_names: list[tuple[str, Iterable[str], Collection[str]]] = [
        ("pass", passes, PASSES),
        ("loss", [loss], LOSSES),
        ("role", keep, ROLES),
    ]
    for kind, names, known in known_names:
        for name in names:
            if name not in known:
                raise BadInput(f"There is no {kind} {name!r}; choose from {', '.join(known)}.")
    if "input_ids" not in batch:
        raise BadInput(f"A batch needs input_ids, got {', '.join(batch) or 'nothing'}.")


def run_passes(notes: Notes, needed: frozenset[str]) -> dict[str, str]:
    """Runs what no other needed pass covers; gives back the reasons of those that failed."""
    covered = frozenset().union(*(PASSES[name].covers for name in needed))
    failures: dict[str, str] = {}
    for name in [name for name in PASSES if name in needed - covered]:
        try:
            PASSES[name].run(notes)
        except (Failed, RuntimeError, NotImplementedError) as failure:  # the last two are what torch raises
            reason = str(failure)
            if not isinstance(failure, Failed):
                first_line = (reason.splitlines() or [type(failure).__name__])[0]
                reason = f"The {name} pass does not work on this network: {first_line}"
            failures |= dict.fromkeys({name, *PASSES[name].covers} & needed, reason)
    return failures


def layer_of(notes: Notes, roles: LayerRoles, weights: Mapping[nn.Parameter, Weight]) -> Layer:
    first = roles.pre_activation
    return Layer(
        attention=tuple(weights[linear.weight] for linear in roles.attention),
        ffn=tuple(weights[linear.weight] for linear in roles.ffn),
        recurrent=tuple(weights[linear.weight] for linear in roles.recurrent),
        output=only(signals_of(notes, roles, "output")),
        pre_activation=only(signals_of(notes, roles, "pre_activation")),
        ffn_input=over_time(notes.given[first]) if first is not None and first in notes.given else None,
        first=first.weight.detach() if isinstance(first, nn.Linear) else None,
        activations=signals_of(notes, roles, "activations"),
        projections=signals_of(notes, roles, "projections"),
        context=only(signals_of(notes, roles, "context")),
        probabilities=only(signals_of(notes, roles, "probabilities")),
        heads=roles.heads,
    )


def signals_of(notes: Notes, roles: LayerRoles, role: str) -> tuple[Signal, ...]:
    """What the modules of this role gave; a module that was not called, or is not kept, gave nothing."""
    modules = [m for m in modules_of(roles, role) if role in notes.keep and m in notes.calls]
    return tuple(Signal(over_time(notes.calls[m]), gradient_of(notes, m)) for m in modules)


def gradient_of(notes: Notes, module: nn.Module) -> torch.Tensor | None:
    """A call the loss does not depend on has gradient zero, unless none of them matters."""
    gradients = notes.call_gradients.get(module, [])
    if all(gradient is None for gradient in gradients):
        return None
    pairs = zip(gradients, notes.calls[module], strict=True)
    return over_time([torch.zeros_like(value) if g is None else g for g, value in pairs])


def over_time(calls: list[torch.Tensor]) -> torch.Tensor:
    """One tensor of all calls: a cell called once per step gives batch x time x width."""
    return calls[0] if len(calls) == 1 else torch.stack(calls, dim=1)


def only(signals: tuple[Signal, ...]) -> Signal | None:
    return signals[0] if signals else None
