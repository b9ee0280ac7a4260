"""What a sub-network is judged by: error, counted costs, latency. What needs torch is loaded when first asked for.

The function `error` is imported from its module, which has the same name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from archwright.objectives.costs import COSTS, OBJECTIVES, Cost

if TYPE_CHECKING:
    from archwright.objectives.error import predictions
    from archwright.objectives.latency import Timing, Timings, measure_latency, overlap, rank, time_interleaved
    from archwright.objectives.table import LatencyTable

__all__ = [
    "COSTS",
    "OBJECTIVES",
    "Cost",
    "LatencyTable",
    "Timing",
    "Timings",
    "measure_latency",
    "overlap",
    "predictions",
    "rank",
    "time_interleaved",
]

_MODULES = {
    "archwright.objectives.error": ("predictions",),
    "archwright.objectives.latency": ("Timing", "Timings", "measure_latency", "overlap", "rank", "time_interleaved"),
    "archwright.objectives.table": ("LatencyTable",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))
