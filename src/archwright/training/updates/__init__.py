"""What a network may be taught: functions that make an `Update` for the loop.

A batch has `inputs` (input_ids, attention_mask and so on, by name), `targets`, and `to(device)`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archwright.training.updates.causal import Reading, causal_update
    from archwright.training.updates.electra import electra_update, share_embeddings
    from archwright.training.updates.layer_matching import Projections, layer_map, projections_for
    from archwright.training.updates.layerwise import layerwise_update
    from archwright.training.updates.masked import masked_update

__all__ = [
    "Projections",
    "Reading",
    "causal_update",
    "electra_update",
    "layer_map",
    "layerwise_update",
    "masked_update",
    "projections_for",
    "share_embeddings",
]

PLACES = {
    "causal": ("Reading", "causal_update"),
    "electra": ("electra_update", "share_embeddings"),
    "layerwise": ("layerwise_update",),
    "masked": ("masked_update",),
    "matching": ("Projections", "layer_map", "projections_for"),
}
"""Which file has which name."""


def __getattr__(name: str) -> Any:
    for file, names in PLACES.items():
        if name in names:
            return getattr(import_module(f"archwright.training.updates.{file}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
