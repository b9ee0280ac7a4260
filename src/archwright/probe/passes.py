"""The passes: each runs the network once (noise: once per level) and writes down what it gave."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from archwright.errors import BadInput, Failed
from archwright.networks.roles import LayerRoles, Roles
from archwright.probe.hooks import Calls, calls_of, evaluating, forward_hooks, replaced_embeddings
from archwright.probe.probe import NOISE_LEVELS

Batch = Mapping[str, torch.Tensor]
"""input_ids and labels, batch x time each, without padding."""
NORMALISATIONS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.modules.batchnorm._BatchNorm)
GRADED = ("output", "activations", "context")
"""Roles whose gradient the loss pass writes down."""


def own_loss(network: Any, batch: Batch) -> torch.Tensor:
    """The loss the network itself gives for these labels; its head was chosen when it was built."""
    loss = network(batch["input_ids"], batch["labels"]).loss
    if loss is None:
        raise BadInput("The network gives no loss for these labels; build it with the head of the loss wanted.")
    return loss


def summed_state(network: Any, batch: Batch) -> torch.Tensor:
    """Sum of the last hidden state, as the public scoring script of the FlexiBERT benchmark has it.

    Where a LayerNorm comes last its true gradient is zero and what comes out is rounding noise. That script also
    left dropout on; here it is off, as everywhere.
    """
    return network(batch["input_ids"]).last_hidden_state.sum()


LOSSES: dict[str, Callable[[Any, Batch], torch.Tensor]] = {
    **dict.fromkeys(("electra", "mlm", "lm"), own_loss), "published": summed_state,
}  # fmt: skip
"""What the loss pass goes back from: replaced-token detection, masked and causal language modelling, and the sum that
the public script takes."""


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

    def kept_modules(self) -> list[nn.Module]:
        """Modules of all roles that are kept, and the embeddings."""
        return [*(module for role in sorted(self.keep) for module in self.modules(role)), self.roles.embeddings]

    def linears(self) -> list[nn.Parameter]:
        linears = [m for r in self.roles.layers for m in (*r.attention, *r.ffn, *r.recurrent)]
        return list(dict.fromkeys(linear.weight for linear in linears))


def modules_of(layer: LayerRoles, role: str) -> Sequence[nn.Module]:
    modules = getattr(layer, role)
    return (modules,) if isinstance(modules, nn.Module) else tuple(modules or ())


@contextmanager
def listening(notes: Notes) -> Iterator[Calls]:
    """Outputs of the modules that are kept, and inputs of the first linears of FFNs."""
    inputs = calls_of(notes.modules("pre_activation"), inputs=True)
    with calls_of(notes.kept_modules()) as calls, inputs as notes.given:
        yield calls


def forward_pass(notes: Notes) -> None:
    """No graph, no labels, no head where the network can do without."""
    with evaluating(notes.network, gradients=False), torch.no_grad(), listening(notes) as notes.calls:
        notes.network(notes.batch["input_ids"])
    (notes.embeddings,) = notes.calls[notes.roles.embeddings]


def loss_pass(notes: Notes) -> None:
    """Gradients by `torch.autograd.grad`, so that no parameter ever holds one; its forward pass serves as one."""
    with evaluating(notes.network, gradients=True), torch.enable_grad(), listening(notes) as calls:
        loss = LOSSES[notes.loss](notes.network, notes.batch)
        (embeddings,) = calls[notes.roles.embeddings]
        graded = [module for role in GRADED for module in notes.modules(role)]
        signals = {id(t): t for module in graded for t in calls.get(module, []) if t.requires_grad}
        parameters = list(notes.network.parameters())
        gradients = torch.autograd.grad(loss, [embeddings, *parameters, *signals.values()], allow_unused=True)
    notes.inputs, notes.embeddings = gradients[0], embeddings.detach()
    notes.gradients = gradients_by_parameter(parameters, gradients[1 : 1 + len(parameters)])
    by_id = dict(zip(signals, gradients[1 + len(parameters) :], strict=True))
    notes.call_gradients = {m: [by_id.get(id(t)) for t in calls.get(m, [])] for m in graded}
    notes.calls = {module: [t.detach() for t in tensors] for module, tensors in calls.items()}


def inputs_pass(notes: Notes) -> None:
    """Without any gradient of weights: the graph begins at the embeddings."""
    notes.embeddings = input_embeddings(notes, notes.batch["input_ids"])
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
    embeddings = input_embeddings(notes, notes.batch["input_ids"])
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
    norms = [module for module in network.modules() if isinstance(module, NORMALISATIONS)]
    probabilities = [layer.probabilities for layer in notes.roles.layers if layer.probabilities is not None]
    without_norms = forward_hooks(norms, lambda module, given, output: given[0])
    held_constant = forward_hooks(probabilities, lambda module, given, output: output.detach())
    with evaluating(network, gradients=False), torch.enable_grad(), without_norms:
        ones = torch.ones_like(input_embeddings(notes, ids), dtype=dtype)
        with replaced_embeddings(notes.roles, ones), held_constant:
            total = functional_call(network, {**weights, **buffers}, (ids,)).last_hidden_state.sum()
    linears = set(notes.linears())
    owners = {name: parameter for name, parameter in named.items() if parameter in linears}
    gradients = torch.autograd.grad(
        total, [weights[name] for name in owners], allow_unused=True, materialize_grads=True
    )
    return gradients_by_parameter(list(owners.values()), gradients)


def input_embeddings(notes: Notes, ids: torch.Tensor) -> torch.Tensor:
    """Embeddings of these first tokens of the batch, from an earlier pass if there was one."""
    if notes.embeddings is not None:
        return notes.embeddings[: len(ids)]
    with evaluating(notes.network, gradients=False), torch.no_grad(), calls_of([notes.roles.embeddings]) as calls:
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
    notes.curvatures = gradients_by_parameter(linears, [None if s is None else s.detach() for s in second])


def gradients_by_parameter(
    parameters: Sequence[nn.Parameter], gradients: Iterable[Any]
) -> dict[nn.Parameter, torch.Tensor]:
    """Gradients by parameter; a parameter the result does not depend on has none."""
    return {p: gradient for p, gradient in zip(parameters, gradients, strict=True) if gradient is not None}


@dataclass(frozen=True)
class Pass:
    """One way to run a network."""

    description: str
    run: Callable[[Notes], None]
    covers: frozenset[str] = frozenset()
    """Passes that need not run beside this one: it writes down what they would."""
    needs: frozenset[str] = frozenset()


PASSES: dict[str, Pass] = {
    "forward": Pass("one forward pass without a graph", forward_pass),
    "loss": Pass(
        "forward and backward pass of the loss: gradients of weights, activations, contexts and hidden states",
        loss_pass,
        covers=frozenset({"forward", "inputs"}),
    ),
    "inputs": Pass(
        "the gradient at the input embeddings alone; part of the loss pass when both are wanted", inputs_pass
    ),
    "noise": Pass("the same at embeddings with noise, once per level", noise_pass, needs=frozenset({"inputs"})),
    "synflow": Pass("absolute weights, embeddings of ones, no loss, normalisations left out", synflow_pass),
    "hessian": Pass("Hessian times gradient", hessian_pass),
}
"""In the order in which they run."""
