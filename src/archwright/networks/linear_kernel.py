"""Which kernel linear layers of a network run with: oneDNN's where that of torch's default library is slow.

torch multiplies float32 matrices on a CPU with MKL, which does not use the full width of AMD's processors with AVX-512:
640 x 384 times 384 x 1,536 runs at 115 billion operations per second and core there, at 250 with oneDNN (EPYC, torch
2.13), which comes with torch as well. Results differ by rounding, as they do between processors.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from archwright.environment import cpu

LEAST_ROWS, LEAST_WIDTH = 32, 64
"""Of the input, and of both sides of the weight: below, oneDNN is not faster."""
Tensors = Sequence[torch.Tensor | None]


@contextmanager
def fast_linears() -> Iterator[None]:
    """Inside, linear layers that need no gradient use whichever kernel is fast on this processor."""
    if onednn_is_faster():
        with OneDnnLinears():
            yield
    else:
        yield


@cache
def onednn_is_faster() -> bool:
    """By the processor and not by timing, so that a run is the same run on a busy machine."""
    able = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return able and torch.backends.mkl.is_available() and "AMD" in cpu() and torch.cpu._is_avx512_supported()


class OneDnnLinears(TorchFunctionMode):
    """Calls of `torch.nn.functional.linear` that go to oneDNN."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.nn.functional.linear and not kwargs and suits(*args):
            inputs, weight, *bias = args
            none = bias[0] if bias else None
            return torch.ops.mkldnn._linear_pointwise(inputs.contiguous(), weight.contiguous(), none, "none", [], "")
        return func(*args, **(kwargs or {}))


def suits(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> bool:
    """Whether the operator, which has no gradient, can stand in and is faster."""
    return (
        inputs.dtype == weight.dtype == torch.float32
        and inputs.device.type == weight.device.type == "cpu"
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and prod(inputs.shape[:-1]) >= LEAST_ROWS
        and min(weight.shape) >= LEAST_WIDTH
    )
