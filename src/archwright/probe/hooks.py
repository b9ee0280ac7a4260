"""Listening inside a network; every hook and flag is taken back at the end of the block, also on error."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from archwright.networks.roles import Roles

Calls = dict[nn.Module, list[torch.Tensor]]
"""Outputs of a module, one per call: a recurrent cell is called once per time step."""


@contextmanager
def evaluating(network: nn.Module, *, gradients: bool) -> Iterator[None]:
    """In evaluation mode, with gradients of all parameters or of none; flags come back one by one."""
    training = [(module, module.training) for module in network.modules()]
    frozen = [(parameter, parameter.requires_grad) for parameter in network.parameters()]
    try:
        network.eval()
        for parameter, _ in frozen:
            parameter.requires_grad_(gradients)
        yield
    finally:
        for module, flag in training:
            module.training = flag
        for parameter, flag in frozen:
            parameter.requires_grad_(flag)


@contextmanager
def forward_hooks(modules: Iterable[nn.Module], hook: Callable[[nn.Module, Any, Any], Any]) -> Iterator[None]:
    """This forward hook on every module, each once."""
    handles = []
    try:
        for module in dict.fromkeys(modules):
            handles.append(module.register_forward_hook(hook))
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def calls_of(modules: Iterable[nn.Module], *, inputs: bool = False) -> Iterator[Calls]:
    """What the modules give while the block runs, or what they are given (their first argument, detached)."""
    calls: Calls = {}

    def note(module: nn.Module, given: Any, output: Any) -> None:
        result = output[0] if isinstance(output, tuple) else output
        calls.setdefault(module, []).append(given[0].detach() if inputs else result)

    with forward_hooks(modules, note):
        yield calls


@contextmanager
def replaced_embeddings(roles: Roles, embeddings: torch.Tensor) -> Iterator[None]:
    """The layers are given these embeddings, whatever the tokens are."""

    def replace(module: nn.Module, given: Any, output: Any) -> Any:
        return (embeddings, *output[1:]) if isinstance(output, tuple) else embeddings

    with forward_hooks([roles.embeddings], replace):
        yield
