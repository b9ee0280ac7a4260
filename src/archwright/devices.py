"""Devices of torch: which one is meant, waiting for it, one per process, and the same numbers every time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from archwright.errors import BadInput

if TYPE_CHECKING:
    import torch

KERNEL_CACHE = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
"""How many compiled products oneDNN keeps; by itself 1,024."""
AT_ONCE = ("cpu", "meta")
"""Devices whose operations are done when their call returns."""


def resolve_device(name: str, option: str = "--device") -> "torch.device":
    """The device of this name; auto is the best there is. BadInput for one that is not there."""
    import torch

    device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise BadInput(f"{option} cuda needs a CUDA device that torch can use, and there is none; choose cpu.")
    return device


def limit_kernel_cache() -> None:
    """Before the first product on a CPU: a super-network multiplies matrices of ever new sizes, and what is compiled
    for each would fill gigabytes without being used again. A value of the user's stays."""
    os.environ.setdefault(*KERNEL_CACHE)


def synchronize(device: "torch.device") -> None:
    """Waits until all that was begun on this device is done: a clock that is read earlier times the queueing."""
    if device.type not in AT_ONCE:
        import torch

        torch.get_device_module(device).synchronize(device)


def one_gpu_environment(process: int) -> dict[str, str]:
    """Variables for the worker process of this number (this process is 0) that leave it a single GPU, in turns.

    Nothing where there is none. GPUs that are hidden from this process stay hidden.
    """
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        return {}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
    names = visible.split(",")[:count]
    return {"CUDA_VISIBLE_DEVICES": names[process % len(names)]}


@contextmanager
def deterministic_algorithms(wanted: bool) -> Iterator[None]:
    """Inside, torch computes the same numbers every time or raises; nothing changes where that is not wanted."""
    if not wanted:
        yield
        return
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read at the first product on a GPU
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
