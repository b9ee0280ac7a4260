"""`record`: the only code that runs a network in order to score it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from archwright.errors import BadInput, Failed
from archwright.networks.roles import Counts, LayerRoles
from archwright.probe.losses import LOSSES, Batch
from archwright.probe.passes import (
    Notes,
    forward_pass,
    hessian_pass,
    inputs_pass,
    loss_pass,
    modules_of,
    noise_pass,
    synflow_pass,
)
from archwright.probe.probe import PASSES, ROLES, Layer, Probe, Signal, Weight

RUNS: dict[str, Callable[[Notes], None]] = {
    "forward": forward_pass,
    "loss": loss_pass,
    "inputs": inputs_pass,
    "noise": noise_pass,
    "synflow": synflow_pass,
    "hessian": hessian_pass,
}
COVERS = {"loss": {"forward", "inputs"}}
"""Passes that another one sees to as well."""
NEEDS = {"noise": {"inputs"}}


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
    """One look at an untrained network: the wanted passes, each run once, in evaluation mode.

    The network is left bit-identical: weights, gradients, buffers, flags and hooks. A pass that does not work on this
    network is noted with its reason, and the proxies that need it are missing. `keep` names the roles whose outputs are
    held in memory. The generator gives one number for the random baseline, then the noise.
    """
    check(batch, passes, loss, keep)
    draw = float(torch.rand((), generator=generator, dtype=torch.float64)) if generator else None
    notes = Notes(network, batch, loss, network.roles(), frozenset(keep), generator)
    failures = run_all(notes, closed(passes))
    return probe_of(notes, closed(passes), failures, counts=counts, draw=draw)


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


def closed(passes: Collection[str]) -> frozenset[str]:
    """The passes with those they need."""
    return frozenset(passes).union(*(NEEDS.get(name, set()) for name in passes))


def run_all(notes: Notes, wanted: frozenset[str]) -> dict[str, str]:
    """Runs what no other wanted pass sees to; gives back the reasons of those that failed."""
    covered = set().union(*(COVERS.get(name, set()) for name in wanted))
    failures: dict[str, str] = {}
    for name in [name for name in RUNS if name in wanted - covered]:
        try:
            RUNS[name](notes)
        except Failed as failure:
            failures |= dict.fromkeys({name, *COVERS.get(name, set())} & wanted, str(failure))
        except (RuntimeError, NotImplementedError) as failure:  # what torch raises where it cannot
            reason = f"The {name} pass does not work on this network: {first_line(failure)}"
            failures |= dict.fromkeys({name, *COVERS.get(name, set())} & wanted, reason)
    return failures


def first_line(failure: Exception) -> str:
    return (str(failure).splitlines() or [type(failure).__name__])[0]


def probe_of(
    notes: Notes, passes: frozenset[str], failures: Mapping[str, str], *, counts: Counts | None, draw: float | None
) -> Probe:
    weights = {parameter: weight_of(notes, parameter) for parameter in notes.network.parameters()}
    return Probe(
        passes=passes,
        failures=failures,
        counts=counts,
        layers=tuple(layer_of(notes, roles, weights) for roles in notes.roles.layers),
        parameters=tuple(weights.values()),
        inputs=notes.inputs,
        noisy=notes.noisy,
        draw=draw,
    )


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


def weight_of(notes: Notes, parameter: nn.Parameter) -> Weight:
    return Weight(
        parameter.detach(),
        notes.gradients.get(parameter),
        notes.curvatures.get(parameter),
        notes.flows.get(parameter),
    )


def signals_of(notes: Notes, roles: LayerRoles, role: str) -> tuple[Signal, ...]:
    """What the modules of this role gave; a module that was not called, or is not kept, gave nothing."""
    modules = [m for m in modules_of(roles, role) if role in notes.keep and m in notes.calls]
    return tuple(Signal(over_time(notes.calls[m]), gradient_of(notes, m)) for m in modules)


def gradient_of(notes: Notes, module: nn.Module) -> torch.Tensor | None:
    """A call the loss does not depend on has gradient zero, unless none of them matters."""
    found = notes.call_gradients.get(module, [])
    if all(gradient is None for gradient in found):
        return None
    pairs = zip(found, notes.calls[module], strict=True)
    return over_time([torch.zeros_like(value) if g is None else g for g, value in pairs])


def over_time(calls: list[torch.Tensor]) -> torch.Tensor:
    """One tensor of all calls: a cell called once per step gives batch x time x width."""
    return calls[0] if len(calls) == 1 else torch.stack(calls, dim=1)


def only(signals: tuple[Signal, ...]) -> Signal | None:
    return signals[0] if signals else None
