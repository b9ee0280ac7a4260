"""The precision of trainings: weights and gradients are float32, matrix products may be bfloat16."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

NATIVE = ("avx512_bf16", "amx_bf16")
"""Capabilities of a processor, as torch names them, that make bfloat16 faster than float32; others emulate it."""
NARROW = 256
"""Below this hidden width the conversions cost what the products save."""


def choose_precision(device: torch.device, width: int) -> str:
    """bfloat16 where the device is made for it and the network is wide enough to gain from it, else float32."""
    return "bfloat16" if width >= NARROW and has_bfloat16(device) else "float32"


def has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and any(torch.cpu.get_capabilities().get(name) for name in NATIVE)


def mixed_precision(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """Matrix products inside are of this precision."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if precision == "bfloat16" else nullcontext()
