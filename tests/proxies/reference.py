"""The toy network worked out a second time, by plain tensors and loops, with nothing of archwright in it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from tests.probe.toy import HEADS, WIDTH, Toy

Array = np.ndarray[Any, Any]
LINEARS = ("query", "key", "value", "mix", "up", "down")
ATTENTION, FFN = LINEARS[:4], LINEARS[4:]


@dataclass
class Reference:
    """Values and gradients of one forward and backward pass, as arrays by name (and layer)."""

    weights: dict[str, Array] = field(default_factory=dict)
    gradients: dict[str, Array] = field(default_factory=dict)
    seen: dict[tuple[str, int], Array] = field(default_factory=dict)
    seen_gradients: dict[tuple[str, int], Array] = field(default_factory=dict)
    inputs: Array = field(default_factory=lambda: np.zeros(0))
    embeddings: Array = field(default_factory=lambda: np.zeros(0))

    def linear(self, layer: int, name: str) -> tuple[Array, Array]:
        key = f"layers.{layer}.{name}.weight"
        return self.weights[key], self.gradients[key]

    def linears(self, names: tuple[str, ...] = LINEARS) -> list[tuple[Array, Array]]:
        return [self.linear(layer, name) for layer in range(2) for name in names]


def normalised(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * weight + bias


def layer_output(
    p: dict[str, torch.Tensor], x: torch.Tensor, place: int, seen: dict[Any, torch.Tensor]
) -> torch.Tensor:
    def linear(name: str, given: torch.Tensor) -> torch.Tensor:
        seen[name, place] = given @ p[f"layers.{place}.{name}.weight"].T + p[f"layers.{place}.{name}.bias"]
        return seen[name, place]

    def norm(name: str, given: torch.Tensor) -> torch.Tensor:
        return normalised(given, p[f"layers.{place}.{name}.weight"], p[f"layers.{place}.{name}.bias"])

    q, k, v = linear("query", x), linear("key", x), linear("value", x)
    part = WIDTH // HEADS
    contexts, tables = [], []
    for head in range(HEADS):
        s = slice(head * part, (head + 1) * part)
        logits = torch.einsum("btd,bsd->bts", q[..., s], k[..., s]) / part**0.5
        odds = (logits - logits.amax(-1, keepdim=True)).exp()
        table = odds / odds.sum(-1, keepdim=True)
        tables.append(table)
        contexts.append(torch.einsum("bts,bsd->btd", table, v[..., s]))
    seen["context", place] = torch.cat(contexts, -1)
    seen["softmax", place] = torch.stack(tables, 1)
    hidden = norm("first_norm", x + linear("mix", seen["context", place]))
    seen["activation", place] = linear("up", hidden).clamp(min=0)
    seen["output", place] = norm("second_norm", hidden + linear("down", seen["activation", place]))
    return seen["output", place]


def loss_of(
    p: dict[str, torch.Tensor], embeddings: torch.Tensor, labels: torch.Tensor, seen: dict[Any, torch.Tensor]
) -> torch.Tensor:
    hidden = embeddings
    for place in range(2):
        hidden = layer_output(p, hidden, place, seen)
    chance = 1 / (1 + (-(hidden @ p["head.weight"].T + p["head.bias"])[..., 0]).exp())
    return -(labels * chance.log() + (1 - labels) * (1 - chance).log()).mean()


def tensors(network: Toy) -> dict[str, torch.Tensor]:
    return {name: t.detach().clone().requires_grad_() for name, t in network.named_parameters()}


def reference(network: Toy, batch: dict[str, torch.Tensor]) -> Reference:
    p, seen = tensors(network), {}
    embeddings = p["embeddings.weight"][batch["input_ids"]]
    embeddings.retain_grad()
    loss = loss_of(p, embeddings, batch["labels"].double(), seen)
    for tensor in seen.values():
        tensor.retain_grad()
    loss.backward()
    return Reference(
        {name: t.detach().numpy() for name, t in p.items()},
        {name: t.grad.numpy() for name, t in p.items() if t.grad is not None},
        {key: t.detach().numpy() for key, t in seen.items()},
        {key: t.grad.numpy() for key, t in seen.items() if t.grad is not None},
        embeddings.grad.numpy() if embeddings.grad is not None else np.zeros(0),
        embeddings.detach().numpy(),
    )


def input_gradient(network: Toy, batch: dict[str, torch.Tensor], embeddings: torch.Tensor) -> Array:
    leaf = embeddings.clone().requires_grad_()
    loss_of(tensors(network), leaf, batch["labels"].double(), {}).backward()
    assert leaf.grad is not None
    return np.asarray(leaf.grad.numpy())


def flows(network: Toy, time: int) -> dict[str, tuple[Array, Array]]:
    """|w| and the gradient of the summed output of two layers without norms, fed with ones."""
    p = {name: t.detach().abs().requires_grad_() for name, t in network.named_parameters()}

    def linear(place: int, name: str, x: torch.Tensor) -> torch.Tensor:
        return x @ p[f"layers.{place}.{name}.weight"].T + p[f"layers.{place}.{name}.bias"]

    x = torch.ones(time, WIDTH, dtype=torch.float64)
    part = WIDTH // HEADS
    for place in range(2):
        q, k, v = (linear(place, name, x) for name in ATTENTION[:3])
        heads = []
        for head in range(HEADS):
            s = slice(head * part, (head + 1) * part)
            heads.append(torch.softmax(q[:, s] @ k[:, s].T / part**0.5, -1) @ v[:, s])
        x = x + linear(place, "mix", torch.cat(heads, -1))
        x = x + linear(place, "down", linear(place, "up", x).clamp(min=0))
    x.sum().backward()
    names = [f"layers.{place}.{name}.weight" for place in range(2) for name in LINEARS]
    return {name: (p[name].detach().numpy(), p[name].grad.numpy()) for name in names}  # type: ignore[union-attr]


def hessian_products(network: Toy, batch: dict[str, torch.Tensor], step: float = 1e-5) -> dict[str, Array]:
    """H g over the linears by central differences of the gradient along the gradient."""
    names = [f"layers.{place}.{name}.weight" for place in range(2) for name in LINEARS]

    def gradients(shift: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        p = tensors(network)
        moved = {name: (t + shift[name] if name in shift else t) for name, t in p.items()}
        loss = loss_of(moved, p["embeddings.weight"][batch["input_ids"]], batch["labels"].double(), {})
        return dict(zip(names, torch.autograd.grad(loss, [p[name] for name in names]), strict=True))

    g = gradients({})
    plus, minus = (gradients({name: sign * step * g[name] for name in names}) for sign in (1, -1))
    return {name: ((plus[name] - minus[name]) / (2 * step)).numpy() for name in names}
