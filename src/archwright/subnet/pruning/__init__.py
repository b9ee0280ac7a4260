"""Pruning without a search, to compare with: which heads, units and layers a trained network can spare.

What is left can be repaired without training; REPAIRS lists the ways and loads no torch.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from archwright.registry import Lazy, Registry

if TYPE_CHECKING:
    from archwright.networks.pruned import PrunedNetwork
    from archwright.subnet.pruning.streams import StreamRecording
    from archwright.subnet.spec import SubnetSpec

HERE = "archwright.subnet.pruning.repair"
REPAIRS: "Registry[Callable[[PrunedNetwork, SubnetSpec, StreamRecording], PrunedNetwork]]" = Registry(
    "repair",
    {
        "none": Lazy(f"{HERE}:leave_as_cut", "the weights as they were"),
        "mask": Lazy(f"{HERE}:repair_by_factors", "one factor for every head and unit that is left (Kwon et al. 2022)"),
        "least-squares": Lazy(
            f"{HERE}:repair_least_squares",
            "new weights for the linears that read heads and units, in closed form, sub-layer by sub-layer",
        ),
    },
)
"""Each makes a network of its own of a sub-network, so that it does what the original did on some texts."""
