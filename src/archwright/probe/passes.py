"""The passes: each runs the network once (noise: once per level) and writes down what it saw."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from archwright.errors import BadInput, Failed
from archwright.networks.roles import LayerRoles, Roles
from archwright.probe.hooks import (
    Calls,
    evaluating,
    first_inputs,
    held_constant,
    outputs,
    replaced_embeddings,
    without_normalisation,
)
from archwright.probe.losses import LOSSES, Batch
from archwright.probe.probe import NOISE_LEVELS

GRADED = ("output", "activations", "context")
"""Roles whose gradient the loss pass writes down."""


@dataclass
class Notes:
    """What the passes of one recording have written down so far."""

    network: nn.Module
    batch: Batch
    loss: str
    roles: Roles
    keep: frozenset[str]
    generator: torch.Generator | None
    calls: Calls = field(default_factory=dict)
    given: Calls = field(default_factory=dict)
    call_gradients: Calls = field(default_factory=dict)
    gradients: dict[nn.Parameter, torch.Tensor] = field(default_factory=dict)
    curvatures: dict[nn.Parameter, torch.Tensor] = field(default_factory=dict)
    flows: dict[nn.Parameter, torch.Tensor] = field(default_factory=dict)
    embeddings: torch.Tensor | None = None
    inputs: torch.Tensor | None = None
    noisy: dict[float, torch.Tensor] = field(default_factory=dict)

    def modules(self, role: str) -> list[nn.Module]:
        """Modules that give this role, as far as it is kept."""
        if role not in self.keep:
            return []
        return [module for layer in self.roles.layers for module in modules_of(layer, role)]

    def heard(self) -> list[nn.Module]:
        return [module for role in sorted(self.keep) for module in self.modules(role)]

    def linears(self) -> list[nn.Parameter]:
        linears = [m for r in self.roles.layers for m in (*r.attention, *r.ffn, *r.recurrent)]
        return list(dict.fromkeys(linear.weight for linear in linears))


def modules_of(layer: LayerRoles, role: str) -> Sequence[nn.Module]:
    found = getattr(layer, role)
    if isinstance(found, nn.Module):
        return (found,)
    return tuple(found or ())


@contextmanager
def listening(notes: Notes, heard: Iterable[nn.Module]) -> Iterator[Calls]:
    """What these modules give, and what the first linears of FFNs are given."""
    with outputs(heard) as calls, first_inputs(notes.modules("pre_activation")) as notes.given:
        yield calls


def forward_pass(notes: Notes) -> None:
    """No graph, no labels, no head where the network can do without."""
    heard = [*notes.heard(), notes.roles.embeddings]
    with evaluating(notes.network, gradients=False), torch.no_grad(), listening(notes, heard) as notes.calls:
        notes.network(notes.batch["input_ids"])
    (notes.embeddings,) = notes.calls[notes.roles.embeddings]


def loss_pass(notes: Notes) -> None:
    """Gradients by `torch.autograd.grad`, so that no parameter ever holds one; its forward pass serves as one."""
    heard = [*notes.heard(), notes.roles.embeddings]
    with evaluating(notes.network, gradients=True), torch.enable_grad(), listening(notes, heard) as calls:
        loss = LOSSES[notes.loss](notes.network, notes.batch)
        (embeddings,) = calls[notes.roles.embeddings]
        graded = [module for role in GRADED for module in notes.modules(role)]
        signals = {id(t): t for module in graded for t in calls.get(module, []) if t.requires_grad}
        parameters = list(notes.network.parameters())
        found = torch.autograd.grad(loss, [embeddings, *parameters, *signals.values()], allow_unused=True)
    notes.inputs, notes.embeddings = found[0], embeddings.detach()
    notes.gradients = known(parameters, found[1 : 1 + len(parameters)])
    by_id = dict(zip(signals, found[1 + len(parameters) :], strict=True))
    notes.call_gradients = {m: [by_id.get(id(t)) for t in calls.get(m, [])] for m in graded}
    notes.calls = {module: [t.detach() for t in tensors] for module, tensors in calls.items()}


def inputs_pass(notes: Notes) -> None:
    """Without any gradient of weights: the graph begins at the embeddings."""
    notes.embeddings = embedded(notes, notes.batch["input_ids"])
    notes.inputs = input_gradient(notes, notes.embeddings)


def input_gradient(notes: Notes, embeddings: torch.Tensor) -> torch.Tensor:
    leaf = embeddings.detach().clone().requires_grad_()
    with evaluating(notes.network, gradients=False), torch.enable_grad(), replaced_embeddings(notes.roles, leaf):
        loss = LOSSES[notes.loss](notes.network, notes.batch)
    (gradient,) = torch.autograd.grad(loss, [leaf])
    return gradient


def noise_pass(notes: Notes) -> None:
    """e + level * Var_batch(e) * N(0, 1), the variance of every position and feature over the batch."""
    if notes.generator is None:
        raise BadInput("The noise pass needs a generator; give record one.")
    embeddings = embedded(notes, notes.batch["input_ids"])
    spread = embeddings.var(dim=0)
    for level in NOISE_LEVELS:
        normal = torch.randn(embeddings.shape, generator=notes.generator, dtype=embeddings.dtype)
        notes.noisy[level] = input_gradient(notes, embeddings + level * spread * normal)


def synflow_pass(notes: Notes) -> None:
    """Gradient of the summed last hidden state at absolute weights (Tanaka et al. 2020), first example only.

    The absolute weights stand in for the real ones through a functional call, so nothing is changed and put back.
    Normalisations are left out: a LayerNorm of equal features gives zero and would end the flow. Attention
    probabilities are held constant: between equal tokens their gradient is zero, and the rounding noise in its place
    would, without norms, grow beyond the flow itself. In single precision unless that overflows.
    """
    for dtype in (next(notes.network.parameters()).dtype, torch.float64):
        flows = synflow_gradients(notes, dtype)
        if all(bool(flow.isfinite().all()) for flow in flows.values()):
            notes.flows = flows
            return
    raise Failed("The flow through absolute weights overflows double precision.")


def synflow_gradients(notes: Notes, dtype: torch.dtype) -> dict[nn.Parameter, torch.Tensor]:
    network, ids = notes.network, notes.batch["input_ids"][:1]
    named = dict(network.named_parameters())
    weights = {name: p.detach().abs().to(dtype).requires_grad_() for name, p in named.items()}
    buffers = {name: b.to(dtype) for name, b in network.named_buffers() if b.is_floating_point()}
    with evaluating(network, gradients=False), torch.enable_grad(), without_normalisation(network):
        ones = torch.ones_like(embedded(notes, ids), dtype=dtype)
        with replaced_embeddings(notes.roles, ones), held_constant(all_probabilities(notes.roles)):
            total = functional_call(network, {**weights, **buffers}, (ids,)).last_hidden_state.sum()
    linears = set(notes.linears())
    owners = {name: parameter for name, parameter in named.items() if parameter in linears}
    found = torch.autograd.grad(total, [weights[name] for name in owners], allow_unused=True, materialize_grads=True)
    return known(list(owners.values()), found)


def all_probabilities(roles: Roles) -> list[nn.Module]:
    return [layer.probabilities for layer in roles.layers if layer.probabilities is not None]


def embedded(notes: Notes, ids: torch.Tensor) -> torch.Tensor:
    """Embeddings of these first tokens of the batch, from an earlier pass if there was one."""
    if notes.embeddings is not None:
        return notes.embeddings[: len(ids)]
    with evaluating(notes.network, gradients=False), torch.no_grad(), outputs([notes.roles.embeddings]) as calls:
        notes.network(ids)
    return calls[notes.roles.embeddings][0]


def hessian_pass(notes: Notes) -> None:
    """H g over the linears of the layers, as the gradient of g . stop(g) (Wang et al. 2020)."""
    linears = notes.linears()
    with evaluating(notes.network, gradients=True), torch.enable_grad():
        loss = LOSSES[notes.loss](notes.network, notes.batch)
        first = torch.autograd.grad(loss, linears, create_graph=True, allow_unused=True)
        used = [g for g in first if g is not None and g.requires_grad]
        product = sum((g * g.detach()).sum() for g in used)
        second = torch.autograd.grad(product, linears, allow_unused=True)
    notes.curvatures = known(linears, [None if s is None else s.detach() for s in second])


def known(parameters: Sequence[nn.Parameter], found: Iterable[Any]) -> dict[nn.Parameter, torch.Tensor]:
    """Gradients by parameter; a parameter the result does not depend on has none."""
    return {p: gradient for p, gradient in zip(parameters, found, strict=True) if gradient is not None}
