"""Products of a weight with one vector per step, whose weight gradient is one product over all steps.

Left to itself, back-propagation through time adds up one weight-sized gradient per step, which costs more than all the
rest. Here the step's own node passes gradients on to its vector only and notes that vector; a node before the first
step, which back-propagation reaches after all steps, then multiplies all gradients with all vectors at once. Both are
made of differentiable operations, so second derivatives are exact too.
"""

from typing import Any

import torch
from torch.autograd import Function

Noted = dict[int, torch.Tensor]
"""Vectors by step, filled and emptied while going backwards."""


class _Start(Function):
    @staticmethod
    def forward(ctx: Any, starts: torch.Tensor, weight: torch.Tensor, noted: Noted) -> torch.Tensor:
        ctx.noted, ctx.inputs = noted, weight.shape[1]
        return starts.view_as(starts)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        steps, batch, _ = gradient.shape
        nothing = gradient.new_zeros(batch, ctx.inputs)  # steps the loss does not depend on
        vectors = torch.cat([ctx.noted.get(step, nothing) for step in range(steps)])
        ctx.noted.clear()
        return gradient, gradient.flatten(0, 1).mT @ vectors, None


class _Step(Function):
    @staticmethod
    def forward(
        ctx: Any, start: torch.Tensor, vector: torch.Tensor, weight: torch.Tensor, products: "Products", step: int
    ) -> torch.Tensor:
        ctx.save_for_backward(vector, weight)
        ctx.noted, ctx.step = products.noted, step
        return torch.addmm(start, vector, products.turned)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None, None]:
        vector, weight = ctx.saved_tensors
        if ctx.needs_input_grad[2]:  # with its history only where second derivatives are wanted: else a circle
            ctx.noted[ctx.step] = vector if torch.is_grad_enabled() else vector.detach()
        return gradient, gradient @ weight, None, None, None


class Products:
    """`starts[step] + vector @ weight.T`, one step after another."""

    def __init__(self, starts: torch.Tensor, weight: torch.Tensor):
        """`starts` are steps x batch x outputs, `weight` outputs x inputs."""
        self.weight = weight
        self.turned = weight.detach().mT.contiguous()  # few rows times a matrix are twice as fast in this layout
        self.noted: Noted = {}
        self.starts: tuple[torch.Tensor, ...] = _Start.apply(starts, weight, self.noted).unbind()

    def __call__(self, step: int, vector: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = _Step.apply(self.starts[step], vector, self.weight, self, step)
        return found
