"""The precision of weights: how a checkpoint stores them, which one a run keeps them in, and sums beside them."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only
from transformers.utils import cached_file

from archwright.errors import BadInput
from archwright.logs import quiet_libraries

LARGE = 500_000_000
"""Parameters from which on weights usually stay in the checkpoint's precision: 2 GB of them in float32."""
STORED = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
"""Floating-point types as safetensors name them."""
LOW = (torch.bfloat16, torch.float16)
FILES = ("model.safetensors", "model.safetensors.index.json")


def choose_weights(rule: str, source: str, stored: Mapping[torch.dtype, int]) -> torch.dtype:
    """The precision that a run keeps its weights in: float32, or bfloat16 where the checkpoint has it.

    `rule` is float32, checkpoint or auto, and `stored` counts the checkpoint's numbers by their precision. BadInput for
    `checkpoint` where that is nothing a network can be trained in.
    """
    most = max(stored, key=stored.__getitem__, default=None)
    if rule == "float32" or (rule == "auto" and (most != torch.bfloat16 or sum(stored.values()) < LARGE)):
        return torch.float32
    if most not in (torch.bfloat16, torch.float32):
        name = "a packed or pickled file" if most is None else str(most).removeprefix("torch.")
        raise BadInput(
            f"--weights checkpoint needs safetensors in bfloat16 or float32, got {name} from {source!r}; take float32."
        )
    return most


@quiet_libraries()
def stored_precisions(source: str) -> dict[torch.dtype, int]:
    """How many numbers of each floating-point type a checkpoint's safetensors hold; nothing where it has none.

    Only the headers of the files are read.
    """
    quietly = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    try:
        whole, index = (cached_file(source, name, **quietly) for name in FILES)
        files = [] if whole is None else [whole]
        if whole is None and index is not None:
            names = sorted(set(json.loads(Path(index).read_text(encoding="utf-8"))["weight_map"].values()))
            files = [file for name in names if (file := cached_file(source, name, **quietly)) is not None]
        counts: dict[torch.dtype, int] = {}
        for file in files:
            with safe_open(file, "pt") as tensors:
                for name in tensors.keys():  # noqa: SIM118 - not a dict
                    part = tensors.get_slice(name)
                    kind = STORED.get(part.get_dtype())
                    if kind is not None:
                        counts[kind] = counts.get(kind, 0) + torch.Size(part.get_shape()).numel()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError):  # told where they are loaded
        return {}
    return counts


def at_least_float32(values: torch.Tensor) -> torch.Tensor:
    """For sums and differences: bfloat16 has three digits."""
    return values.float() if values.dtype in LOW else values


class Float32Arithmetic(TorchFunctionMode):
    """Inside, whatever torch is asked to compute of bfloat16 numbers it computes of the same numbers in float32.

    The weights stay as they are: each is widened for the one operation that reads it, so that no second copy of a
    network is needed to say what its weights compute but for rounding.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__name__", "") == "__get__":  # shape, device and the like: nothing is computed
            value = func(*args, **(kwargs or {}))
            return torch.float32 if value in LOW else value
        if func is nn.functional.embedding:  # a few rows of a large table: widened after they are looked up
            return at_least_float32(func(*args, **(kwargs or {})))
        args, kwargs = tree_map_only(torch.Tensor, at_least_float32, (tuple(args), dict(kwargs or {})))
        return func(*args, **kwargs)
